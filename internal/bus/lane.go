package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// lane works on the runs of its share, one message after the other.
type lane struct {
	c    *Conductor
	in   chan work
	runs map[string]*entry
}

// entry is a run as this lane knows it. Another conductor may have moved it
// on; the compare-and-set finds out.
type entry struct {
	state run.State
	last  uint64
	armed map[string]time.Time
}

// maxCached bounds the runs that a lane remembers.
const maxCached = 256

func (l *lane) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-l.in:
			l.handle(ctx, w)
		}
	}
}

func (l *lane) handle(ctx context.Context, w work) {
	err := w.do(ctx, l)
	if err == nil {
		fault.Point("bus.conductor.ack")
		err = w.msg.DoubleAck(ctx)
		fault.Point("bus.conductor.acked")
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	log := l.c.bus.log
	log.Warn().Err(err).Str("subject", w.msg.Subject()).Msg("given back")
	if err := w.msg.NakWithDelay(retryDelay); err != nil {
		log.Warn().Err(err).Str("subject", w.msg.Subject()).Msg("give back")
	}
}

// load returns the run as it is, from memory or from its log.
func (l *lane) load(ctx context.Context, id string) (*entry, error) {
	if e := l.runs[id]; e != nil {
		return e, nil
	}
	log, err := l.c.bus.ReadLog(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := log.State()
	if err != nil {
		return nil, fmt.Errorf("bus: log of %s: %w", id, err)
	}
	if len(l.runs) >= maxCached {
		clear(l.runs)
	}
	e := &entry{state: s, last: log.Last, armed: map[string]time.Time{}}
	l.runs[id] = e
	return e, nil
}

// open starts a run unless it exists.
func (l *lane) open(ctx context.Context, id string, task run.Task) error {
	e, err := l.load(ctx, id)
	if err != nil {
		return err
	}
	if e.state.N == 0 {
		first := run.Event{N: 1, Decider: run.Decider, Command: run.Opened{Task: task, At: time.Now().UTC()}}
		if err := l.append(ctx, id, e, first); err != nil && !errors.Is(err, errConflict) {
			return err
		}
	}
	return l.advance(ctx, id, nil)
}

// maxConflicts bounds how often a lane reads a log again for one message.
const maxConflicts = 20

// advance records the fact, if the run waits for it, and everything that
// follows from the run's state.
func (l *lane) advance(ctx context.Context, id string, fact *run.Fact) error {
	for range maxConflicts {
		e, err := l.load(ctx, id)
		if err != nil {
			return err
		}
		if e.state.N == 0 {
			l.c.bus.log.Warn().Str("run", id).Msg("fact about an unknown run")
			delete(l.runs, id)
			return nil
		}
		err = l.step(ctx, id, e, fact)
		if !errors.Is(err, errConflict) {
			if err != nil {
				delete(l.runs, id)
			}
			return err
		}
		delete(l.runs, id)
	}
	return fmt.Errorf("bus: run %s: others kept moving it on", id)
}

func (l *lane) step(ctx context.Context, id string, e *entry, fact *run.Fact) error {
	if fact != nil && awaited(e.state, *fact) {
		f := *fact
		f.At = time.Now().UTC()
		next := run.Event{N: e.state.N + 1, Decider: run.Decider, Fact: &f, Command: run.Result{}}
		if cmds := run.Decide(run.FoldFact(e.state, f)); f.Timer != "" {
			next.Command = run.Due{}
		} else if len(cmds) > 0 {
			next.Command = cmds[0]
		}
		if err := l.append(ctx, id, e, next); err != nil {
			return err
		}
	}
	for cmds := run.Decide(e.state); len(cmds) > 0; cmds = run.Decide(e.state) {
		for _, cmd := range cmds {
			if err := l.append(ctx, id, e, run.Event{N: e.state.N + 1, Decider: run.Decider, Command: cmd}); err != nil {
				return err
			}
		}
	}
	return l.timers(ctx, id, e)
}

// awaited reports whether the fact is news to the run.
func awaited(s run.State, f run.Fact) bool {
	switch {
	case f.Timer != "":
		for _, t := range s.Timers() {
			if t.Name == f.Timer && !t.At.After(time.Now()) {
				return true
			}
		}
		return false
	case f.Order != nil:
		return s.Ended == nil
	}
	ask, ok := s.Pending[f.Ask]
	return ok && (f.By == run.BySweeper || f.By == run.By(ask.Worker))
}

// append stores the event and folds it.
func (l *lane) append(ctx context.Context, id string, e *entry, ev run.Event) error {
	next, err := run.Fold(e.state, ev)
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
	seq, err := l.c.bus.append(ctx, id, e.last, ev, next.Task.Home)
	if err != nil {
		return err
	}
	e.state, e.last = next, seq
	switch ev.Command.(type) {
	case run.Settled:
		if l.c.cfg.Settled != nil {
			l.c.cfg.Settled(next)
		}
	case run.Closed:
		return l.c.bus.disarm(ctx, id)
	}
	return nil
}

// timers arms what the state waits for and was not armed by this lane.
func (l *lane) timers(ctx context.Context, id string, e *entry) error {
	for _, t := range e.state.Timers() {
		if e.armed[t.Name].Equal(t.At) {
			continue
		}
		if err := l.c.bus.arm(ctx, id, t); err != nil {
			return err
		}
		e.armed[t.Name] = t.At
	}
	if e.state.Closed {
		delete(l.runs, id)
	}
	return nil
}
