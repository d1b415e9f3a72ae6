package bus

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// ends cuts the work on runs that have ended, so that nobody computes for a
// cancelled run. It is a hint: an answer that comes all the same is dropped.
type ends struct {
	sub *nats.Subscription
	mu  sync.Mutex
	cut map[string]map[int]context.CancelFunc
}

func (b *Bus) watchEnds() (*ends, error) {
	e := &ends{cut: map[string]map[int]context.CancelFunc{}}
	sub, err := b.nc.Subscribe(wire.NameFilter(run.Ended{}.Name()), func(m *nats.Msg) {
		if addr, err := wire.ParseEvent(m.Subject); err == nil {
			e.end(addr.Run, addr.N)
		}
	})
	if err != nil {
		return nil, err
	}
	e.sub = sub
	return e, nil
}

// watch registers a job's cancel until the returned function is called.
func (e *ends) watch(j Job, cancel context.CancelFunc) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut[j.Run] == nil {
		e.cut[j.Run] = map[int]context.CancelFunc{}
	}
	e.cut[j.Run][j.N] = cancel
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.cut[j.Run], j.N)
		if len(e.cut[j.Run]) == 0 {
			delete(e.cut, j.Run)
		}
	}
}

// end cuts the asks that were made before event n ended the run.
func (e *ends) end(id string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ask, cancel := range e.cut[id] {
		if ask < n {
			cancel()
		}
	}
}

func (e *ends) close(log zerolog.Logger) {
	if err := e.sub.Unsubscribe(); err != nil {
		log.Debug().Err(err).Msg("unsubscribe")
	}
}
