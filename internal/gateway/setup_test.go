package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const home = "here"

var (
	origin = run.Tree{Manifest: run.Ref{SHA256: "m0"}, Hash: "t0"}
	fixed  = run.Tree{Manifest: run.Ref{SHA256: "m1"}, Hash: "t1"}
)

const diff = "--- a/calc.py\n+++ b/calc.py\n"

// bench is an embedded bus with a conductor and workers that answer at once,
// and a gateway on it that speaks with the rights of the role local.
type bench struct {
	srv *bus.Server
	// link is the gateway's connection.
	link *bus.Bus
	root string
	url  string
	log  *lockedBuffer
	// stop ends the gateway and returns what Run returned.
	stop func() error
	// kill ends the bus.
	kill func()
	// gate lets the debugger answer when it is closed.
	gate chan struct{}
}

// options say how a bench differs from the usual one.
type options struct {
	// held makes the debugger wait for the gate.
	held bool
	// alone is a conductor without workers: runs open and stay open.
	alone bool
	// idle leaves the tasks on the bus: there is no conductor.
	idle  bool
	token string
	// room is the most bytes of the log of runs; 0 leaves the default.
	room int64
	// over replaces what the gateway calls.
	over  func(Bus) Bus
	tweak func(*Server)
}

func setup(t *testing.T, o options) *bench {
	t.Helper()
	b := &bench{root: t.TempDir(), log: &lockedBuffer{}, gate: make(chan struct{})}
	if !o.held {
		close(b.gate)
	}
	b.startBus(t, o)
	link, err := bus.Connect(t.Context(), b.srv.URL(), "gateway", zerolog.Nop())
	require.NoError(t, err)
	b.link = link
	t.Cleanup(link.Close)
	b.startGateway(t, o)
	return b
}

func (b *bench) startBus(t *testing.T, o options) {
	t.Helper()
	workers := b.workers()
	var names []string
	for _, w := range workers {
		names = append(names, string(w.Name))
	}
	log := zerolog.Nop()
	srv, err := bus.StartServer(bus.ServerConfig{StateDir: t.TempDir(), NoSync: true, Workers: names, Log: log})
	require.NoError(t, err)
	b.srv = srv
	ctx, cancel := context.WithCancel(context.Background())
	core, err := srv.Core(ctx, log)
	require.NoError(t, err)
	var size []bus.ProvisionOption
	if o.room > 0 {
		size = append(size, bus.RunsBytes(o.room))
	}
	require.NoError(t, core.Provision(ctx, 1, size...))
	ref, err := core.Artifacts().Put(ctx, []byte(diff))
	require.NoError(t, err)
	require.Equal(t, diffRef(), ref)
	g, ctx := errgroup.WithContext(ctx)
	if !o.idle {
		c, err := bus.NewConductor(core, bus.ConductorConfig{Intake: func(_ context.Context, tenant string, h wire.Heal) (run.Task, error) { return admit(tenant, h) }})
		require.NoError(t, err)
		g.Go(func() error { return c.Run(ctx) })
	}
	if o.alone || o.idle {
		workers = nil
	}
	var links []*bus.Bus
	for _, w := range workers {
		require.NoError(t, core.ProvisionWorker(ctx, w))
		link, err := srv.Connect(ctx, string(w.Name), log)
		require.NoError(t, err)
		links = append(links, link)
		g.Go(func() error { return link.Work(ctx, w) })
	}
	b.kill = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		for _, l := range links {
			l.Close()
		}
		core.Close()
		srv.Stop()
	})
	t.Cleanup(b.kill)
}

