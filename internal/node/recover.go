package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// recover settles what earlier owners left, before any worker runs. A run
// whose driver lives, and the run to adopt, go on. A run whose driver is dead
// is ended when a worker may have written to its folder, else parked: nobody
// asked this process to work on it. all drives also the runs that other
// systems asked for, which have no driver. A log that cannot be read stops
// that run alone.
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
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n.cfg.Log.Error().Err(err).Str("run", id).Msg("the run cannot be recovered")
		}
	}
	if err := n.undoLost(ctx); err != nil {
		return err
	}
	return n.releaseSettled(ctx)
}

func (n *Node) recoverRun(ctx context.Context, id, adopt string, all bool) error {
	s, err := n.state(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case s.Ended != nil || !n.ours(s):
	case id == adopt:
		return n.order(ctx, id, run.OrderResume, "its folder is healed again")
	case all && s.Task.Driver == nil:
		if err := n.cfg.Claims.Hold(s.Task.Dir, rollback.Claim{Run: id, State: n.cfg.State}); err != nil {
			n.cfg.Log.Debug().Err(err).Str("run", id).Msg("claim")
		}
		if s.Parked {
			return n.order(ctx, id, run.OrderResume, "a process drives the run again")
		}
	case !n.driven(s):
		return n.abandon(ctx, s, n.conductor.Order)
	}
	return n.conductor.Recover(ctx, id)
}

func (n *Node) order(ctx context.Context, id string, kind run.OrderKind, reason string) error {
	return n.conductor.Order(ctx, id, run.Order{Kind: kind, Reason: reason, Driver: n.cfg.Driver})
}

// abandon ends a run whose driver is dead when a worker may have written to
// its folder, else parks it.
func (n *Node) abandon(ctx context.Context, s run.State, order func(context.Context, string, run.Order) error) error {
	o := run.Order{Kind: run.OrderPark, Reason: "the process that drove the run has ended"}
	switch {
	case s.Writing():
		o.Kind = run.OrderCancel
	case s.Parked:
		return nil
	}
	return order(ctx, s.ID, o)
}

// ours reports whether this host can work on the run's folder.
func (n *Node) ours(s run.State) bool { return s.Task.Home == n.cfg.Rules.Home }

// driven reports whether the process that waits for the run is alive.
func (n *Node) driven(s run.State) bool {
	d := s.Task.Driver
	return d != nil && (d.Host != n.cfg.Rules.Home || rollback.ProcessAlive(d.PID, d.Start))
}

// Driven reports whether somebody goes on with a run that has not ended: the
// process that waits for it, as far as that can be seen from here, or a service
// for the runs that no process waits for.
func (n *Node) Driven(s run.State) bool {
	if s.Task.Driver == nil {
		return n.core == nil || n.srv == nil
	}
	return n.driven(s)
}

// Summary tells what a state amounts to, and whether somebody goes on with it.
func (n *Node) Summary(s run.State) run.Summary {
	sum := run.Summarise(s)
	if sum.State == run.Running && !n.Driven(s) {
		sum.State = run.Waiting
	}
	return sum
}

func (n *Node) state(ctx context.Context, id string) (run.State, error) {
	l, err := n.client.ReadLog(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	return l.State()
}

// releaseSettled gives back the folders of runs that a crash left claimed
// though they have settled.
func (n *Node) releaseSettled(ctx context.Context) error {
	claims, err := n.cfg.Claims.List()
	if err != nil {
		return err
	}
	for _, c := range claims {
		if c.State != n.cfg.State || c.Alive() {
			continue
		}
		s, err := n.state(ctx, c.Run)
		if err == nil && s.Settled != nil && s.Settled.Proven {
			err = n.free(ctx, s)
		}
		if err != nil {
			n.cfg.Log.Warn().Err(err).Str("run", c.Run).Msg("the folder's claim was not released")
		}
	}
	return nil
}

// free gives the folder of a settled run back. An undo of the run that was
// killed in the middle is taken back first: nothing stays half done.
func (n *Node) free(ctx context.Context, s run.State) error {
	if s.Ended.State == run.Approved && exists(s.Task.Dir) {
		if err := agents.Abandon(ctx, n.cfg.State, s.ID, s.Task.Dir, n.client.Artifacts()); err != nil {
			return fmt.Errorf("an undo of run %s was killed in the middle, and %s cannot be put right: %w; 'nexus undo %s' completes it",
				s.ID, s.Task.Dir, err, s.ID)
		}
	}
	return n.cfg.Claims.Release(s.ID)
}

// Restore takes back what a settled run could not take back itself, and gives
// its folder free.
func (n *Node) Restore(ctx context.Context, s run.State) error {
	if s.Origin != nil {
		err := agents.Restore(ctx, n.cfg.State, s.ID, s.Task.Dir, *s.Origin, n.client.Artifacts())
		if rollback.IsKind(err, rollback.KindBlob) { // the snapshot is gone; the journal knows what was written
			_, _, err = agents.Undo(ctx, n.cfg.State, s.ID, s.Task.Dir, n.client.Artifacts())
		}
		if err != nil {
			return fmt.Errorf("run %s left %s unproven, and it cannot be restored: %w", s.ID, s.Task.Dir, err)
		}
	}
	return n.cfg.Claims.Release(s.ID)
}

// pollOthers is how often an owner that is done looks for what is left.
const pollOthers = 100 * time.Millisecond

// ErrOthers says that runs of other processes were still open.
var ErrOthers = errors.New("other runs are still open; the commands that wait for them, or the next one, go on with them")

// AwaitOthers waits until the runs have ended that this process drives now: an
// owner that finishes first stays for what it has in hand of the commands that
// are attached to it, and ends or parks the runs of commands that have died.
// For what comes later it does not stay: those commands go on without it. tell
// is called once, with the number of runs, when there is something to wait for.
// It fails with ErrOthers when ctx ends first.
func (n *Node) AwaitOthers(ctx context.Context, tell func(open int)) error {
	if n.core == nil || n.srv == nil {
		return nil
	}
	var mine map[string]bool
	for told := false; ; told = true {
		open, err := n.others(ctx)
		switch {
		case ctx.Err() != nil:
			return ErrOthers
		case err != nil:
			return err
		}
		if mine == nil {
			mine = open
		}
		maps.DeleteFunc(mine, func(id string, _ bool) bool { return !open[id] })
		if len(mine) == 0 {
			return nil
		}
		if !told {
			tell(len(mine))
		}
		select {
		case <-ctx.Done():
			return ErrOthers
		case <-n.failed:
			return nil
		case <-time.After(pollOthers):
		}
	}
}

// others names the open runs that this process drives, and ends or parks those
// of commands that have died.
func (n *Node) others(ctx context.Context) (map[string]bool, error) {
	runs, err := n.core.Runs(ctx)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for id, closed := range runs {
		if closed {
			continue
		}
		s, err := n.state(ctx, id)
		if err != nil || !n.ours(s) || (s.Parked && !s.Writing()) {
			continue
		}
		open[id] = true
		if s.Ended == nil && s.Stop == nil && !n.driven(s) {
			if err := n.abandon(ctx, s, n.client.Order); err != nil {
				return open, err
			}
		}
	}
	return open, nil
}
