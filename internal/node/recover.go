package node

import (
	"context"
	"fmt"
	"time"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// recover settles what earlier owners left, before any worker runs. A run
// whose driver lives, and the run to adopt, go on. A run whose driver is dead
// is taken back when it wrote to its folder, else parked: nobody asked this
// process to work on it. all drives also the runs that other systems asked
// for, which have no driver.
func (n *Node) recover(ctx context.Context, adopt string, all bool) error {
	runs, err := n.core.Runs(ctx)
	if err != nil {
		return err
	}
	for id, closed := range runs {
		if closed {
			continue
		}
		if err := n.recoverRun(ctx, id, adopt, all); err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
	}
	return nil
}

func (n *Node) recoverRun(ctx context.Context, id, adopt string, all bool) error {
	s, err := n.state(ctx, id)
	if err != nil {
		return err
	}
	driven := n.driven(s) || id == adopt || (all && s.Task.Driver == nil)
	switch {
	case s.Ended != nil:
	case driven && s.Parked:
		return n.conductor.Order(ctx, id, run.Order{Kind: run.OrderResume, Reason: "a process drives the run again"})
	case driven || s.Parked:
	case s.Task.InPlace:
		return n.conductor.Order(ctx, id, run.Order{Kind: run.OrderCancel, Reason: "the process that drove the run has ended"})
	default:
		return n.conductor.Order(ctx, id, run.Order{Kind: run.OrderPark, Reason: "the process that drove the run has ended"})
	}
	return n.conductor.Recover(ctx, id)
}

// driven reports whether the process that waits for the run is alive.
func (n *Node) driven(s run.State) bool {
	d := s.Task.Driver
	if d == nil {
		return false
	}
	return d.Host != n.cfg.Rules.Home || rollback.ProcessAlive(d.PID, d.Start)
}

func (n *Node) state(ctx context.Context, id string) (run.State, error) {
	l, err := n.client.ReadLog(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	return l.State()
}

// pollOthers is how often an owner that is done looks for runs of attached
// commands.
const pollOthers = 200 * time.Millisecond

// AwaitOthers waits until no run of another living process is open: an owner
// that finishes first stays for them. tell is called once, with their number,
// when there is something to wait for.
func (n *Node) AwaitOthers(ctx context.Context, tell func(open int)) error {
	if n.core == nil || n.srv == nil {
		return nil
	}
	told := false
	for {
		open, err := n.others(ctx)
		if err != nil {
			return err
		}
		if open == 0 {
			return nil
		}
		if !told {
			tell(open)
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.failed:
			return nil
		case <-time.After(pollOthers):
		}
	}
}

// others counts the runs that are open and driven, or on their way to an end.
func (n *Node) others(ctx context.Context) (int, error) {
	runs, err := n.core.Runs(ctx)
	if err != nil {
		return 0, err
	}
	open := 0
	for id, closed := range runs {
		if closed {
			continue
		}
		s, err := n.state(ctx, id)
		if err != nil {
			return 0, err
		}
		if ending := s.Ended != nil || s.Stop != nil; ending || (!s.Parked && n.driven(s)) {
			open++
		}
	}
	return open, nil
}
