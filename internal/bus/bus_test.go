package bus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const home = "here"

var workerNames = []string{
	"snapshot", "debugger", "validate", "apply", "test", "guardian", "policy", "deliver", "rollback", "report",
}

// bench is an embedded bus with a conductor and workers given by the test.
type bench struct {
	srv  *Server
	core *Bus
	stop func()
}

// logger shows what the bus has to say when a test fails.
func logger(tb testing.TB) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(tb)).Level(zerolog.WarnLevel)
}

func start(tb testing.TB, dir string, noSync bool, workers []Worker) *bench {
	tb.Helper()
	log := zerolog.Nop()
	srv, err := StartServer(ServerConfig{StateDir: dir, NoSync: noSync, Workers: workerNames, Log: log})
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	core, err := srv.Core(ctx, log)
	require.NoError(tb, err)
	require.NoError(tb, core.Provision(ctx, 1))
	require.NoError(tb, core.ResetConsumers(ctx))
	c, err := NewConductor(core, ConductorConfig{Intake: accept})
	require.NoError(tb, err)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.Run(ctx) })
	var buses []*Bus
	for _, w := range workers {
		require.NoError(tb, core.ProvisionWorker(ctx, w))
		b, err := srv.Connect(ctx, string(w.Name), log)
		require.NoError(tb, err)
		buses = append(buses, b)
		g.Go(func() error { return b.Work(ctx, w) })
	}
	var once sync.Once
	t := &bench{srv: srv, core: core}
	t.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(tb, g.Wait())
			for _, b := range buses {
				b.Close()
			}
			core.Close()
			srv.Stop()
		})
	}
	tb.Cleanup(t.stop)
	return t
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

// healers are workers that answer at once, as in a run that is approved.
func healers() []Worker {
	say := func(name run.Worker, f func(run.Ask) run.Answer) Worker {
		return Worker{Name: name, Home: home, Slots: 2, Handle: func(_ context.Context, j Job) (run.Answer, error) { return f(j.Ask), nil }}
	}
	red := run.Verdict{Kind: run.VerdictFailed, Tree: "t0", Evidence: run.Ref{SHA256: "e0"}}
	green := run.Verdict{Kind: run.VerdictPassed, Tree: "t1", Evidence: run.Ref{SHA256: "e1"}}
	cand := run.Candidate{Hash: "c1"}
	applied := cand
	applied.Tree = &fixed
	approve := func(run.Ask) run.Answer {
		return run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove, Candidate: "c1", Tree: "t1"}}
	}
	return []Worker{
		say(run.Snapshot, func(run.Ask) run.Answer { return run.Answer{Snapshot: &run.SnapshotAnswer{Tree: origin}} }),
		say(run.Test, func(a run.Ask) run.Answer {
			if a.Test.Baseline == nil {
				return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: red}}}}
			}
			return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Candidate: "c1", Verdict: green}}}}
		}),
		say(run.Debugger, func(run.Ask) run.Answer {
			return run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p1"}}}}}
		}),
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

// finish follows a run until it is closed.
func (t *bench) finish(tb testing.TB, id string) run.State {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var last run.State
	require.NoError(tb, t.core.Follow(ctx, id, func(_ run.Event, s run.State) bool {
		last = s
		return !s.Closed
	}))
	return last
}

func TestRunIsApproved(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), false, healers())
	id, err := b.core.Submit(t.Context(), "local", "k1", wire.Heal{Dir: "/p"})
	require.NoError(t, err)
	again, err := b.core.Submit(t.Context(), "local", "k1", wire.Heal{Dir: "/p"})
	require.NoError(t, err)
	require.Equal(t, id, again)
	s := b.finish(t, id)
	require.Equal(t, run.Approved, s.Ended.State)
	require.Equal(t, "t1", s.Settled.After)
	runs, err := b.core.Runs(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bool{id: true}, runs)
}

func BenchmarkStep(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprintf("fsync=%v", !noSync), func(b *testing.B) {
			t := start(b, b.TempDir(), noSync, healers())
			n := 0
			warm := func() {
				n++
				id, err := t.core.Submit(b.Context(), "local", fmt.Sprint("k", n), wire.Heal{Dir: "/p"})
				require.NoError(b, err)
				require.Equal(b, run.Approved, t.finish(b, id).Ended.State)
			}
			warm()
			for b.Loop() {
				warm()
			}
		})
	}
}