func (b *bench) startGateway(t *testing.T, o options) {
	t.Helper()
	cfg := Config{Bus: b.link, Roots: []string{b.root}, Token: o.token, Log: zerolog.New(b.log), AdmitWait: 20 * time.Second}
	if o.idle {
		cfg.AdmitWait = 50 * time.Millisecond
	}
	if o.over != nil {
		cfg.Bus = o.over(b.link)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	if o.tweak != nil {
		o.tweak(s)
	}
	ln, err := Listen(t.Context(), "127.0.0.1:0", o.token)
	require.NoError(t, err)
	b.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
}

// admit refuses one test command, so that there is something to refuse.
func admit(tenant string, h wire.Heal) (run.Task, error) {
	t := run.Task{
		Tenant: tenant, Dir: filepath.Clean(h.Dir), Home: home, Test: h.Test, Targets: h.Targets, InPlace: h.InPlace,
		Report: h.Report, Sources: []run.Source{run.SourceEngine}, Deliver: run.DeliverApply,
		Limits: h.Limits.Over(run.DefaultLimits()),
	}
	if h.Test == "rm -rf" {
		return t, errors.New("the test command is not allowed")
	}
	return t, t.Validate()
}

// workers answer as in a run that is approved.
func (b *bench) workers() []bus.Worker {
	say := func(name run.Worker, f func(run.Ask) run.Answer) bus.Worker {
		return bus.Worker{Name: name, Home: home, Slots: 2, Handle: func(_ context.Context, j bus.Job) (run.Answer, error) { return f(j.Ask), nil }}
	}
	red := run.Verdict{Kind: run.VerdictFailed, Tree: "t0", Evidence: run.Ref{SHA256: "e0"}}
	green := run.Verdict{Kind: run.VerdictPassed, Tree: "t1", Evidence: run.Ref{SHA256: "e1"}}
	cand := run.Candidate{Hash: "c1", Changes: []run.Change{{Path: "calc.py", Op: run.OpModify}}, Diff: diffRef()}
	applied := cand
	applied.Tree = &fixed
	approve := func(run.Ask) run.Answer {
		return run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove, Candidate: "c1", Tree: "t1"}}
	}
	proposal := run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p1"}}}}}
	return []bus.Worker{
		say(run.Snapshot, func(run.Ask) run.Answer { return run.Answer{Snapshot: &run.SnapshotAnswer{Tree: origin}} }),
		say(run.Test, func(a run.Ask) run.Answer {
			if a.Test.Baseline == nil {
				return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: red}}}}
			}
			return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Candidate: "c1", Verdict: green}}}}
		}),
		{Name: run.Debugger, Home: home, Slots: 2, Handle: func(ctx context.Context, _ bus.Job) (run.Answer, error) {
			select {
			case <-b.gate:
				return proposal, nil
			case <-ctx.Done():
				return run.Answer{}, ctx.Err()
			}
		}},
		say(run.Validate, func(run.Ask) run.Answer {
			return run.Answer{Validate: &run.ValidateAnswer{Accepted: []run.Candidate{cand}}}
		}),
		say(run.Apply, func(run.Ask) run.Answer {
			return run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{applied}}}
		}),
		say(run.Guardian, approve),
		say(run.Policy, approve),
		say(run.Deliver, func(run.Ask) run.Answer {
			return run.Answer{Deliver: &run.DeliverAnswer{Delivered: run.DeliverApply, Candidate: "c1", Before: "t0", After: "t1"}}
		}),
		say(run.Rollback, func(run.Ask) run.Answer {
			return run.Answer{Rollback: &run.RollbackAnswer{Before: "t0", After: "t0"}}
		}),
		say(run.Report, func(run.Ask) run.Answer { return run.Answer{Report: &run.ReportAnswer{Path: "report.md"}} }),
	}
}

func diffRef() run.Ref { return run.Ref{SHA256: sha256hex(diff), Size: int64(len(diff))} }

// project makes a folder below the root.
func (b *bench) project(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(b.root, name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

// finish waits until a run is closed.
func (b *bench) finish(t *testing.T, id string) {
	t.Helper()
	b.reach(t, id, func(s run.State) bool { return s.Closed })
}

func (b *bench) reach(t *testing.T, id string, done func(run.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, b.link.Follow(ctx, id, func(_ run.Event, s run.State) bool { return !done(s) }))
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
