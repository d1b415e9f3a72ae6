package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// claim takes the folder in the registry of this user. The run that it returns
// was interrupted and comes first.
func (h *Heal) claim(id string) (*rollback.Claim, error) {
	prev, err := h.cfg.Claims.Acquire(h.task.Dir, rollback.Claim{Run: id, State: h.cfg.State})
	lost, state := "", ""
	var busy *rollback.BusyError
	switch {
	case errors.As(err, &busy) && busy.Dead && lostState(busy.Claim):
		lost, state = busy.Run, busy.State
	case err == nil && prev != nil && lostState(*prev):
		lost, state = prev.Run, prev.State
	default:
		return prev, err
	}
	// Nothing can continue a run whose state folder was removed, and the
	// journal that could take it back went with it. A person has to look.
	if err := errors.Join(h.cfg.Claims.Release(lost), h.cfg.Claims.Release(id)); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the state of run %s, which was interrupted on this folder, is gone (%s): nothing can say whether the folder is as it was; "+
		"look at it, then run 'nexus heal %s' again", lost, state, h.task.Dir)
}

// lostState reports whether the state folder of a claim is gone, or is a new one
// in its place: the file that names its home is younger than the claim.
func lostState(c rollback.Claim) bool {
	if !exists(c.State) {
		return true
	}
	info, err := os.Stat(filepath.Join(c.State, homeFile))
	return err == nil && info.ModTime().After(c.Since)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// resume goes on with the interrupted run of this folder when it was started
// with the same settings, and returns how that ended. Otherwise it ends that
// run, or takes back what it left, hands the folder to run own, and returns a
// state that has not ended.
func (h *Heal) resume(ctx context.Context, own string, prev rollback.Claim) (run.State, error) {
	s, err := h.interrupted(ctx, prev.Run)
	if err != nil {
		return run.State{}, err
	}
	switch {
	case s.N == 0:
		err = h.undo(ctx, prev)
	case s.Settled != nil && !s.Settled.Proven:
		h.show.Note("restoring what run " + s.ID + " left unproven")
		err = h.node.Restore(ctx, s)
	case s.Settled == nil && s.Ended == nil && h.same(s.Task):
		h.show.Note(fmt.Sprintf("continuing run %s, which was interrupted at step %s", s.ID, s.Step()))
		return h.goOn(ctx, s.ID, run.Order{Kind: run.OrderResume, Driver: h.task.Driver, Reason: "the folder is healed again"}, h.event)
	case s.Settled == nil:
		h.show.Note(fmt.Sprintf("ending run %s first, which was interrupted at step %s", s.ID, s.Step()))
		order := run.Order{Kind: run.OrderCancel, Reason: "interrupted, and asked for again with other settings"}
		s, err = h.goOn(ctx, s.ID, order, func(run.Event, run.State) {})
		if err == nil && s.Settled != nil && !s.Settled.Proven {
			err = h.node.Restore(ctx, s)
		}
	default:
		err = h.node.free(ctx, s)
	}
	if err != nil {
		return run.State{}, err
	}
	if err := h.cfg.Claims.Release(prev.Run); err != nil {
		return run.State{}, err
	}
	_, err = h.cfg.Claims.Acquire(h.task.Dir, rollback.Claim{Run: own, State: h.cfg.State})
	return run.State{}, err
}

// goOn gives an interrupted run an order and follows it to its end.
func (h *Heal) goOn(ctx context.Context, id string, o run.Order, show func(run.Event, run.State)) (run.State, error) {
	if err := h.running(id); err != nil {
		return run.State{}, fmt.Errorf("%w; run %s, which was interrupted, has still to be ended: run 'nexus heal %s' again", err, id, h.task.Dir)
	}
	if err := h.node.Bus().Order(ctx, id, o); err != nil {
		return run.State{}, err
	}
	return h.watch(ctx, id, show)
}

// undo takes back what a run left whose log is gone from the state folder. A
// run that never began has left nothing.
func (h *Heal) undo(ctx context.Context, c rollback.Claim) error {
	text, err := h.node.undo(ctx, c)
	if text != "" {
		h.show.Note(text)
	}
	return err
}

// queueWait is how long a task may stay in the queue before it is given up.
const queueWait = 10 * time.Second

// queuePoll is how often the queue is looked at.
const queuePoll = 20 * time.Millisecond

// interrupted is the state of an interrupted run. Its task may still be in the
// queue: then the run opens now, and must be waited for before the folder is
// given to another one.
func (h *Heal) interrupted(ctx context.Context, id string) (run.State, error) {
	ctx, cancel := context.WithTimeout(ctx, queueWait)
	defer cancel()
	for {
		s, err := h.node.state(ctx, id)
		if err != nil || s.N > 0 {
			return s, err
		}
		queued, err := h.node.Bus().QueuedTasks(ctx)
		if err != nil || queued == 0 {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("run %s is still in the queue: %w", id, ctx.Err())
		case <-time.After(queuePoll):
		}
	}
}

// same reports whether a run was started with the settings of this heal.
func (h *Heal) same(t run.Task) bool {
	mine, err := h.cfg.Rules.Admit(tenantLocal, h.task)
	if err != nil {
		return false
	}
	mine.Driver, t.Driver = nil, nil
	return reflect.DeepEqual(mine, t)
}
