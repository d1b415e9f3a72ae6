package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"nexuscore.dev/nexus/internal/run"
)

// errRefused says that the task was not let in.
var errRefused = errors.New("the task was refused")

// closingWait is how long a heal waits for the report after its run has
// settled.
const closingWait = 10 * time.Second

// lookForRefusal is how often the dead letter of a task is looked for that
// opens no run.
const lookForRefusal = time.Second

// watch follows a run until it is closed, or a while longer than settled. When
// stopping is closed the run is cancelled, whether it is open yet or not.
func (h *Heal) watch(ctx context.Context, id string, show func(run.Event, run.State)) (run.State, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer func() {
		cancel(nil)
		helpers.Wait() // they use the node, which may be another one soon
	}()
	var last run.State
	var opened atomic.Bool
	stuck := time.AfterFunc(math.MaxInt64, func() { cancel(errStuck) })
	defer stuck.Stop()
	helpers.Go(func() { h.refusal(ctx, id, &opened, cancel) })
	helpers.Go(func() { h.cancelOn(ctx, id) })
	err := h.node.Bus().Follow(ctx, id, func(ev run.Event, s run.State) bool {
		last = s
		opened.Store(true)
		show(ev, s)
		if s.N == 1 && h.course.isStopped() {
			h.order(ctx, id) // the order that came before the run may be lost
		}
		stuck.Reset(untilStuck(s, time.Now()))
		if s.Settled != nil && !s.Closed {
			time.AfterFunc(closingWait, func() { cancel(errLate) })
		}
		return !s.Closed
	})
	switch cause := context.Cause(ctx); {
	case err == nil:
		return last, nil
	case errors.Is(cause, errLate):
		return last, nil
	case errors.Is(cause, errStuck):
		return last, fmt.Errorf("run %s %w: 'nexus doctor' may say why; 'nexus heal %s' continues it or puts the folder back", id, cause, h.task.Dir)
	case cause != nil && !errors.Is(cause, context.Canceled):
		return last, cause
	}
	return last, err
}

// replayTime is how long the events of a log that exist already may take to
// come: until then nobody knows whether an old run goes on.
const replayTime = 30 * time.Second

// untilStuck is how long to wait after a state for the next one.
func untilStuck(s run.State, now time.Time) time.Duration {
	at := s.Overdue()
	if at.IsZero() {
		return math.MaxInt64
	}
	return max(at.Sub(now), replayTime)
}

// errStuck says that a run is not ended by its own limits: nothing can be
// recorded any more, as when its streams were removed.
var errStuck = errors.New("should have ended long ago and has not")

// errLate says that the report of a settled run is not waited for any more.
var errLate = errors.New("the report is late")

// refusal looks for the dead letter of a task that was never let in, and for
// the end of the work in this process.
func (h *Heal) refusal(ctx context.Context, id string, opened *atomic.Bool, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(lookForRefusal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.node.Failed():
			cancel(fmt.Errorf("%w; run %s has not ended: then run 'nexus heal %s' again, which continues it or puts the folder back", h.node.Failure(), id, h.task.Dir))
			return
		case <-tick.C:
		}
		if opened.Load() {
			continue
		}
		if l, err := h.node.Bus().Refusal(ctx, id); err == nil && l != nil {
			cancel(fmt.Errorf("%w: %s", errRefused, l.Reason))
			return
		}
	}
}

// cancelOn cancels the run when the heal is stopped.
func (h *Heal) cancelOn(ctx context.Context, id string) {
	select {
	case <-ctx.Done():
	case <-h.stopping:
		h.order(ctx, id)
	}
}

func (h *Heal) order(ctx context.Context, id string) {
	err := h.node.Bus().Order(ctx, id, run.Order{Kind: run.OrderCancel, Reason: "cancelled by the user"})
	if err != nil && ctx.Err() == nil {
		h.show.Warn(fmt.Errorf("the run cannot be cancelled: %w", err))
	}
}

// finish shows how the run ended, gives its folder back and stays for others.
// Errors after the run has ended are told and change nothing of it.
func (h *Heal) finish(ctx context.Context, s run.State, err error) (run.Summary, error) {
	if err != nil {
		return run.Summary{}, err
	}
	sum := run.Summarise(s)
	sum.Diff = h.diff(ctx, s)
	h.show.Result(sum)
	if s.Settled != nil && s.Settled.Proven {
		if err := h.cfg.Claims.Release(s.ID); err != nil {
			h.show.Warn(err)
		}
	}
	staying, leave := context.WithCancel(ctx)
	defer leave()
	if err := h.course.enter(stageStaying, s.ID, leave); err != nil {
		return sum, err
	}
	err = h.node.AwaitOthers(staying, func(open int) {
		h.show.Note(fmt.Sprintf("this process also runs the bus for %d other run(s); it stays until they have ended; after Ctrl-C their commands go on without it", open))
	})
	if err != nil {
		h.show.Warn(err)
	}
	return sum, nil
}

// diff is the text of the candidate that won.
func (h *Heal) diff(ctx context.Context, s run.State) string {
	c, _ := s.Winner()
	if c == nil {
		return ""
	}
	data, err := h.node.Bus().Artifacts().Get(ctx, c.Diff.SHA256)
	if err != nil {
		h.show.Warn(fmt.Errorf("the diff cannot be shown: %w", err))
		return ""
	}
	return string(data)
}
