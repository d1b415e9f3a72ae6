package bus

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const home = "here"

var workerNames = []string{
	"snapshot", "debugger", "validate", "apply", "test", "guardian", "policy", "deliver", "rollback", "report",
}

// setup says what a bench is made of; the zero value is a server in a
// temporary folder with one conductor and no workers.
type setup struct {
	dir         string
	sync        bool
	workers     []Worker
	noConductor bool
	intake      func(string, wire.Heal) (run.Task, error)
	settled     func(run.State)
	tune        func(*tuning)
	provision   []ProvisionOption
}

// bench is an embedded bus with a conductor and workers given by the test.
type bench struct {
	tb   testing.TB
	set  setup
	srv  *Server
	core *Bus
	mu   sync.Mutex
	// parts stop one part each, the newest first.
	parts []func()
}

func start(tb testing.TB, s setup) *bench {
	tb.Helper()
	if s.dir == "" {
		s.dir = tb.TempDir()
	}
	if s.intake == nil {
		s.intake = accept
	}
	srv, err := StartServer(ServerConfig{StateDir: s.dir, NoSync: !s.sync, Workers: workerNames, Log: zerolog.Nop()})
	require.NoError(tb, err)
	b := &bench{tb: tb, set: s, srv: srv}
	tb.Cleanup(b.stop)
	b.part(srv.Stop)
	b.core = b.connect(roleCore)
	require.NoError(tb, b.core.Provision(tb.Context(), 1, s.provision...))
	require.NoError(tb, b.core.ResetConsumers(tb.Context()))
	if !s.noConductor {
		b.conduct(b.core)
	}
	for _, w := range s.workers {
		b.work(w)
	}
	return b
}

func (b *bench) part(stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, stop)
}

// stop ends all parts; it may be called again.
func (b *bench) stop() {
	b.mu.Lock()
	parts := b.parts
	b.parts = nil
	b.mu.Unlock()
	for i := len(parts) - 1; i >= 0; i-- {
		parts[i]()
	}
}

// connect makes a connection of a role.
func (b *bench) connect(role string) *Bus {
	b.tb.Helper()
	c, err := b.srv.Connect(b.tb.Context(), role, zerolog.Nop())
	require.NoError(b.tb, err)
	if b.set.tune != nil {
		b.set.tune(&c.tune)
	}
	b.part(c.Close)
	return c
}

// running is a conductor or a worker.
type running struct {
	bus *Bus
	// wait returns what it returned; halt stops it in an orderly way first.
	wait, halt func() error
}

func (b *bench) start(c *Bus, do func(context.Context) error) running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := do(ctx)
		if err != nil && ctx.Err() == nil {
			b.tb.Logf("a part ended by itself: %v", err)
		}
		done <- err
	}()
	wait := sync.OnceValue(func() error { return <-done })
	halt := func() error { cancel(); return wait() }
	b.part(func() { _ = halt() }) // tests that care call it themselves
	return running{c, wait, halt}
}

// conduct runs one more conductor.
func (b *bench) conduct(c *Bus) running {
	b.tb.Helper()
	con, err := NewConductor(c, ConductorConfig{Intake: anytime(b.set.intake), Settled: b.set.settled})
	require.NoError(b.tb, err)
	return b.start(c, con.Run)
}

// work runs one more worker, with a connection of its own.
func (b *bench) work(w Worker) running {
	b.tb.Helper()
	require.NoError(b.tb, b.core.ProvisionWorker(b.tb.Context(), w))
	c := b.connect(string(w.Name))
	return b.start(c, func(ctx context.Context) error { return c.Work(ctx, w) })
}

