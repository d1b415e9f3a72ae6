package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"nexuscore.dev/nexus/internal/archive"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

type deadCmd struct {
	Ls      deadLsCmd      `cmd:"" help:"List the dead letters, oldest first."`
	Show    deadShowCmd    `cmd:"" help:"Show a letter: why, what was tried, the message, what it names."`
	Requeue deadRequeueCmd `cmd:"" help:"Start the task of a letter again, as a new run."`
	Edit    deadEditCmd    `cmd:"" help:"Change the task of a letter in an editor and start it."`
	Drop    deadDropCmd    `cmd:"" help:"Remove letters for good."`
}

// Help implements kong's help provider.
func (deadCmd) Help() string {
	return `A message that cannot be handled becomes a dead letter with its reason: a malformed task, a task that the rules
refuse, a run that ended because of something unexpected, a lost message. Its run has been told; nothing waits for it.

Examples:
  nexus dead ls
  nexus dead show 4
  nexus dead requeue 4
  nexus dead edit 4          opens $VISUAL or $EDITOR
  nexus dead drop 4 5 6`
}

// letterArg is a letter by its number.
type letterArg struct {
	ID     uint64 `arg:"" predictor:"letter" help:"The letter's number, as in 'nexus dead ls'."`
	Common common `embed:""`
}

// bus calls do with a bus to read from.
func (c common) bus(ctx context.Context, e *env, do func(*node.Node, *bus.Bus) error) (err error) {
	n, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return do(n, n.Bus())
}

// letter calls do with the letter.
func (c letterArg) letter(ctx context.Context, e *env, do func(*node.Node, *bus.Bus, bus.Letter) error) error {
	return c.Common.bus(ctx, e, func(n *node.Node, b *bus.Bus) error {
		l, err := b.DeadLetter(ctx, c.ID)
		if errors.Is(err, bus.ErrNoLetter) {
			return fmt.Errorf("there is no dead letter %d: 'nexus dead ls' lists them", c.ID)
		}
		if err != nil {
			return err
		}
		return do(n, b, l)
	})
}

type deadLsCmd struct {
	JSON   bool   `name:"json" help:"One JSON object a letter."`
	Common common `embed:""`
}

// listed is a letter as --json shows it.
type listed struct {
	ID uint64 `json:"id"`
	bus.Letter
}

// Run lists the letters.
func (c *deadLsCmd) Run(ctx context.Context, e *env) error {
	return c.Common.bus(ctx, e, func(_ *node.Node, b *bus.Bus) error {
		all, err := b.DeadLetters(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			for _, l := range all {
				if err := json.NewEncoder(e.out).Encode(listed{l.ID, l}); err != nil {
					return err
				}
			}
			return nil
		}
		if len(all) == 0 {
			fmt.Fprintln(e.out, "no dead letters")
			return nil
		}
		rows := make([][]string, 0, len(all))
		for _, l := range all {
			rows = append(rows, []string{
				strconv.FormatUint(l.ID, 10), clean(l.Category), l.At.Local().Format(time.DateTime), runOf(l), cut(clean(l.Reason), 60),
			})
		}
		return table(e, []string{"ID", "CATEGORY", "AT", "RUN", "REASON"}, rows)
	})
}

// runOf is a run id as lists show it.
func runOf(l bus.Letter) string {
	if l.Run == "" {
		return "-"
	}
	return clean(l.Run[:min(len(l.Run), 8)])
}

type deadShowCmd struct {
	letterArg `embed:""`
	JSON      bool `name:"json" help:"As JSON."`
}

// Run shows a letter.
func (c *deadShowCmd) Run(ctx context.Context, e *env) error {
	return c.letter(ctx, e, func(_ *node.Node, b *bus.Bus, l bus.Letter) error {
		past, unread := history(ctx, b, l) // told below: the letter is what matters
		if c.JSON {
			return json.NewEncoder(e.out).Encode(struct {
				listed
				Tried     []run.Failure `json:"tried,omitempty"`
				Artifacts []run.Ref     `json:"artifacts,omitempty"`
			}{listed{l.ID, l}, past.tried, past.refs})
		}
		row := func(name, text string) {
			if text != "" {
				fmt.Fprintf(e.out, "%-9s %s\n", name, fold(clean(text), 10, e.width))
			}
		}
		row("letter", strconv.FormatUint(l.ID, 10))
		row("category", l.Category)
		row("reason", l.Reason)
		row("at", l.At.Local().Format(time.DateTime))
		row("run", l.Run)
		row("worker", l.Worker)
		row("subject", l.Subject)
		for i, f := range past.tried {
			row(fmt.Sprintf("try %d", i+1), f.Category+": "+f.Message)
		}
		for _, r := range past.refs {
			row("artifact", fmt.Sprintf("%s (%d bytes)", r.SHA256, r.Size))
		}
		if len(l.Payload) > 0 {
			fmt.Fprintf(e.out, "\n%s\n", sandbox.Printable(l.Payload))
		}
		if l.Cut {
			fmt.Fprintln(e.out, "… (only the beginning was kept)")
		}
		if unread != nil {
			return fmt.Errorf("the log of its run cannot be read: %w", unread)
		}
		switch {
		case past.opened:
			fmt.Fprintf(e.out, "\n'nexus run show %s' tells the whole run\n", runOf(l))
		case l.Run != "":
			fmt.Fprintf(e.out, "\nno run was opened; 'nexus dead requeue %d' starts the task as a new one\n", l.ID)
		}
		return nil
	})
}

