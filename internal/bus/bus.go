package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Bus is one role's connection to the streams. It is safe for concurrent use.
type Bus struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	log   zerolog.Logger
	blobs *Artifacts
	tune  tuning
	gauge gauge
	// streams caches handles by name.
	streams sync.Map
	// lost is closed when the connection is gone for good.
	lost chan struct{}
	// back is when the connection was last made again, in Unix nanoseconds.
	back atomic.Int64
	// denied holds the newest refusal of a publish by its subject.
	denied sync.Map
	// onDenied ends the requests of allowed.
	onDenied atomic.Pointer[context.CancelCauseFunc]
}

// connectTimeout bounds connecting and one request.
const connectTimeout = 10 * time.Second

// Connect reaches a server by URL, credentials included.
func Connect(ctx context.Context, url, name string, log zerolog.Logger, opts ...nats.Option) (*Bus, error) {
	return connect(ctx, url, name, log, newBlobs(), opts)
}

func connect(ctx context.Context, url, name string, log zerolog.Logger, cache *blobs, opts []nats.Option) (*Bus, error) {
	b := &Bus{log: log, lost: make(chan struct{}), tune: tuned()}
	opts = append([]nats.Option{
		nats.Name(name), nats.Timeout(connectTimeout), nats.MaxReconnects(20), nats.ReconnectWait(250 * time.Millisecond),
		nats.ClosedHandler(func(*nats.Conn) { close(b.lost) }),
		nats.ReconnectHandler(func(*nats.Conn) { b.back.Store(time.Now().UnixNano()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.complain(err) }),
	}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, unreachable(url, err)
	}
	b.nc = nc
	if b.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(connectTimeout)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("bus: %w", err)
	}
	if err := b.allowed(ctx, b.check); err != nil {
		nc.Close()
		return nil, err
	}
	b.blobs = &Artifacts{bus: b, cache: cache}
	return b, nil
}

// publish stores msg in the stream of its subject. A publish that the server
// denies ends with errDenied instead of a timeout.
func (b *Bus) publish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if b.tune.hook != nil {
		b.tune.hook(msg.Subject, false)
		defer b.tune.hook(msg.Subject, true)
	}
	ack, err := b.js.PublishMsg(ctx, msg, opts...)
	if err != nil && (errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)) {
		if _, denied := b.denied.LoadAndDelete(msg.Subject); denied {
			return nil, fmt.Errorf("%w: %s", errDenied, msg.Subject)
		}
	}
	return ack, err
}

var errDenied = errors.New("bus: this user may not publish there")

// Connect returns a connection of a role inside the server's process: core,
// local, or the name of a worker.
func (s *Server) Connect(ctx context.Context, role string, log zerolog.Logger) (*Bus, error) {
	if _, ok := s.users[role]; !ok {
		return nil, fmt.Errorf("bus: the server knows no role %q", role)
	}
	return connect(ctx, "", "nexus-"+role, log, s.cache, append(s.login(role), nats.MaxReconnects(0)))
}

// Core returns the connection of the conductor and the provisioner.
func (s *Server) Core(ctx context.Context, log zerolog.Logger) (*Bus, error) {
	return s.Connect(ctx, roleCore, log)
}

// check refuses a server that cannot hold the streams, and says what to
// change.
func (b *Bus) check(ctx context.Context) error {
	if v := b.nc.ConnectedServerVersion(); !atLeast(v, minServer) {
		return fmt.Errorf("bus: the NATS server at %s is version %s; %s or later is needed (scheduled messages)", b.nc.ConnectedAddr(), v, minServer)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	switch _, err := b.js.AccountInfo(ctx); {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("bus: the NATS server at %s has no JetStream for this account: start it with -js, or enable it for the account", b.nc.ConnectedAddr())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("bus: the NATS server at %s does not answer JetStream requests: start it with -js, or enable it for the account", b.nc.ConnectedAddr())
	case err != nil:
		return fmt.Errorf("bus: %w", err)
	}
	return nil
}

// minServer has message schedules, TTLs and consumer resets.
const minServer = "2.14.0"

// atLeast compares dotted versions; what cannot be read counts as too old.
func atLeast(have, want string) bool {
	var h, w [3]int
	if n, _ := fmt.Sscanf(have, "%d.%d.%d", &h[0], &h[1], &h[2]); n < 3 {
		return false
	}
	if n, _ := fmt.Sscanf(want, "%d.%d.%d", &w[0], &w[1], &w[2]); n < 3 {
		return false
	}
	for i := range h {
		if h[i] != w[i] {
			return h[i] > w[i]
		}
	}
	return true
}

// Artifacts is the store of everything that is too large for an event.
func (b *Bus) Artifacts() *Artifacts { return b.blobs }

// Lost is closed when the connection is gone for good: the owner has ended.
func (b *Bus) Lost() <-chan struct{} { return b.lost }

// ServerVersion is the version of the server.
func (b *Bus) ServerVersion() string { return b.nc.ConnectedServerVersion() }

// Close ends the connection.
func (b *Bus) Close() { b.nc.Close() }
