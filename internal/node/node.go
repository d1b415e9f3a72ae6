package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/validate/policy"
	"nexuscore.dev/nexus/internal/wire"
)

// Config says what a process is to be.
type Config struct {
	// State is the state folder: streams of an embedded server, journals,
	// patches, reports.
	State string
	// URL of an external NATS server; empty means an embedded one.
	URL string
	// Service is true for a process that stays until it is stopped.
	Service bool
	// Port of the embedded server on loopback; 0 picks one.
	Port int
	// Replicas of the streams on an external server; default 1.
	Replicas int
	// Rules decide which tasks are let in.
	Rules Rules
	// Workers run in this process; nil means all.
	Workers []run.Worker
	// NoConductor leaves the decisions to other processes.
	NoConductor bool
	// Busy says what this process does that nobody else may work beside: as
	// the owner it lets nobody attach. Empty for all that runs tasks.
	Busy  string
	Model *agents.Model
	// Policy is what the worker policy judges by; nil means the default rules.
	Policy *policy.Set
	// Driver is this process where it waits for a run; it becomes the driver
	// of the run that Start adopts.
	Driver *run.Driver
	Claims rollback.Claims
	Log    zerolog.Logger
}

// Node is a running part of a bus. Close it.
type Node struct {
	cfg   Config
	owner *bus.Owner
	srv   *bus.Server
	// core speaks for conductor and provisioner; nil when attached.
	core *bus.Bus
	// client submits, orders and follows.
	client    *bus.Bus
	conductor *bus.Conductor
	links     []*bus.Bus
	stop      context.CancelFunc
	work      *errgroup.Group
	failed    chan struct{}
	// cause says why failed was closed.
	cause func() error
	// address is that of the owner when attached.
	address bus.Address
}

// openTimeout bounds how long a process waits for another one that is just
// becoming, or ceasing to be, the owner.
const openTimeout = 20 * time.Second

// temp is where staged trees and sandboxes lie, on the disk of the state.
func (c Config) temp() string { return filepath.Join(c.State, "tmp") }

