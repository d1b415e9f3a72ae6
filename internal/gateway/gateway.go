// Package gateway lets other systems hand in tasks and watch runs over HTTP,
// as schemas/openapi.yaml describes. It decides nothing: a task that it takes
// goes the way of every other one, and the conductor's rules have the last
// word. One request is followed from routes.go, through guard.go, to the file
// of its handler.
package gateway

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Bus is what the gateway needs of the streams; *bus.Bus has it. The role
// local may do all of it.
type Bus interface {
	Submit(ctx context.Context, tenant, key string, h wire.Heal) (id string, err error)
	Order(ctx context.Context, id string, o run.Order) error
	ReadLog(ctx context.Context, id string) (bus.Log, error)
	Runs(ctx context.Context) (closed map[string]bool, err error)
	Follow(ctx context.Context, id string, do func(run.Event, run.State) bool) error
	Refusal(ctx context.Context, id string) (*bus.Letter, error)
	Usages(ctx context.Context) ([]bus.Usage, error)
	Artifacts() *bus.Artifacts
}

// Config says what a gateway serves.
type Config struct {
	Bus Bus
	// Roots are the folders below which a task's folder must lie, links
	// followed. At least one, absolute.
	Roots []string
	// Token is what every call of /v1 must present as its bearer token. Empty
	// means none: then the gateway serves loopback only, and refuses requests
	// that a browser makes for another site. At least MinToken characters.
	Token string
	// Tenant under which tasks are submitted; default "local".
	Tenant string
	// AdmitWait is how long a submitted task may take to be let in or refused
	// before it is answered as queued; default 3 s.
	AdmitWait time.Duration
	Log       zerolog.Logger
}

// MinToken is the least length of a bearer token.
const MinToken = 16

const (
	defaultTenant    = "local"
	defaultAdmitWait = 3 * time.Second
)

// Server is the HTTP server of a gateway.
type Server struct {
	cfg   Config
	times times
	tasks *wire.Tasks
	ages  ages
	// streams holds a place for every open event stream.
	streams chan struct{}
}

// times bound what a peer may make the server wait for.
type times struct {
	header, read, write, idle time.Duration
	// bus bounds the calls to the bus of one request.
	bus time.Duration
	// ready bounds the question whether the bus answers.
	ready time.Duration
	// beat is how often a quiet event stream shows that it is alive.
	beat time.Duration
	// grace is how long a stop waits for requests in hand.
	grace time.Duration
}

func defaultTimes() times {
	return times{
		header: 5 * time.Second, read: 15 * time.Second, write: 30 * time.Second, idle: time.Minute,
		bus: 10 * time.Second, ready: 2 * time.Second, beat: 15 * time.Second, grace: 5 * time.Second,
	}
}

const (
	maxHeader  = 32 << 10
	maxStreams = 64
)

// New makes a server. It fails when the configuration is not complete.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Bus == nil:
		return nil, errors.New("gateway: no bus")
	case len(cfg.Roots) == 0:
		return nil, errors.New("gateway: no allowed root: name the folders below which projects may lie")
	case cfg.Token != "" && len(cfg.Token) < MinToken:
		return nil, fmt.Errorf("gateway: the token has %d characters, at least %d are needed", len(cfg.Token), MinToken)
	}
	for _, root := range cfg.Roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("gateway: the root %q is not an absolute path", root)
		}
	}
	if cfg.Tenant == "" {
		cfg.Tenant = defaultTenant
	}
	if cfg.AdmitWait == 0 {
		cfg.AdmitWait = defaultAdmitWait
	}
	tasks, err := wire.NewTasks()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, times: defaultTimes(), tasks: tasks, streams: make(chan struct{}, maxStreams)}, nil
}

// ErrExposed says that a gateway without a token was to serve more than
// loopback.
var ErrExposed = errors.New("gateway: only loopback can be served without a token")

// CheckListen says what is wrong with an address to listen on, host and port,
// or nil. Without a token it is ErrExposed for anything but loopback.
func CheckListen(addr, token string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("gateway: listen: %w", err)
	}
	if token == "" && !loopback(host) {
		return fmt.Errorf("%w, and %s is not loopback", ErrExposed, addr)
	}
	return nil
}

// Listen opens a TCP listener on an address that CheckListen accepts.
func Listen(ctx context.Context, addr, token string) (net.Listener, error) {
	if err := CheckListen(addr, token); err != nil {
		return nil, err
	}
	var cfg net.ListenConfig
	ln, err := cfg.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return ln, nil
}

// Run serves ln until ctx ends, lets requests in hand finish, and returns nil
// then. It closes ln.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	if host, _, err := net.SplitHostPort(ln.Addr().String()); s.cfg.Token == "" && (err != nil || !loopback(host)) {
		return errors.Join(fmt.Errorf("%w, and %s is not loopback", ErrExposed, ln.Addr()), ln.Close())
	}
	srv := &http.Server{
		Handler:           s.handler(ctx.Done()),
		ReadHeaderTimeout: s.times.header, ReadTimeout: s.times.read, WriteTimeout: s.times.write, IdleTimeout: s.times.idle,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       stdlog.New(s.cfg.Log.With().Str("part", "http").Logger(), "", 0),
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("gateway: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.times.grace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		s.cfg.Log.Warn().Err(err).Msg("requests were cut off")
		if err := srv.Close(); err != nil {
			s.cfg.Log.Debug().Err(err).Msg("close")
		}
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// loopback reports whether host names this machine's loopback interface and
// nothing else.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
