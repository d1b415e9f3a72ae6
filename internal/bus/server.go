package bus

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// ServerConfig describes the embedded server.
type ServerConfig struct {
	// StateDir holds the streams; the caller owns it (see Own).
	StateDir string
	// Port on loopback; 0 picks a free one.
	Port int
	// NoSync skips the fsync before an acknowledgement. For benchmarks only:
	// a power cut then loses acknowledged events.
	NoSync bool
	// Workers are the names that get a user of their own.
	Workers []string
	Log     zerolog.Logger
}

// Server is an embedded NATS server with JetStream, on loopback only.
type Server struct {
	ns    *server.Server
	state string
	users map[string]string
	// cache is shared by all connections of this process.
	cache *blobs
}

const (
	// startTimeout bounds how long the server may take to recover its streams.
	startTimeout = 30 * time.Second
	readyPoll    = 100 * time.Millisecond
)

// Roles that are no workers.
const (
	roleCore = "core"
	// RoleLocal is the user of the owner's later commands and of other local
	// clients: it may publish tasks and orders and read. It has no consumers,
	// for names of consumers cannot be kept apart by permissions.
	RoleLocal = "local"
)

// StartServer starts a server on the state folder and waits until it is
// ready. The folder must be owned: two servers on one folder lose data.
func StartServer(cfg ServerConfig) (*Server, error) {
	s := &Server{state: cfg.StateDir, users: map[string]string{}, cache: newBlobs()}
	opts := &server.Options{
		ServerName: "nexus", Host: "127.0.0.1", Port: cfg.Port,
		JetStream: true, StoreDir: storeDir(cfg.StateDir),
		SyncAlways: !cfg.NoSync, NoLog: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 64 << 30,
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	for _, role := range append([]string{roleCore, RoleLocal}, cfg.Workers...) {
		token, err := newToken()
		if err != nil {
			return nil, err
		}
		s.users[role] = token
		opts.Users = append(opts.Users, &server.User{Username: role, Password: token, Permissions: permissions(role)})
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("bus: embedded server: %w", err)
	}
	fatal := make(chan string, 1)
	ns.SetLoggerV2(serverLog{cfg.Log, fatal}, false, false, false)
	ns.Start()
	if err := ready(ns, fatal); err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, FullDisk(cfg.StateDir, fmt.Errorf("bus: embedded server on %s: %w", cfg.StateDir, err))
	}
	s.ns = ns
	return s, nil
}

func storeDir(state string) string { return filepath.Join(state, "jetstream") }

// ready waits until the server accepts connections. What it calls fatal would
// otherwise be waited for in vain.
func ready(ns *server.Server, fatal <-chan string) error {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		if ns.ReadyForConnections(readyPoll) {
			return nil
		}
		select {
		case why := <-fatal:
			return errors.New(why)
		default:
		}
	}
	return fmt.Errorf("not ready within %s", startTimeout)
}

// Stop shuts the server down and waits for it.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// URL is the address with the credentials of role local.
func (s *Server) URL() string {
	return "nats://" + RoleLocal + ":" + s.users[RoleLocal] + "@" + s.Addr()
}

// Addr is host and port.
func (s *Server) Addr() string {
	if a, ok := s.ns.Addr().(*net.TCPAddr); ok {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	}
	return ""
}

// login are the connection options of a role inside this process. Answers go
// to an inbox that other roles cannot hear.
func (s *Server) login(role string) []nats.Option {
	return []nats.Option{
		nats.InProcessServer(s.ns), nats.UserInfo(role, s.users[role]), nats.CustomInboxPrefix(inbox(role)),
	}
}

func inbox(role string) string {
	if role == RoleLocal {
		return "_INBOX" // what clients that are not ours use
	}
	return "_NEXUS." + role
}

func newToken() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("bus: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// permissions is what a role may publish and hear. A worker states facts
// under its own name only; only core makes, changes or removes streams and
// durable consumers; nobody publishes where timers fire.
func permissions(role string) *server.Permissions {
	allow := func(publish, subscribe []string) *server.Permissions {
		return &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: append(subscribe, inbox(role)+".>")},
		}
	}
	read := []string{
		"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST",
		"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.MSG.GET.*", "$JS.API.CONSUMER.INFO.RUNS.*",
	}
	switch role {
	case roleCore:
		p := allow([]string{">"}, []string{">"})
		p.Publish.Deny = []string{TimerFires}
		return p
	case RoleLocal:
		return allow(append(read, "$JS.API.STREAM.MSG.DELETE."+streamDead, "$KV."+bucketReviews+".*",
			"nexus.task.local.*", "nexus.outcome.operator.*.0"), []string{"nexus.>"})
	}
	return allow(append(read,
		"$JS.API.CONSUMER.MSG.NEXT.RUNS.*", "$JS.ACK.RUNS.>", "$O.ARTIFACTS.>", "$JS.API.STREAM.PURGE.OBJ_ARTIFACTS",
		"nexus.outcome."+role+".>", "nexus.dead.poison.>", "nexus.tried."+role+".>"), []string{"nexus.run.ended.*.*"})
}

// TimerFires is where the server alone publishes.
const TimerFires = "nexus.timer.>"

// serverLog forwards what the server has to say that a person may need.
type serverLog struct {
	log   zerolog.Logger
	fatal chan string
}

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}
func (l serverLog) Warnf(f string, v ...any) {
	l.log.Debug().Str("part", "server").Msgf(f, v...)
}

func (l serverLog) Errorf(f string, v ...any) {
	l.log.Warn().Str("part", "server").Msgf(f, v...)
}

func (l serverLog) Fatalf(f string, v ...any) {
	l.log.Error().Str("part", "server").Msgf(f, v...)
	select {
	case l.fatal <- fmt.Sprintf(f, v...):
	default:
	}
}
