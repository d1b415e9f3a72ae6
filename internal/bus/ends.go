package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// ends hears that runs end, so that nobody computes for a cancelled run. What
// it hears is a hint: the event is not stored yet, and may never be, when two
// conductors race. The log has the last word.
type ends struct {
	bus *Bus
	sub *nats.Subscription
	mu  sync.Mutex
	ear map[string]map[int]chan struct{}
}

func (b *Bus) watchEnds() (*ends, error) {
	e := &ends{bus: b, ear: map[string]map[int]chan struct{}{}}
	sub, err := b.nc.Subscribe(wire.NameFilter(run.Ended{}.Name()), func(m *nats.Msg) {
		if addr, err := wire.ParseEvent(m.Subject); err == nil {
			e.tell(addr)
		}
	})
	if err != nil {
		return nil, err
	}
	e.sub = sub
	return e, nil
}

// watch returns a channel that hears of the run's end, until forget is
// called.
func (e *ends) watch(j Job) (hint <-chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ear[j.Run] == nil {
		e.ear[j.Run] = map[int]chan struct{}{}
	}
	e.ear[j.Run][j.N] = c
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.ear[j.Run], j.N)
		if len(e.ear[j.Run]) == 0 {
			delete(e.ear, j.Run)
		}
	}
}

// tell wakes the asks that were made before the run ended.
func (e *ends) tell(end wire.Address) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ask, c := range e.ear[end.Run] {
		if ask < end.N {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

func (e *ends) close() {
	if err := e.sub.Unsubscribe(); err != nil {
		e.bus.log.Debug().Err(err).Msg("unsubscribe")
	}
}

// hasEnded reports whether the log holds the end of the job's run. The asks
// of the closing phase come after it.
func (b *Bus) hasEnded(ctx context.Context, j Job) bool {
	s, err := b.stream(ctx, streamRuns)
	if err != nil {
		return false
	}
	msg, err := s.GetLastMsgForSubject(ctx, wire.NameOf(j.Run, run.Ended{}.Name()))
	if err != nil {
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			j.Log.Debug().Err(err).Msg("end of the run")
		}
		return false
	}
	addr, err := wire.ParseEvent(msg.Subject)
	return err == nil && j.N < addr.N
}

// endLooks is how often the log is looked at after a hint, each time after
// twice as long as before; later the heartbeat looks.
const (
	endLooks = 9
	endPause = time.Millisecond
)

// awaitEnd looks until an announced end is in the log.
func (b *Bus) awaitEnd(ctx context.Context, j Job) bool {
	pause := endPause
	for range endLooks {
		if b.hasEnded(ctx, j) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		pause *= 2
	}
	return false
}
