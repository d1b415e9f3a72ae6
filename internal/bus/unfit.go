package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/wire"
)

// unfit settles a message that nobody here can handle, whenever it comes
// again: one of a newer version waits for somebody who knows it, every other
// one is buried.
func (b *Bus) unfit(ctx context.Context, msg jetstream.Msg, id string, n int, cause error) error {
	if !errors.Is(cause, wire.ErrNewer) {
		return b.poison(ctx, msg, id, n, cause)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	if meta.NumDelivered > b.tune.maxNewer {
		return b.poison(ctx, msg, id, n, fmt.Errorf("%w; no newer one took it in %d deliveries, %s apart", cause, b.tune.maxNewer, b.tune.newerRest))
	}
	b.log.Warn().Err(cause).Str("subject", msg.Subject()).Msg("handed back for a newer nexus")
	return &laterError{b.tune.newerRest}
}

// hopeless reports whether handling a message again must fail in the same way.
func hopeless(err error) bool {
	var large *largeError
	return errors.As(err, &large) || errors.Is(err, wire.ErrNewer)
}
