package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

type reviewCmd struct {
	Ls      reviewLsCmd      `cmd:"" help:"List the runs that wait for a person, oldest first."`
	Show    reviewShowCmd    `cmd:"" help:"Show everything that was tried in a run, and what can be decided."`
	Approve reviewApproveCmd `cmd:"" help:"Deliver a proved fix that only a person may approve; it is tested again."`
	Patch   reviewPatchCmd   `cmd:"" help:"Take a difference of your own through the gates and tests, and deliver it."`
	Retry   reviewRetryCmd   `cmd:"" help:"Ask the sources again, with a fresh budget and a hint."`
	Reject  reviewRejectCmd  `cmd:"" help:"Close a run without doing anything more."`
	Assign  reviewAssignCmd  `cmd:"" help:"Note who looks at a run."`
}

// Help implements kong's help provider.
func (reviewCmd) Help() string {
	return `A run that ended without approval waits for a person. A decision never changes that run: approve, patch and retry
open a run of their own, bound to the project and the fix that the person saw. When either is another one by now, it ends
without writing anything.

Examples:
  nexus review ls
  nexus review show 2qcab5
  nexus review approve 2qcab5
  nexus review patch 2qcab5 my.patch
  nexus review retry 2qcab5 --hint "the rounding is done in money.py"
  nexus review reject 2qcab5 --reason "the test is wrong"`
}

// reviewAge is how long a run can be decided about: later the person would
// decide about a project that nobody looks at any more.
const reviewAge = 30 * 24 * time.Hour

// item is a run that ended without approval, and what became of it.
type item struct {
	state    run.State
	note     bus.Review
	children []run.State
	solved   bool
}

// status says in a word where the item stands now.
func (i item) status() string { return i.statusAt(time.Now()) }

func (i item) statusAt(now time.Time) string {
	switch last := len(i.children) - 1; {
	case i.solved:
		return "solved"
	case i.note.Rejected:
		return "rejected"
	case last >= 0 && i.children[last].Ended == nil:
		return "in work"
	case now.Sub(i.state.EndedAt) > reviewAge:
		return "expired"
	case i.state.WantsPerson():
		return "waiting"
	case i.state.BadInput:
		return "bad input"
	}
	return "cancelled"
}

// items lists the runs that ended without approval, oldest first. A run that a
// decision opened is part of the item that it is about. An item is solved by
// any later run of its folder that was approved.
func items(ctx context.Context, b *bus.Bus) ([]item, error) {
	states, err := states(ctx, b, false)
	if err != nil {
		return nil, err
	}
	return itemsOf(ctx, b, states)
}

// itemsOf is items for all runs of this bus, in the order in which they opened.
func itemsOf(ctx context.Context, b *bus.Bus, states []run.State) ([]item, error) {
	children := map[string][]run.State{}
	solved := map[string]time.Time{}
	var out []item
	for _, s := range states {
		if s.Ended != nil && s.Ended.State == run.Approved {
			solved[s.Task.Dir] = s.OpenedAt
		}
		switch {
		case s.Task.Child != nil:
			root := ancestor(states, s)
			children[root] = append(children[root], s)
		case s.Ended != nil && s.Ended.State != run.Approved:
			note, err := b.Review(ctx, s.ID)
			if err != nil {
				return nil, err
			}
			out = append(out, item{state: s, note: note})
		}
	}
	for i := range out {
		s := out[i].state
		out[i].children, out[i].solved = children[s.ID], solved[s.Task.Dir].After(s.OpenedAt)
	}
	return out, nil
}

// states reads every run of this bus, and those that were imported where they
// are wanted, the oldest first.
func states(ctx context.Context, b *bus.Bus, imported bool) ([]run.State, error) {
	ids, err := b.Runs(ctx)
	if err != nil {
		return nil, err
	}
	if imported {
		others, err := b.Imported(ctx)
		if err != nil {
			return nil, err
		}
		for _, id := range others {
			ids[id] = true
		}
	}
	var out []run.State
	for id := range ids {
		log, err := b.AnyLog(ctx, id)
		if err != nil {
			return nil, err
		}
		s, err := log.State()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b run.State) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return out, nil
}

