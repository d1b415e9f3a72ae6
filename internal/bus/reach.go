package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
)

// unreachable says what to change when there is no connection.
func unreachable(address string, err error) error {
	where := Hosts(address)
	var syntax *url.Error
	var system *net.OpError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("bus: connect: %q is no address of a NATS server: write nats://USER:PASSWORD@HOST:PORT", where)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("bus: connect: the NATS server at %s refuses this user: put name and password into the address, nats://USER:PASSWORD@HOST:PORT", where)
	case errors.Is(err, nats.ErrNoInfoReceived):
		return fmt.Errorf("bus: connect: what answers at %s is no NATS server: check host and port", where)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.As(err, &system):
		return fmt.Errorf("bus: connect: no NATS server answers at %s (%w): start it, or check host and port", where, err)
	}
	return fmt.Errorf("bus: connect: %s: %w", where, err)
}

// Hosts is the address of a server, or a list of them, as it may be shown:
// without user, password or token.
func Hosts(address string) string {
	list := strings.Split(address, ",")
	for i, one := range list {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(one), "://")
		if !ok {
			scheme, rest = "", scheme
		} else if scheme += "://"; scheme == "nats://" {
			scheme = ""
		}
		list[i] = scheme + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(list, ", ")
}

// deniedError says that the server lets this user not do what nexus needs.
type deniedError struct{ server, what string }

// Error implements error.
func (e *deniedError) Error() string {
	return fmt.Sprintf("bus: the NATS server at %s does not let this user %s: nexus needs one that may publish and subscribe "+
		"$JS.>, $KV.>, $O.>, nexus.> and _INBOX.>, in an account of its own", e.server, e.what)
}

// allowed calls do, whose requests end at once with a deniedError when the
// server denies one: it answers such a request with nothing. Only for what
// runs alone on its connection, for a denial names no request.
func (b *Bus) allowed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.onDenied.Store(&cancel)
	defer b.onDenied.Store(nil)
	err := do(ctx)
	var denied *deniedError
	if err != nil && errors.As(context.Cause(ctx), &denied) {
		return denied
	}
	return err
}

// complain hears what the server says outside of any answer. A publish that
// it refuses gets no answer at all, so the refusal is kept for publish.
func (b *Bus) complain(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		b.log.Debug().Err(err).Msg("bus")
		return
	}
	_, what, _ := strings.Cut(err.Error(), "Permissions Violation for ")
	if cancel := b.onDenied.Load(); cancel != nil {
		words := strings.NewReplacer("Publish to", "publish to", "Subscription to", "subscribe to")
		(*cancel)(&deniedError{b.nc.ConnectedAddr(), words.Replace(what)})
		return // allowed tells it
	}
	b.log.Warn().Err(err).Msg("bus")
	if _, rest, ok := strings.Cut(what, `Publish to "`); ok {
		if subject, _, ok := strings.Cut(rest, `"`); ok {
			b.denied.Store(subject, struct{}{})
		}
	}
}