// past is what the log of a letter's run says about the letter's ask.
type past struct {
	// opened is false for a task that was refused: its run has no log.
	opened bool
	tried  []run.Failure
	// refs are the artifacts that the ask names.
	refs []run.Ref
}

// history reads the log of the letter's run.
func history(ctx context.Context, b *bus.Bus, l bus.Letter) (p past, err error) {
	if l.Run == "" {
		return p, nil
	}
	log, err := b.ReadLog(ctx, l.Run)
	if err != nil {
		return p, err
	}
	p.opened = len(log.Events) > 0
	for _, ev := range log.Events {
		if f := ev.Fact; f != nil && f.Failure != nil && l.Ask > 0 && string(f.By) == l.Worker {
			p.tried = append(p.tried, *f.Failure)
		}
		if ask, ok := ev.Command.(run.Ask); ok && ev.N == l.Ask {
			data, err := json.Marshal(ask)
			if err != nil {
				return p, err
			}
			if p.refs, err = archive.Refs(data); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

type deadRequeueCmd struct {
	letterArg `embed:""`
	Payload   string `predictor:"file" placeholder:"FILE" help:"Take the task from this file; - reads standard input."`
}

// Run starts the task of a letter.
func (c *deadRequeueCmd) Run(ctx context.Context, e *env) error {
	return c.letter(ctx, e, func(n *node.Node, b *bus.Bus, l bus.Letter) error {
		tenant, body, err := b.LetterTask(ctx, l)
		if c.Payload != "" && (err == nil || errors.Is(err, bus.ErrCut)) {
			body, err = readPayload(c.Payload)
		}
		if err != nil {
			return explain(l, err)
		}
		return requeue(ctx, e, n, l, tenant, body)
	})
}

// maxTask is the most bytes of a task.
const maxTask = 1 << 20

func readPayload(path string) ([]byte, error) {
	text, err := readText(path, maxTask)
	return []byte(text), err
}

// explain says what to do about a letter that cannot be started as it is.
func explain(l bus.Letter, err error) error {
	switch {
	case errors.Is(err, bus.ErrCut):
		return fmt.Errorf("letter %d holds only the beginning of its message: give the whole task with 'nexus dead requeue %d --payload FILE'", l.ID, l.ID)
	case errors.Is(err, bus.ErrNoTask):
		return fmt.Errorf("letter %d is about no task and no run, so there is nothing to start: read it with 'nexus dead show %d', then 'nexus dead drop %d'", l.ID, l.ID, l.ID)
	}
	return err
}

func requeue(ctx context.Context, e *env, n *node.Node, l bus.Letter, tenant string, body []byte) error {
	id, err := n.Bus().Requeue(ctx, l, tenant, body)
	if err != nil {
		return fmt.Errorf("%w (letter %d is kept: 'nexus dead edit %d' changes its task)", err, l.ID, l.ID)
	}
	fmt.Fprintf(e.out, "letter %d is now run %s\n", l.ID, id)
	if _, attached := n.Attached(); !attached {
		fmt.Fprintln(e.out, "nobody runs workers now: 'nexus up' works on it")
	}
	return nil
}

type deadEditCmd struct {
	letterArg `embed:""`
}

// Run lets a person change the task of a letter, then starts it.
func (c *deadEditCmd) Run(ctx context.Context, e *env) error {
	var tenant string
	var l bus.Letter
	var body []byte
	err := c.letter(ctx, e, func(_ *node.Node, b *bus.Bus, found bus.Letter) (err error) {
		l = found
		tenant, body, err = b.LetterTask(ctx, l)
		return err
	})
	if err != nil {
		return explain(l, err)
	}
	changed, err := edit(ctx, body)
	if err != nil {
		return err
	}
	if bytes.Equal(changed, body) {
		return fmt.Errorf("nothing was changed, so letter %d stays: 'nexus dead requeue %d' starts it as it is", l.ID, l.ID)
	}
	return c.letter(ctx, e, func(n *node.Node, _ *bus.Bus, l bus.Letter) error { return requeue(ctx, e, n, l, tenant, changed) })
}

// edit shows a text in the user's editor and returns what was saved. The bus
// is free meanwhile.
func edit(ctx context.Context, text []byte) (out []byte, err error) {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return nil, errors.New("no editor: set VISUAL or EDITOR, or use 'nexus dead requeue ID --payload FILE'")
	}
	dir, err := os.MkdirTemp("", "nexus-edit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var pretty bytes.Buffer
	if json.Indent(&pretty, text, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(text)
	}
	path := filepath.Join(dir, "task.json")
	if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
		return nil, err
	}
	// The variable may hold arguments, as in EDITOR="code --wait".
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path) //nolint:gosec // the user's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("editor: %w", err)
	}
	out, err = os.ReadFile(path)
	if err == nil && bytes.Equal(out, pretty.Bytes()) {
		return text, nil
	}
	return out, err
}

type deadDropCmd struct {
	IDs    []uint64 `arg:"" name:"id" predictor:"letter" help:"Numbers of letters, as in 'nexus dead ls'."`
	Common common   `embed:""`
}

// Run removes letters.
func (c *deadDropCmd) Run(ctx context.Context, e *env) error {
	return c.Common.bus(ctx, e, func(_ *node.Node, b *bus.Bus) error {
		for _, id := range c.IDs {
			switch err := b.DropLetter(ctx, id); {
			case errors.Is(err, bus.ErrNoLetter):
				return fmt.Errorf("there is no dead letter %d: 'nexus dead ls' lists them", id)
			case err != nil:
				return err
			}
			fmt.Fprintf(e.out, "letter %d is gone\n", id)
		}
		return nil
	})
}