// ancestor is the run that the first of a chain of decisions was about.
func ancestor(all []run.State, s run.State) string {
	for range all { // bounds a chain that a stranger made circular
		i := slices.IndexFunc(all, func(o run.State) bool { return o.ID == s.Task.Child.Parent })
		if i < 0 || all[i].Task.Child == nil {
			break
		}
		s = all[i]
	}
	return s.Task.Child.Parent
}

type reviewLsCmd struct {
	All    bool   `help:"Also what is decided, expired or cancelled, and runs that ended for bad input."`
	JSON   bool   `name:"json" help:"One JSON object a run."`
	Common common `embed:""`
}

// listedItem is an item as --json shows it.
type listedItem struct {
	Status   string   `json:"status"`
	Assignee string   `json:"assignee,omitempty"`
	Children []string `json:"children,omitempty"`
	run.Summary
}

// Run lists the items.
func (c *reviewLsCmd) Run(ctx context.Context, e *env) error {
	return c.Common.bus(ctx, e, func(_ *node.Node, b *bus.Bus) error {
		all, err := items(ctx, b)
		if err != nil {
			return err
		}
		if !c.All {
			all = slices.DeleteFunc(all, func(i item) bool { return i.status() != "waiting" && i.status() != "in work" })
		}
		if c.JSON {
			for _, i := range all {
				l := listedItem{Status: i.status(), Assignee: i.note.Assignee, Summary: run.Summarise(i.state)}
				for _, child := range i.children {
					l.Children = append(l.Children, child.ID)
				}
				if err := json.NewEncoder(e.out).Encode(l); err != nil {
					return err
				}
			}
			return nil
		}
		if len(all) == 0 {
			fmt.Fprintln(e.out, "nothing waits for a person")
			return nil
		}
		rows := make([][]string, 0, len(all))
		for _, i := range all {
			s := i.state
			rows = append(rows, []string{
				s.ID[:8], i.status(), s.EndedAt.Local().Format(time.DateTime), orDash(clean(i.note.Assignee)), clean(s.Task.Dir),
				middle(clean(s.Ended.Reason), mostText),
			})
		}
		return table(e, []string{"RUN", "STATUS", "SINCE", "ASSIGNEE", folder, "REASON"}, rows)
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type reviewShowCmd struct {
	ID     string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	Common common `embed:""`
}

// Run shows the run as 'run show' does, and what can be decided.
func (c *reviewShowCmd) Run(ctx context.Context, e *env) error {
	return c.Common.read(ctx, e, c.ID, func(e *env, n *node.Node, log bus.Log, s run.State) error {
		v := newView(e, false)
		v.decides = true
		note, err := showRun(ctx, e, v, n, log, s, false)
		if err != nil {
			return err
		}
		if note.Assignee != "" {
			fmt.Fprintf(e.out, "  assigned  %s\n", clean(note.Assignee))
		}
		if note.Rejected {
			fmt.Fprintf(e.out, "  rejected  by %s: %s\n", clean(note.By), clean(note.Reason))
			return nil
		}
		if err := undecided(s, note); err != nil {
			fmt.Fprintln(e.out, fold(err.Error(), 0, e.width))
			return nil //nolint:nilerr // it says what can be decided: nothing
		}
		whatToDo(e, s)
		return nil
	})
}

// whatToDo lists the decisions about a run.
func whatToDo(e *env, s run.State) {
	fmt.Fprintln(e.out, "\nWhat you can do:")
	if cand, _ := s.Winner(); cand != nil {
		fmt.Fprintf(e.out, "  nexus review approve %s            the fix above is proved: deliver it\n", s.ID[:8])
	}
	for _, a := range run.Summarise(s).Tries {
		if a.Diff != nil {
			fmt.Fprintf(e.out, "  nexus run diff %s --attempt %d     the fix of attempt %d, ready for git apply\n", s.ID[:8], a.N, a.N)
		}
	}
	fmt.Fprintf(e.out, "  nexus review patch %s FILE         deliver a difference of your own\n", s.ID[:8])
	fmt.Fprintf(e.out, "  nexus review retry %s --hint TEXT  ask again\n", s.ID[:8])
	fmt.Fprintf(e.out, "  nexus review reject %s             close it\n", s.ID[:8])
}

// undecided says why a run cannot be decided about, or nil.
func undecided(s run.State, note bus.Review) error {
	switch {
	case s.Ended == nil:
		return fmt.Errorf("run %s has not ended: 'nexus run watch %s'", s.ID, s.ID[:8])
	case s.Ended.State == run.Approved:
		return fmt.Errorf("run %s is approved: there is nothing to decide", s.ID)
	case s.Settled == nil:
		return fmt.Errorf("run %s is still being taken back: 'nexus heal %s' ends it", s.ID, s.Task.Dir)
	case note.Rejected:
		return fmt.Errorf("run %s was rejected by %s: %s", s.ID, note.By, note.Reason)
	case time.Since(s.EndedAt) > reviewAge:
		return fmt.Errorf("run %s ended on %s and can no longer be decided about: heal the folder anew", s.ID, s.EndedAt.Local().Format(time.DateOnly))
	}
	return nil
}

// deciding are the flags of a decision.
type deciding struct {
	ID     string `arg:"" predictor:"undecided" help:"The run; its first characters are enough."`
	By     string `placeholder:"NAME" env:"NEXUS_REVIEWER" help:"Who decides; default: your user name."`
	Common common `embed:""`
}

// who names the person who decides.
func (c deciding) who() (string, error) {
	if c.By != "" {
		return c.By, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("who decides? name yourself with --by: %w", err)
	}
	return u.Username, nil
}

// about reads the run that is decided about, and its note.
func (c deciding) about(ctx context.Context, e *env, do func(*bus.Bus, run.State, bus.Review) error) error {
	return c.Common.with(ctx, e, c.ID, func(_ *node.Node, b *bus.Bus, log bus.Log, s run.State) error {
		if log.Imported {
			return fmt.Errorf("run %s was imported: its folder is elsewhere, decide there", s.ID)
		}
		note, err := b.Review(ctx, s.ID)
		if err != nil {
			return err
		}
		if err := undecided(s, note); err != nil {
			return err
		}
		return do(b, s, note)
	})
}

// opening are the flags of a decision that opens a run.
type opening struct {
	deciding `embed:""`
	Policy   string `predictor:"file" placeholder:"FILE" env:"NEXUS_POLICY" help:"Rules file for what may be delivered without a person, see 'nexus policy'."`
	JSON     bool   `name:"json" help:"One JSON object per event; the last one is the result."`
}

// decide opens the run of a decision and follows it like a heal.
func (c opening) decide(e *env, child run.Child, change func(run.State, *wire.Heal) error) error {
	view := newView(e, c.JSON)
	return told(view, func() error {
		by, err := c.who()
		if err != nil {
			return err
		}
		var task wire.Heal
		err = c.about(context.Background(), e, func(_ *bus.Bus, s run.State, _ bus.Review) error {
			task = wire.HealOf(s.Task)
			child.Parent, child.By = s.ID, by
			if s.Origin != nil {
				child.Base = s.Origin.Hash
			}
			task.Child = &child
			return change(s, &task)
		})
		if err != nil {
			return err
		}
		cfg, err := c.Common.config(e)
		if err != nil {
			return err
		}
		return drive(e, view, cfg, c.Policy, task)
	}())
}

type reviewApproveCmd struct {
	opening `embed:""`
}

// Run approves the fix that the run proved.
func (c *reviewApproveCmd) Run(e *env) error {
	return c.decide(e, run.Child{Decision: run.DecideApprove}, func(s run.State, h *wire.Heal) error {
		cand, _ := s.Winner()
		if cand == nil {
			return fmt.Errorf("run %s has no fix that its tests proved, so there is nothing to approve: 'nexus review show %s' lists the attempts", s.ID, s.ID[:8])
		}
		h.Child.Text, h.Child.Candidate = &cand.Diff, cand.Hash
		h.Sources = []string{string(run.SourcePerson)}
		return nil
	})
}

type reviewPatchCmd struct {
	opening `embed:""`
	File    string `arg:"" predictor:"file" help:"A unified diff against the project as it is; - reads standard input."`
}

// Run takes a person's own difference through the pipeline.
func (c *reviewPatchCmd) Run(e *env) error {
	text, err := readText(c.File, run.MaxPatch)
	if err != nil {
		return err
	}
	return c.decide(e, run.Child{Decision: run.DecidePatch, Patch: text}, func(s run.State, h *wire.Heal) error {
		if s.Origin == nil {
			return fmt.Errorf("run %s ended before it had looked at the project: heal the folder anew", s.ID)
		}
		h.Sources = []string{string(run.SourcePerson)}
		return nil
	})
}

// readText reads a file, or standard input, of at most that many bytes.
func readText(path string, most int64) (string, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(data)) > most:
		return "", fmt.Errorf("%s has more than %d bytes, which is the limit", path, most)
	case len(data) == 0:
		return "", fmt.Errorf("%s is empty", path)
	}
	return string(data), nil
}

type reviewRetryCmd struct {
	opening  `embed:""`
	Hint     string   `placeholder:"TEXT" help:"What the sources should know."`
	Source   []string `enum:"model,engine" placeholder:"NAME" help:"Where fixes come from, in this order; default: as before."`
	MaxCalls *count   `placeholder:"N" help:"Most model calls; default: as before."`
}

// Run asks the sources again.
func (c *reviewRetryCmd) Run(e *env) error {
	return c.decide(e, run.Child{Decision: run.DecideRetry, Hint: c.Hint}, func(_ run.State, h *wire.Heal) error {
		h.Sources = slices.DeleteFunc(h.Sources, func(src string) bool { return src == string(run.SourcePerson) })
		if len(c.Source) > 0 {
			h.Sources = c.Source
		}
		if c.MaxCalls != nil {
			h.Limits.ModelCalls = (*int)(c.MaxCalls)
		}
		return nil
	})
}

type reviewRejectCmd struct {
	deciding `embed:""`
	Reason   string `placeholder:"TEXT" help:"Why, for those who look later."`
}

// Run closes a run.
func (c *reviewRejectCmd) Run(ctx context.Context, e *env) error {
	by, err := c.who()
	if err != nil {
		return err
	}
	return c.about(ctx, e, func(b *bus.Bus, s run.State, note bus.Review) error {
		note.Rejected, note.By, note.Reason, note.At = true, by, c.Reason, time.Now().UTC()
		if err := b.Note(ctx, note); err != nil {
			return err
		}
		fmt.Fprintf(e.out, "run %s is rejected by %s\n", s.ID, by)
		return nil
	})
}

type reviewAssignCmd struct {
	ID     string `arg:"" predictor:"undecided" help:"The run; its first characters are enough."`
	Name   string `arg:"" help:"Who looks at it; an empty name takes the assignment back."`
	Common common `embed:""`
}

// Run notes who looks at a run.
func (c *reviewAssignCmd) Run(ctx context.Context, e *env) error {
	d := deciding{ID: c.ID, Common: c.Common}
	return d.about(ctx, e, func(b *bus.Bus, s run.State, note bus.Review) error {
		note.Assignee, note.At = c.Name, time.Now().UTC()
		if err := b.Note(ctx, note); err != nil {
			return err
		}
		fmt.Fprintf(e.out, "run %s: %s\n", s.ID, orDash(c.Name))
		return nil
	})
}