// Open takes the state folder, or attaches to its owner, or joins the
// external server. It starts no work yet.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := os.MkdirAll(cfg.temp(), 0o700); err != nil {
		return nil, bus.FullDisk(cfg.State, fmt.Errorf("state folder: %w", err))
	}
	if cfg.URL != "" {
		return join(ctx, cfg)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for {
		owner, err := bus.Own(cfg.State)
		if err == nil {
			return lead(ctx, cfg, owner)
		}
		if !errors.Is(err, bus.ErrOwned) {
			return nil, bus.FullDisk(cfg.State, err)
		}
		n, err := attach(ctx, cfg)
		if err == nil {
			return n, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(err, errBusy) {
				return nil, err
			}
			return nil, fmt.Errorf("another nexus owns the state folder %s and does not answer: %w", cfg.State, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lead runs the embedded server.
func lead(ctx context.Context, cfg Config, owner *bus.Owner) (*Node, error) {
	cfg.Rules.OnlyHome = true
	n := &Node{cfg: cfg, owner: owner, failed: make(chan struct{})}
	names := make([]string, 0, len(agents.Names()))
	for _, w := range agents.Names() {
		names = append(names, string(w))
	}
	srv, err := bus.StartServer(bus.ServerConfig{StateDir: cfg.State, Port: cfg.Port, Workers: names, Log: cfg.Log})
	if err != nil {
		return nil, errors.Join(err, owner.Release())
	}
	n.srv = srv
	if n.core, err = srv.Core(ctx, cfg.Log); err == nil {
		n.client = n.core
		err = n.core.Provision(ctx, 1)
	}
	if err == nil {
		err = n.core.ResetConsumers(ctx)
	}
	if err == nil {
		// Others may attach at once; what they ask for waits for Start.
		addr := bus.Address{URL: srv.URL(), PID: os.Getpid(), Service: cfg.Service}
		if cfg.Busy != "" {
			addr = bus.Address{PID: addr.PID, Busy: cfg.Busy}
		}
		err = owner.Announce(addr)
	}
	if err != nil {
		return nil, errors.Join(bus.FullDisk(cfg.State, err), n.Close())
	}
	return n, nil
}

// errBusy says that the owner of the state folder works alone.
var errBusy = errors.New("the state folder is taken for a while")

// attach becomes a client of the owner.
func attach(ctx context.Context, cfg Config) (*Node, error) {
	addr, err := bus.FindOwner(cfg.State)
	if err != nil {
		return nil, err
	}
	if addr.Busy != "" {
		return nil, fmt.Errorf("%w: process %d %s in %s: try again when it has ended", errBusy, addr.PID, addr.Busy, cfg.State)
	}
	b, err := bus.Attach(ctx, addr, cfg.Log)
	if err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, client: b, address: addr, failed: make(chan struct{})}, nil
}

// join uses an external server.
func join(ctx context.Context, cfg Config) (*Node, error) {
	b, err := bus.Connect(ctx, cfg.URL, "nexus", cfg.Log)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, core: b, client: b, failed: make(chan struct{})}
	if err := b.Provision(ctx, max(cfg.Replicas, 1)); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Bus is the connection with which this process submits and follows.
func (n *Node) Bus() *bus.Bus { return n.client }

// Attached reports whether another process does the work, and its pid.
func (n *Node) Attached() (pid int, ok bool) { return n.address.PID, n.core == nil }

// Served reports whether the owner, another process, is a service.
func (n *Node) Served() bool { return n.address.Service }

// Addr is where the embedded server listens, empty when there is none here.
func (n *Node) Addr() string {
	if n.srv == nil {
		return ""
	}
	return n.srv.Addr()
}

// URL is the address for other clients of this user, credentials included.
func (n *Node) URL() string {
	if n.srv == nil {
		return n.cfg.URL
	}
	return n.srv.URL()
}

// Start begins to work: it settles what dead processes left (see Recover),
// then runs conductor and workers until Close. An attached node has nothing
// to start. adopt names a run that this process goes on with.
func (n *Node) Start(ctx context.Context, adopt string, all bool) error {
	if n.core == nil {
		return nil
	}
	err := n.start(ctx, adopt, all)
	if n.srv != nil {
		err = bus.FullDisk(n.cfg.State, err)
	}
	return err
}

func (n *Node) start(ctx context.Context, adopt string, all bool) error {
	if _, err := n.SweepTemp(); err != nil {
		n.cfg.Log.Warn().Err(err).Msg("left-overs of dead processes stay")
	}
	cfg := bus.ConductorConfig{Intake: n.admit, Settled: n.settled}
	c, err := bus.NewConductor(n.core, cfg)
	if err != nil {
		return err
	}
	n.conductor = c
	workers, err := n.workers(ctx)
	if err != nil {
		return err
	}
	if n.srv != nil {
		if err := n.recover(ctx, adopt, all); err != nil {
			return err
		}
	}
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.work, ctx = errgroup.WithContext(ctx)
	n.cause = func() error { return context.Cause(ctx) }
	context.AfterFunc(ctx, func() { close(n.failed) })
	if n.srv != nil {
		n.work.Go(func() error { return n.srv.Watch(ctx) })
	}
	if !n.cfg.NoConductor {
		n.work.Go(func() error { return c.Run(ctx) })
	}
	for i, w := range workers {
		n.work.Go(func() error { return n.links[i].Work(ctx, w) })
	}
	return nil
}

// SweepTemp removes what dead processes left in the state folder, and returns
// how many folders that were.
func (n *Node) SweepTemp() (int, error) { return sandbox.SweepTemp(n.cfg.temp()) }

// admit is the intake: the rules, and that somebody waits for the task. A
// task that a dead command left in the queue is nobody's any more.
func (n *Node) admit(ctx context.Context, tenant string, h wire.Heal) (run.Task, error) {
	t, err := n.cfg.Rules.Admit(tenant, h)
	if err == nil && t.Child != nil {
		err = n.decided(ctx, t)
	}
	if err == nil && t.Driver != nil && t.Driver.Host == n.cfg.Rules.Home && !rollback.ProcessAlive(t.Driver.PID, t.Driver.Start) {
		err = errors.New("the command that asked for it has ended")
	}
	return t, err
}

// decided refuses a decision that fits no run of this bus.
func (n *Node) decided(ctx context.Context, t run.Task) error {
	log, err := n.core.ReadLog(ctx, t.Child.Parent)
	if err != nil {
		return err
	}
	parent, err := log.State()
	if err != nil {
		return err
	}
	return t.About(parent)
}

// workers makes the workers of this process, each with a connection of its
// own, and their consumers.
func (n *Node) workers(ctx context.Context) ([]bus.Worker, error) {
	names := n.cfg.Workers
	if names == nil {
		names = agents.Names()
	}
	cfg := agents.Config{Home: n.cfg.Rules.Home, State: n.cfg.State, Temp: n.cfg.temp(), Claims: n.cfg.Claims, Model: n.cfg.Model, Policy: n.cfg.Policy, Log: n.cfg.Log}
	var out []bus.Worker
	for _, name := range names {
		link, err := n.link(ctx, name)
		if err != nil {
			return nil, err
		}
		n.links = append(n.links, link)
		w, err := agents.New(name, cfg, link.Artifacts())
		if err != nil {
			return nil, err
		}
		if err := n.core.ProvisionWorker(ctx, w); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

func (n *Node) link(ctx context.Context, name run.Worker) (*bus.Bus, error) {
	if n.srv != nil {
		return n.srv.Connect(ctx, string(name), n.cfg.Log)
	}
	return bus.Connect(ctx, n.cfg.URL, "nexus-"+string(name), n.cfg.Log)
}

// settled gives the folder of a finished run back, unless the folder could
// not be proved to be as it should: then it must be restored first.
func (n *Node) settled(s run.State) {
	if s.Task.Home != n.cfg.Rules.Home || !s.Settled.Proven {
		return
	}
	if err := n.cfg.Claims.Release(s.ID); err != nil {
		n.cfg.Log.Warn().Err(err).Str("run", s.ID).Msg("the folder's claim was not released")
	}
}

// Failed is closed when conductor, workers or server have stopped; Failure and
// Close say why.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Failure says why the work has stopped. It may be asked once Failed is closed.
func (n *Node) Failure() error { return n.cause() }

// Close stops the work, gives back what is in hand, and releases the state
// folder. It returns the error that ended the work early, if any.
func (n *Node) Close() error {
	var err error
	if n.owner != nil {
		err = n.owner.Withdraw() // nobody attaches to a server that is about to stop
	}
	if n.stop != nil {
		n.stop()
		err = errors.Join(err, n.work.Wait())
	}
	for _, l := range n.links {
		l.Close()
	}
	if n.client != nil {
		n.client.Close()
	}
	if n.srv != nil {
		n.srv.Stop()
	}
	if n.owner != nil {
		err = errors.Join(err, n.owner.Release())
	}
	return err
}
