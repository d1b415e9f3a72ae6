package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// feeder hands the messages of a durable consumer on.
type feeder struct {
	cons jetstream.Consumer
	// ahead is the most messages that wait here; 1 fetches none before the
	// last one was handled.
	ahead int
	// gate is asked before each message is fetched; optional.
	gate func(context.Context) error
	// do handles a message and must see to it that it is acknowledged. An
	// error other than errSettled gives it back after a rest.
	do func(context.Context, jetstream.Msg) error
}

// feed runs f until ctx ends, and returns nil then, or ErrLost when the bus is
// gone. Messages that were fetched and not handed on are given back at once.
func (b *Bus) feed(ctx context.Context, f feeder) error {
	it, err := f.cons.Messages(jetstream.PullMaxMessages(f.ahead),
		jetstream.PullExpiry(b.tune.pullExpiry), jetstream.PullHeartbeat(b.tune.pullBeat))
	if err != nil {
		return fmt.Errorf("bus: consume: %w", err)
	}
	defer b.drain(it)
	for {
		if f.gate != nil {
			if err := f.gate(ctx); err != nil {
				return ended(ctx, err)
			}
		}
		msg, err := it.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil && msg == nil:
			return nil
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			continue
		case err != nil:
			return b.orLost(fmt.Errorf("bus: consume %s: %w", f.cons.CachedInfo().Name, err))
		}
		if err := f.do(ctx, msg); err != nil && !errors.Is(err, errSettled) {
			b.giveBack(ctx, msg, err)
		}
	}
}

// ended is nil when ctx has ended, else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// giveBack returns a message that could not be handled. While the process
// stops it goes back at once.
func (b *Bus) giveBack(ctx context.Context, msg jetstream.Msg, cause error) {
	var later *laterError
	rest := b.rest(msg)
	switch {
	case ctx.Err() != nil:
		rest = 0
	case errors.As(cause, &later):
		rest = later.after
	default:
		b.log.Warn().Err(cause).Str("subject", msg.Subject()).Msg("given back")
	}
	nak := func() error { return msg.NakWithDelay(rest) }
	if rest <= 0 {
		nak = msg.Nak
	}
	if err := nak(); err != nil {
		b.log.Debug().Err(err).Str("subject", msg.Subject()).Msg("give back")
	}
}

// rest grows with the number of deliveries.
func (b *Bus) rest(msg jetstream.Msg) time.Duration {
	n := uint64(1)
	if meta, err := msg.Metadata(); err == nil {
		n = meta.NumDelivered
	}
	return min(b.tune.retryDelay*time.Duration(min(max(n, 1), 64)), retryMax)
}

// laterError says that a message is to be delivered again after a while.
type laterError struct{ after time.Duration }

// Error implements error.
func (e *laterError) Error() string { return fmt.Sprintf("bus: not before %s", e.after) }

// drain ends the iterator and gives back what had already arrived; without
// that it would wait for its AckWait.
func (b *Bus) drain(it jetstream.MessagesContext) {
	it.Drain()
	for {
		msg, err := it.Next(jetstream.NextMaxWait(drainTime))
		if err != nil {
			it.Stop()
			return
		}
		if err := msg.Nak(); err != nil {
			b.log.Debug().Err(err).Str("subject", msg.Subject()).Msg("give back")
		}
	}
}
