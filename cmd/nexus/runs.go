package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
)

type runCmd struct {
	Ls     runLsCmd     `cmd:"" help:"List the runs, newest first."`
	Show   runShowCmd   `cmd:"" help:"Show every attempt of a run."`
	Watch  runWatchCmd  `cmd:"" help:"Follow a run until it is closed."`
	Cancel runCancelCmd `cmd:"" help:"End a run; its folder is put back as it was."`
	Diff   runDiffCmd   `cmd:"" help:"Print a candidate of a run as a unified diff."`
	Export runExportCmd `cmd:"" help:"Write a run as a tar file, for a bug report."`
	Import runImportCmd `cmd:"" help:"Read a run that was exported elsewhere."`
}

// open returns a node that reads; it is the owner when nobody else is.
func (c common) open(ctx context.Context, e *env) (*node.Node, error) {
	cfg, err := c.config(e)
	if err != nil {
		return nil, err
	}
	return node.Open(ctx, cfg)
}

// read is with for a command that only reads: what it prints is printed when
// the bus is free again, however long a pager takes.
func (c common) read(ctx context.Context, e *env, prefix string, do func(*env, *node.Node, bus.Log, run.State) error) error {
	var out bytes.Buffer
	quiet := &env{out: &out, err: e.err, verbose: e.verbose, width: e.width}
	err := c.with(ctx, e, prefix, func(n *node.Node, _ *bus.Bus, l bus.Log, s run.State) error { return do(quiet, n, l, s) })
	_, errOut := e.out.Write(out.Bytes())
	return errors.Join(err, errOut)
}

// with calls do with the state of a run, whose id may be shortened.
func (c common) with(ctx context.Context, e *env, prefix string, do func(*node.Node, *bus.Bus, bus.Log, run.State) error) (err error) {
	n, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	id, err := n.Bus().FindRun(ctx, prefix)
	if err != nil {
		return err
	}
	log, err := n.Bus().AnyLog(ctx, id)
	if err != nil {
		return err
	}
	s, err := log.State()
	if err != nil {
		return err
	}
	return do(n, n.Bus(), log, s)
}

type runLsCmd struct {
	JSON   bool   `name:"json" help:"One JSON object per run."`
	Common common `embed:""`
}

