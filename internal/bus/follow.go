package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Follow calls do with each event of a run once, from the first on, with the
// state after it, until do answers false, ctx ends, or the bus is gone
// (ErrLost). It needs no consumer, so that a client which may follow can take
// nobody's away: it hears that an event is published, and reads the log.
func (b *Bus) Follow(ctx context.Context, id string, do func(run.Event, run.State) bool) error {
	err := b.follow(ctx, &reader{bus: b, state: run.State{ID: id}, next: 1, do: do})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return b.orLost(fmt.Errorf("bus: follow %s: %w", id, err))
}

// maxUnread bounds how many reads in a row may fail, one each pullBeat, before
// a follower gives up: a server that is being replaced needs a while.
const maxUnread = 30

func (b *Bus) follow(ctx context.Context, r *reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer b.onLost(cancel)()
	hints, stop := b.hear(wire.RunFilter(r.state.ID))
	defer stop()
	tick := time.NewTicker(b.tune.pullBeat)
	defer tick.Stop()
	for unread := 0; ; {
		more, err := r.read(ctx)
		switch {
		case !more:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if unread++; unread > maxUnread {
				return err
			}
			b.log.Debug().Err(err).Str("run", r.state.ID).Msg("follow")
		default:
			unread = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C: // a hint may get lost
		case msg := <-hints:
			if more, err := r.await(ctx, msg); !more {
				return err
			}
		}
	}
}

// hear hears that something is published under a subject. That is a hint: it
// is not stored yet, and may never be. Where hearing fails there are no hints.
func (b *Bus) hear(subject string) (hints <-chan *nats.Msg, stop func()) {
	c := make(chan *nats.Msg, 8)
	sub, err := b.nc.ChanSubscribe(subject, c)
	if err != nil {
		b.log.Debug().Err(err).Str("subject", subject).Msg("hear")
		return c, func() {}
	}
	return c, func() {
		if err := sub.Unsubscribe(); err != nil {
			b.log.Debug().Err(err).Str("subject", subject).Msg("hear")
		}
	}
}

// reader reads a log from where it stopped the last time.
type reader struct {
	bus   *Bus
	state run.State
	// next is the sequence in the stream to read from.
	next uint64
	do   func(run.Event, run.State) bool
}

// errEnough says that the caller of Follow has seen enough.
var errEnough = errors.New("bus: enough")

// read hands on what the log holds beyond the last event. It reports whether
// to go on; an error together with that is one of the moment.
func (r *reader) read(ctx context.Context) (more bool, err error) {
	var fatal error
	err = r.bus.eachFrom(ctx, streamRuns, wire.RunFilter(r.state.ID), r.next, func(msg *jetstream.RawStreamMsg) error {
		fatal = r.take(msg)
		return fatal
	})
	if errors.Is(fatal, errEnough) {
		return false, nil
	}
	return fatal == nil, err
}

func (r *reader) take(msg *jetstream.RawStreamMsg) error {
	e, err := decodeEvent(msg.Subject, msg.Data)
	if err != nil {
		return err
	}
	s, err := run.Fold(r.state, e)
	if err != nil {
		return err
	}
	r.state, r.next = s, msg.Sequence+1
	if !r.do(e, s) {
		return errEnough
	}
	return nil
}

// await looks for the event that was announced.
func (r *reader) await(ctx context.Context, msg *nats.Msg) (more bool, err error) {
	addr, err := wire.ParseEvent(msg.Subject)
	if err != nil {
		return true, nil //nolint:nilerr // what does not belong into a log is no hint
	}
	pause := hintPause
	for range hintLooks {
		if addr.N <= r.state.N {
			return true, nil
		}
		if more, err := r.read(ctx); !more {
			return false, err
		}
		select {
		case <-ctx.Done():
			return true, nil
		case <-time.After(pause):
		}
		pause *= 2
	}
	return true, nil
}
