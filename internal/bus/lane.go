package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// lane works on the runs of its share, one message after the other.
type lane struct {
	c    *Conductor
	in   chan work
	runs map[string]*entry
	// owed is a handled message that is not acknowledged yet.
	owed jetstream.Msg
	// idle are closed runs whose timers are removed when nothing else is to
	// do. Should that be forgotten, they fire one day and nobody waits.
	idle []string
}

// work is one message for a lane. The lane acknowledges it after do, unless
// do returns an error; errSettled says that do has settled it.
type work struct {
	msg jetstream.Msg
	do  func(ctx context.Context, l *lane) error
}

// entry is a run as this lane knows it. Another conductor may have moved it
// on; the compare-and-set finds out.
type entry struct {
	state run.State
	last  uint64
	armed map[string]time.Time
	// told is true once Settled was called.
	told bool
}

// maxCached bounds the runs that a lane remembers.
const maxCached = 256

// errSettled says that a message needs no further acknowledgement.
var errSettled = errors.New("bus: settled")

// errUnknownRun says that a fact names a run that is not open.
var errUnknownRun = errors.New("bus: no such run")

// owing is how long an acknowledgement may wait for the next message: taking
// the last message out of a work queue costs the server a new file.
const owing = 20 * time.Millisecond

// maxIdle bounds the closed runs that wait for a quiet moment.
const maxIdle = 64

func (l *lane) run(ctx context.Context) error {
	quiet := time.NewTimer(owing)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
			defer cancel()
			l.settle(ctx)
			return nil
		case w := <-l.in:
			l.handle(ctx, w)
			if len(l.idle) >= maxIdle {
				l.settle(ctx)
			}
			quiet.Reset(owing)
		case <-quiet.C:
			l.settle(ctx)
		}
	}
}

// settle does what could wait.
func (l *lane) settle(ctx context.Context) {
	l.pay()
	for _, id := range l.idle {
		if err := l.c.bus.disarm(ctx, id); err != nil {
			l.c.bus.log.Debug().Err(err).Str("run", id).Msg("timers are left")
		}
	}
	l.idle = nil
}

// pay acknowledges the message that is owed. The acknowledgement is not waited
// for: should it get lost, the message comes again and changes nothing.
func (l *lane) pay() {
	if l.owed == nil {
		return
	}
	fault.Point("bus.conductor.ack")
	if err := l.owed.Ack(); err != nil {
		l.c.bus.log.Debug().Err(err).Str("subject", l.owed.Subject()).Msg("acknowledge")
	}
	fault.Point("bus.conductor.acked")
	l.owed = nil
}

// giveBack returns what nobody will handle here any more.
func (l *lane) giveBack(ctx context.Context) {
	for {
		select {
		case w := <-l.in:
			l.c.bus.giveBack(ctx, w.msg, ctx.Err())
		default:
			return
		}
	}
}

// handle owes the acknowledgement only after everything that follows from the
// message is stored.
func (l *lane) handle(ctx context.Context, w work) {
	l.pay()
	switch err := l.protect(ctx, w); {
	case err == nil:
		l.owed = w.msg
	case !errors.Is(err, errSettled):
		l.c.bus.giveBack(ctx, w.msg, err)
	}
}

// protect buries a message that makes the conductor panic, so that it cannot
// take every conductor down, one after the other.
func (l *lane) protect(ctx context.Context, w work) (err error) {
	defer func() {
		if r := recover(); r != nil {
			clear(l.runs)
			l.c.bus.log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Str("subject", w.msg.Subject()).Msg("conductor panicked")
			err = l.c.bus.poison(ctx, w.msg, "", 0, fmt.Errorf("internal error: %v", r))
		}
	}()
	return w.do(ctx, l)
}

// load returns the run as it is, from memory or from its log.
func (l *lane) load(ctx context.Context, id string) (*entry, error) {
	if e := l.runs[id]; e != nil {
		return e, nil
	}
	log, err := l.c.bus.currentLog(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := log.known(); err != nil {
		return nil, fmt.Errorf("bus: log of %s: %w", id, err)
	}
	s, err := log.State()
	if err != nil {
		return nil, fmt.Errorf("bus: log of %s: %w", id, err)
	}
	e := newEntry(s, log.Last)
	l.remember(id, e)
	return e, nil
}

func newEntry(s run.State, last uint64) *entry {
	return &entry{state: s, last: last, armed: map[string]time.Time{}}
}

func (l *lane) remember(id string, e *entry) {
	if len(l.runs) >= maxCached {
		clear(l.runs)
	}
	l.runs[id] = e
}

// open starts a run unless it exists. A task is nearly always new, so its log
// is read only when the first append, or the intake, says otherwise.
func (l *lane) open(ctx context.Context, id string, msg jetstream.Msg, intake func() (run.Task, error)) error {
	if l.runs[id] == nil {
		task, refusal := intake()
		if refusal != nil {
			e, err := l.load(ctx, id)
			if err != nil {
				return err
			}
			if e.state.N == 0 {
				delete(l.runs, id)
				return l.c.bus.refuse(ctx, msg, id, refusal)
			}
		} else if err := l.first(ctx, id, task); err != nil {
			return err
		}
	}
	return l.advance(ctx, id, nil)
}

// first appends the event that opens a run. Whether it was there already is
// left to advance, which reads the log then.
func (l *lane) first(ctx context.Context, id string, task run.Task) error {
	e := newEntry(run.State{ID: id}, 0)
	opened := run.Event{N: 1, Decider: run.Decider, Command: run.Opened{Task: task, At: time.Now().UTC()}}
	switch err := l.append(ctx, id, e, opened); {
	case err == nil:
		l.remember(id, e)
	case !errors.Is(err, errConflict):
		return err
	}
	return nil
}

// maxConflicts bounds how often a lane reads a log again for one message.
const maxConflicts = 20

// advance records the fact, if the run waits for it, and everything that
// follows from the run's state.
func (l *lane) advance(ctx context.Context, id string, fact *run.Fact) error {
	l.doubt(id, fact)
	for range maxConflicts {
		e, err := l.load(ctx, id)
		if err != nil {
			return err
		}
		if e.state.N == 0 {
			delete(l.runs, id)
			return fmt.Errorf("%w: %s", errUnknownRun, id)
		}
		err = l.step(ctx, id, e, fact)
		if err != nil || e.state.Closed {
			delete(l.runs, id)
		}
		if !errors.Is(err, errConflict) {
			return err
		}
	}
	return fmt.Errorf("bus: run %s: others kept moving it on", id)
}

// doubt forgets what this lane knows about a run that does not wait for the
// fact: another conductor may have moved it on to where it does.
func (l *lane) doubt(id string, fact *run.Fact) {
	if e := l.runs[id]; e != nil && fact != nil {
		f := *fact
		f.At = time.Now().UTC()
		if !e.state.Awaits(f) {
			delete(l.runs, id)
		}
	}
}

// An order waits for its run to open: strayRest, maxStray times.
const (
	maxStray  = 100
	strayRest = 50 * time.Millisecond
)

// stray settles a fact about a run that is not open. An order may be ahead of
// its task, which travels on another stream; everything else is forged, or
// its run was removed.
func (l *lane) stray(msg jetstream.Msg, f run.Fact, cause error) error {
	if meta, err := msg.Metadata(); err == nil && f.Order != nil && meta.NumDelivered <= maxStray {
		return &laterError{strayRest}
	}
	l.c.bus.log.Warn().Err(cause).Str("subject", msg.Subject()).Msg("dropped")
	return nil
}