// submit publishes a task as the owner's command line does.
func (b *bench) submit(key string) string {
	b.tb.Helper()
	id, err := b.core.Submit(b.tb.Context(), "local", key, wire.Heal{Dir: "/p"})
	require.NoError(b.tb, err)
	return id
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// until follows a run until ok, and returns its state then.
func (b *bench) until(id string, ok func(run.Event, run.State) bool) run.State {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last run.State
	err := b.core.Follow(ctx, id, func(e run.Event, s run.State) bool {
		last = s
		return !ok(e, s)
	})
	require.NoError(b.tb, err, "after event %d; pending %v", last.N, last.Pending)
	return last
}

// finish follows a run until it is closed.
func (b *bench) finish(id string) run.State {
	b.tb.Helper()
	return b.until(id, func(_ run.Event, s run.State) bool { return s.Closed })
}

// log reads a run's log.
func (b *bench) log(id string) Log {
	b.tb.Helper()
	l, err := b.core.ReadLog(b.tb.Context(), id)
	require.NoError(b.tb, err)
	return l
}

// letter waits for a dead letter that fits.
func (b *bench) letter(about string, ok func(Letter) bool) Letter {
	b.tb.Helper()
	var found Letter
	require.Eventually(b.tb, func() bool {
		all, err := b.core.DeadLetters(context.Background())
		for _, l := range all {
			if ok(l) {
				found = l
				return err == nil
			}
		}
		return false
	}, patience, 5*time.Millisecond, "no such dead letter: %s", about)
	return found
}

// stranger is a plain client with the credentials of role local.
func (b *bench) stranger() *nats.Conn {
	b.tb.Helper()
	nc, err := nats.Connect(b.srv.URL())
	require.NoError(b.tb, err)
	b.part(nc.Close)
	return nc
}

// anytime is an intake that asks nobody.
func anytime(f func(string, wire.Heal) (run.Task, error)) func(context.Context, string, wire.Heal) (run.Task, error) {
	return func(_ context.Context, tenant string, h wire.Heal) (run.Task, error) { return f(tenant, h) }
}

func accept(tenant string, h wire.Heal) (run.Task, error) {
	t := run.Task{
		Tenant: tenant, Dir: h.Dir, Home: home, Sources: []run.Source{run.SourceEngine},
		Deliver: run.DeliverApply, Limits: h.Limits.Over(run.DefaultLimits()),
	}
	return t, t.Validate()
}

var (
	origin = run.Tree{Manifest: run.Ref{SHA256: "m0"}, Hash: "t0"}
	fixed  = run.Tree{Manifest: run.Ref{SHA256: "m1"}, Hash: "t1"}
)

// answers are those of a run that is approved.
func answers() map[run.Worker]func(run.Ask) run.Answer {
	red := run.Verdict{Kind: run.VerdictFailed, Tree: "t0", Evidence: run.Ref{SHA256: "e0"}}
	green := run.Verdict{Kind: run.VerdictPassed, Tree: "t1", Evidence: run.Ref{SHA256: "e1"}}
	cand := run.Candidate{Hash: "c1"}
	applied := cand
	applied.Tree = &fixed
	approve := func(run.Ask) run.Answer {
		return run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove, Candidate: "c1", Tree: "t1"}}
	}
	return map[run.Worker]func(run.Ask) run.Answer{
		run.Snapshot: func(run.Ask) run.Answer { return run.Answer{Snapshot: &run.SnapshotAnswer{Tree: origin}} },
		run.Test: func(a run.Ask) run.Answer {
			if a.Test.Baseline == nil {
				return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: red}}}}
			}
			return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Candidate: "c1", Verdict: green}}}}
		},
		run.Debugger: func(run.Ask) run.Answer {
			return run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p1"}}}}}
		},
		run.Validate: func(run.Ask) run.Answer {
			return run.Answer{Validate: &run.ValidateAnswer{Accepted: []run.Candidate{cand}}}
		},
		run.Apply: func(run.Ask) run.Answer {
			return run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{applied}}}
		},
		run.Guardian: approve,
		run.Policy:   approve,
		run.Deliver: func(run.Ask) run.Answer {
			return run.Answer{Deliver: &run.DeliverAnswer{Delivered: run.DeliverApply, Candidate: "c1", Before: "t0", After: "t1"}}
		},
		run.Rollback: func(run.Ask) run.Answer {
			return run.Answer{Rollback: &run.RollbackAnswer{Before: "t0", After: "t0"}}
		},
		run.Report: func(run.Ask) run.Answer { return run.Answer{Report: &run.ReportAnswer{Path: "report.md"}} },
	}
}

// healers are workers that answer at once; but replaces some of them.
func healers(but ...Worker) []Worker {
	all := answers()
	for _, w := range but {
		delete(all, w.Name)
	}
	for name, f := range all {
		but = append(but, Worker{
			Name: name, Home: home, Slots: 2,
			Handle: func(_ context.Context, j Job) (run.Answer, error) { return f(j.Ask), nil },
		})
	}
	return but
}

// worker is one with the given handler.
func worker(name run.Worker, handle func(context.Context, Job) (run.Answer, error)) Worker {
	return Worker{Name: name, Home: home, Handle: handle}
}

// quick makes the times small that tests wait for.
func quick(t *tuning) {
	t.ackWait, t.heartbeat, t.retryDelay, t.fullFor = 400*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
}

// recv waits for a value.
func recv[T any](tb testing.TB, c <-chan T) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(tb, "nothing came")
		panic("not reached")
	}
}

var errTest = errors.New("the test says so")
