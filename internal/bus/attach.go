package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// attachTimeout bounds dial and handshake with the owner's server.
const attachTimeout = 2 * time.Second

// Attach reaches the server of a state folder's owner. The connection is not
// made again when it breaks: then the owner is gone, and Lost says so at once.
func Attach(ctx context.Context, a Address, log zerolog.Logger) (*Bus, error) {
	return Connect(ctx, a.URL, "nexus-client", log, nats.NoReconnect(), nats.Timeout(attachTimeout))
}
