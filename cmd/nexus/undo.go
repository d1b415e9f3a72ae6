package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

type undoCmd struct {
	deciding `embed:""`
	JSON     bool `name:"json" help:"As JSON."`
}

// Help implements kong's help provider.
func (undoCmd) Help() string {
	return `Every file that the run wrote becomes again what it was before, or none does: when you changed one of them since,
nothing is written. Other files are not touched. What a run replaced is kept as long as the run itself:
until 'nexus gc' removes it, 30 days after its end or later.

Examples:
  nexus run ls
  nexus undo 2qcab5`
}

// undone is what --json prints.
type undone struct {
	Run   string   `json:"run"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	// Tree is the folder's tree hash now; Whole says that it is the one from
	// before the run.
	Tree  string `json:"tree"`
	Whole bool   `json:"whole"`
}

// Run takes back an approved delivery.
func (c *undoCmd) Run(ctx context.Context, e *env) error {
	by, err := c.who()
	if err != nil {
		return err
	}
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	return c.Common.with(ctx, e, c.ID, func(_ *node.Node, b *bus.Bus, log bus.Log, s run.State) error {
		if log.Imported || s.Task.Home != cfg.Rules.Home {
			return fmt.Errorf("the folder of run %s is on another host (%s): undo it there", s.ID, s.Task.Home)
		}
		note, err := b.Review(ctx, s.ID)
		if err != nil {
			return err
		}
		tree, err := agents.Undeliver(ctx, cfg.State, cfg.Claims, s, b.Artifacts())
		if err != nil {
			return undoError(s, err)
		}
		note.Undone, note.By, note.At = true, by, time.Now().UTC()
		if err := b.Note(ctx, note); err != nil {
			return fmt.Errorf("the folder is as it was, but that could not be noted: %w", err)
		}
		return c.tell(e, s, tree)
	})
}

// undoError says what somebody can do about a file that has changed.
func undoError(s run.State, err error) error {
	if !rollback.IsKind(err, rollback.KindDrift) {
		return err
	}
	return fmt.Errorf("%w; to take back what still fits: nexus run diff %s | git -C %s apply -R --3way", err, s.ID[:8], s.Task.Dir)
}

func (c *undoCmd) tell(e *env, s run.State, tree string) error {
	won, _ := s.Winner()
	out := undone{Run: s.ID, Dir: s.Task.Dir, Files: []string{}, Tree: tree, Whole: tree == s.Origin.Hash}
	for _, ch := range won.Changes {
		out.Files = append(out.Files, ch.Path)
	}
	if c.JSON {
		return json.NewEncoder(e.out).Encode(out)
	}
	fmt.Fprintf(e.out, "undone: %s of %s\n", clean(strings.Join(out.Files, ", ")), clean(out.Dir))
	if out.Whole {
		fmt.Fprintf(e.out, "the folder is as it was before run %s, tree %s\n", s.ID[:8], short(tree))
	} else {
		fmt.Fprintln(e.out, "other files have changed since, and stay as they are")
	}
	return nil
}
