// Package runtest drives the pure core of a run in tests as the conductor
// does it on the bus, only without one: a fact comes in, what follows is
// appended to a log in memory, and a clock moves by hand.
package runtest

import (
	"fmt"
	"time"

	"nexuscore.dev/nexus/internal/run"
)

// Epoch is when every run of a test opens.
var Epoch = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// Run is a run with its log and its clock.
type Run struct {
	ID    string
	Log   []run.Event
	State run.State
	Now   time.Time
	// Check is called with every state and every event that led to it.
	Check func(before run.State, e run.Event, after run.State)
}

// New returns a run that has not been opened.
func New(id string) *Run {
	return &Run{ID: id, State: run.State{ID: id}, Now: Epoch}
}

// Task returns a valid task that asks for both sources, for a test to change.
func Task() run.Task {
	return run.Task{
		Tenant: "local", Dir: "/home/user/project", Home: "here",
		Sources: []run.Source{run.SourceModel, run.SourceEngine},
		Deliver: run.DeliverApply, Limits: run.DefaultLimits(),
	}
}

// Open opens the run and appends what follows.
func (r *Run) Open(t run.Task) error {
	if err := r.append(run.Event{Command: run.Opened{Task: t, At: r.Now}}); err != nil {
		return err
	}
	return r.Drain()
}

// Tell records a fact, whether or not the run waits for it, and appends what
// follows.
func (r *Run) Tell(f run.Fact) error {
	if err := r.Record(f); err != nil {
		return err
	}
	return r.Drain()
}

// Record appends the event of the fact and nothing after it, as a conductor
// does that crashes between two appends.
func (r *Run) Record(f run.Fact) error {
	f.At = r.Now
	e := run.Event{Fact: &f, Command: run.Result{}}
	if cmds := run.Decide(run.FoldFact(r.State, f)); f.Timer != "" {
		e.Command = run.Due{}
	} else if len(cmds) > 0 {
		e.Command = cmds[0]
	}
	return r.append(e)
}

// maxSteps is more than any run may append without a fact.
const maxSteps = 20

// Drain appends what the state decides until it waits.
func (r *Run) Drain() error {
	for range maxSteps {
		cmds := run.Decide(r.State)
		if len(cmds) == 0 {
			return nil
		}
		for _, c := range cmds {
			if err := r.append(run.Event{Command: c}); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("runtest: event %d: Decide never waits", r.State.N)
}

func (r *Run) append(e run.Event) error {
	e.N, e.Decider = r.State.N+1, run.Decider
	next, err := run.Fold(r.State, e)
	if err != nil {
		return err
	}
	if r.Check != nil {
		r.Check(r.State, e, next)
	}
	r.Log, r.State = append(r.Log, e), next
	return nil
}

// Pending returns the ask that waits for an answer, and its number; 0 when
// none does.
func (r *Run) Pending() (int, run.Ask) {
	for n, a := range r.State.Pending {
		return n, a
	}
	return 0, run.Ask{}
}

// Fire moves the clock to the timer's moment and lets it fire. It reports
// whether the run waits for that timer.
func (r *Run) Fire(name string) (bool, error) {
	for _, t := range r.State.Timers() {
		if t.Name != name {
			continue
		}
		if t.At.After(r.Now) {
			r.Now = t.At
		}
		return true, r.Tell(run.Fact{By: run.ByClock, Timer: name})
	}
	return false, nil
}

// Tree is a tree of that name.
func Tree(name string) run.Tree {
	return run.Tree{Hash: "tree-" + name, Manifest: run.Ref{SHA256: "manifest-" + name, Size: 100}, Files: 3, Bytes: 300}
}

// Verdict is a verdict on the tree with that many red tests.
func Verdict(kind run.VerdictKind, tree string, red int) run.Verdict {
	v := run.Verdict{
		Kind: kind, Tree: tree, Level: "full", Runner: "pytest", Counts: run.Counts{Passed: 5, Failed: red},
		Evidence: run.Ref{SHA256: "evidence-" + tree, Size: 10}, Output: run.Ref{SHA256: "output-" + tree, Size: 10},
	}
	for i := range red {
		v.Failed = append(v.Failed, fmt.Sprintf("test_calc.py::test_%d", i))
	}
	if kind != run.VerdictPassed {
		v.Reason = fmt.Sprintf("%s: %d red", kind, red)
	}
	return v
}

// Candidate is a candidate with the hash that belongs to its one change.
func Candidate(rank int, name string) run.Candidate {
	c := run.Candidate{Rank: rank, Note: name, Diff: run.Ref{SHA256: "diff-" + name, Size: 20}}
	c.Changes = []run.Change{{Path: "calc.py", Op: run.OpModify, Base: "calc-base", New: "calc-" + name, Mode: 0o644}}
	c.Hash = run.HashChanges(c.Changes)
	return c
}