// Run lists the runs.
func (c *runLsCmd) Run(ctx context.Context, e *env) (err error) {
	n, err := c.Common.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	states, err := states(ctx, n.Bus(), true)
	if err != nil {
		return err
	}
	slices.Reverse(states) // the newest first
	if c.JSON {
		for _, s := range states {
			if err := json.NewEncoder(e.out).Encode(n.Summary(s)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(states) == 0 {
		fmt.Fprintln(e.out, "no runs yet; start one with 'nexus heal DIR'")
		return nil
	}
	rows := make([][]string, 0, len(states))
	for _, s := range states {
		sum := n.Summary(s)
		rows = append(rows, []string{
			s.ID[:8], string(sum.State), sum.Step, strconv.Itoa(len(sum.Tries)), s.OpenedAt.Local().Format(time.DateTime), clean(sum.Dir),
		})
	}
	return table(e, []string{"RUN", "STATE", "STEP", "ATTEMPTS", "OPENED", folder}, rows)
}

type runShowCmd struct {
	ID     string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	JSON   bool   `name:"json" help:"As JSON."`
	Events bool   `help:"List the events of its log as well."`
	Common common `embed:""`
}

// Run shows a run.
func (c *runShowCmd) Run(ctx context.Context, e *env) error {
	return c.Common.read(ctx, e, c.ID, func(e *env, n *node.Node, log bus.Log, s run.State) error {
		if c.JSON {
			sum, err := proved(ctx, n, s)
			if err != nil {
				return err
			}
			return json.NewEncoder(e.out).Encode(sum)
		}
		_, err := showRun(ctx, e, newView(e, false), n, log, s, c.Events)
		return err
	})
}

// proved is the summary of a run with the difference that its tests proved.
func proved(ctx context.Context, n *node.Node, s run.State) (run.Summary, error) {
	sum := n.Summary(s)
	if cand, _ := s.Winner(); cand != nil {
		data, err := n.Bus().Artifacts().Get(ctx, cand.Diff.SHA256)
		if err != nil {
			return sum, err
		}
		sum.Diff = string(data)
	}
	return sum, nil
}

// showRun prints a run with its attempts, and its events where they are wanted.
// It returns what people noted about it.
func showRun(ctx context.Context, e *env, v *view, n *node.Node, log bus.Log, s run.State, events bool) (bus.Review, error) {
	sum, err := proved(ctx, n, s)
	if err != nil {
		return bus.Review{}, err
	}
	v.live = false
	if err := showEvents(e, v, log, s.ID, events); err != nil {
		return bus.Review{}, err
	}
	for _, a := range sum.Tries {
		fmt.Fprintf(e.out, "\nattempt %d  %s  %s", a.N, a.Source, a.Status)
		if a.Gate != "" {
			fmt.Fprintf(e.out, "  gate %s", a.Gate)
		}
		if a.Reason != "" {
			fmt.Fprintf(e.out, "\n  %s", fold(clean(a.Reason), 2, e.width))
		}
		for _, id := range a.FailedTests {
			fmt.Fprintf(e.out, "\n  red: %s", fold(clean(id), 7, e.width))
		}
	}
	if len(sum.Tries) > 0 {
		fmt.Fprintln(e.out)
	}
	v.Result(sum)
	note, err := n.Bus().Review(ctx, s.ID)
	if err == nil && note.Undone {
		fmt.Fprintf(e.out, "  undone    by %s, %s\n", clean(note.By), note.At.Local().Format(time.DateTime))
	}
	return note, err
}

// showEvents prints what every event brought; with all of them each also says
// what followed from it.
func showEvents(e *env, v *view, log bus.Log, id string, all bool) error {
	s := run.State{ID: id}
	for _, ev := range log.Events {
		var err error
		if s, err = run.Fold(s, ev); err != nil {
			return err
		}
		text, ok := describe(ev, s)
		switch {
		case all:
			if _, first := ev.Command.(run.Opened); !first {
				text = strings.TrimSpace(text + "  → " + ev.Command.Name())
			}
			fmt.Fprintf(e.out, "%4d  %s\n", ev.N, fold(text, 6, e.width))
		case text != "":
			v.line(mark(ok), text)
		}
	}
	return nil
}

type runWatchCmd struct {
	ID     string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	JSON   bool   `name:"json" help:"One JSON object per event."`
	Common common `embed:""`
}

// Run follows a run.
func (c *runWatchCmd) Run(ctx context.Context, e *env) error {
	return c.Common.with(ctx, e, c.ID, func(n *node.Node, b *bus.Bus, _ bus.Log, s run.State) error {
		if _, attached := n.Attached(); !attached && c.Common.NATS == "" && !s.Closed {
			return fmt.Errorf("nobody drives run %s now: 'nexus heal %s' continues it", s.ID, s.Task.Dir)
		}
		v := newView(e, c.JSON)
		last := s
		err := b.Follow(ctx, s.ID, func(ev run.Event, s run.State) bool {
			last = s
			v.Event(ev, s)
			return !s.Closed && !s.Parked
		})
		if err != nil {
			return err
		}
		sum := run.Summarise(last)
		v.Result(sum)
		if sum.Status() != 0 {
			return exitError(sum.Status())
		}
		return nil
	})
}

type runCancelCmd struct {
	ID     string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	Common common `embed:""`
}

// Run cancels a run and waits until it has settled.
func (c *runCancelCmd) Run(ctx context.Context, e *env) (err error) {
	ctx, stop := signal.NotifyContext(ctx, node.Signals()...)
	defer stop()
	n, err := c.Common.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	id, err := n.Bus().FindRun(ctx, c.ID)
	if err != nil {
		return err
	}
	log, err := n.Bus().ReadLog(ctx, id)
	if err != nil {
		return err
	}
	if s, err := log.State(); err != nil || s.Closed {
		if err == nil {
			fmt.Fprintf(e.out, "run %s has ended already: %s; there is nothing to cancel\n", id, s.Ended.State)
		}
		return err
	}
	if err := n.Start(ctx, "", false); err != nil {
		return err
	}
	if err := n.Bus().Order(ctx, id, run.Order{Kind: run.OrderCancel, Reason: "cancelled by the user"}); err != nil {
		return err
	}
	v := newView(e, false)
	var last run.State
	err = n.Bus().Follow(ctx, id, func(_ run.Event, s run.State) bool { last = s; return !s.Closed })
	if err != nil {
		return fmt.Errorf("run %s has not ended yet (%w); its next heal, or the process that runs the bus, ends it", id, err)
	}
	sum := run.Summarise(last)
	v.Result(sum)
	if err := n.AwaitOthers(ctx, func(open int) { v.Note(fmt.Sprintf("staying for %d other run(s)", open)) }); err != nil {
		return err
	}
	if !sum.Proven {
		return exitError(1)
	}
	return nil
}

type runDiffCmd struct {
	ID      string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	Attempt int    `help:"The attempt; default: the one that won, else the last with a candidate."`
	Common  common `embed:""`
}

// Run prints a candidate's diff as it is, ready for git apply.
func (c *runDiffCmd) Run(ctx context.Context, e *env) error {
	return c.Common.read(ctx, e, c.ID, func(e *env, n *node.Node, _ bus.Log, s run.State) error {
		found, err := c.candidate(s)
		if err != nil {
			return err
		}
		data, err := n.Bus().Artifacts().Get(ctx, found.SHA256)
		if err != nil {
			return err
		}
		_, err = e.out.Write(data)
		return err
	})
}

// candidate finds the difference that is meant, or says why there is none.
func (c *runDiffCmd) candidate(s run.State) (*run.Ref, error) {
	sum := run.Summarise(s)
	var found *run.Ref
	var whole []string
	why := cmp.Or(sum.Reason, "it is at the step "+sum.Step)
	for _, a := range sum.Tries {
		if a.Diff != nil {
			whole = append(whole, strconv.Itoa(a.N))
		}
		if c.Attempt == 0 || c.Attempt == a.N {
			found = cmp.Or(a.Diff, found)
		}
		if c.Attempt == a.N && a.Diff == nil {
			why = cmp.Or(a.Reason, string(a.Status), why)
		}
	}
	switch {
	case found != nil:
		return found, nil
	case len(whole) == 0:
		return nil, fmt.Errorf("run %s has no candidate that the gates let through: %s", s.ID[:8], clean(why))
	case c.Attempt > len(sum.Tries) || c.Attempt < 0:
		return nil, fmt.Errorf("run %s has no attempt %d; those with a candidate: %s", s.ID[:8], c.Attempt, strings.Join(whole, ", "))
	}
	return nil, fmt.Errorf("attempt %d of run %s has no candidate (%s); those with one: %s", c.Attempt, s.ID[:8], clean(why), strings.Join(whole, ", "))
}
