package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// step records the fact and what follows. Everything is derived from the
// state as it is in the log, so a step that was cut short is completed by the
// next delivery of its message.
func (l *lane) step(ctx context.Context, id string, e *entry, fact *run.Fact) error {
	if fact != nil {
		f := *fact
		f.At = time.Now().UTC()
		// A timer that fired is set no more, whether it is awaited now or, as
		// in a parked run, only later.
		delete(e.armed, f.Timer)
		if e.state.Awaits(f) {
			if err := l.record(ctx, id, e, f); err != nil {
				return err
			}
		}
	}
	for cmds := run.Decide(e.state); len(cmds) > 0; cmds = run.Decide(e.state) {
		for _, cmd := range cmds {
			if err := l.append(ctx, id, e, run.Event{N: e.state.N + 1, Decider: run.Decider, Command: cmd}); err != nil {
				return err
			}
		}
	}
	if e.state.Settled != nil && !e.told && l.c.cfg.Settled != nil {
		l.c.cfg.Settled(e.state)
		e.told = true
	}
	if e.state.Closed {
		l.idle = append(l.idle, id)
		return nil
	}
	return l.arm(ctx, id, e)
}

// record appends the fact with the first command that follows from it. What a
// worker says becomes a failure when it leads to an event larger than the bus
// takes; an order like that is refused.
func (l *lane) record(ctx context.Context, id string, e *entry, f run.Fact) error {
	err := l.append(ctx, id, e, consequence(e.state, f))
	if large := (*largeError)(nil); errors.As(err, &large) && f.Ask > 0 {
		f.Answer, f.Failure = nil, &run.Failure{Category: string(failure.Unexpected), Op: string(f.By), Message: large.Error()}
		err = l.append(ctx, id, e, consequence(e.state, f))
	}
	return err
}

func consequence(s run.State, f run.Fact) run.Event {
	next := run.Event{N: s.N + 1, Decider: run.Decider, Fact: &f, Command: run.Result{}}
	if f.Timer != "" {
		next.Command = run.Due{}
	} else if cmds := run.Decide(run.FoldFact(s, f)); len(cmds) > 0 {
		next.Command = cmds[0]
	}
	return next
}

// append stores the event and folds it.
func (l *lane) append(ctx context.Context, id string, e *entry, ev run.Event) error {
	next, err := run.Fold(e.state, ev)
	if err != nil {
		return err
	}
	body, err := wire.EncodeEvent(ev)
	if err != nil {
		return err
	}
	if end, ok := ev.Command.(run.Ended); ok && end.Dead != nil {
		d := end.Dead
		err := l.c.bus.bury(ctx, Letter{
			Category: d.Category, Reason: d.Reason, Run: id, Ask: d.Ask, Worker: string(d.Worker), At: time.Now().UTC(),
		})
		if err != nil {
			return err
		}
	}
	seq, err := l.c.bus.append(ctx, record{run: id, last: e.last, n: ev.N, name: ev.Command.Name(), home: next.Task.Home, body: body})
	if err != nil {
		return err
	}
	e.state, e.last = next, seq
	return nil
}

// arm sets the timers that the state waits for and this lane has not set.
func (l *lane) arm(ctx context.Context, id string, e *entry) error {
	for _, t := range e.state.Timers() {
		if e.armed[t.Name].Equal(t.At) {
			continue
		}
		if err := l.c.bus.arm(ctx, id, t); err != nil {
			return fmt.Errorf("bus: timer %s of %s: %w", t.Name, id, err)
		}
		e.armed[t.Name] = t.At
	}
	return nil
}
