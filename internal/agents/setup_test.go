package agents

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	goleak.VerifyTestMain(m)
}

const home = "here"

// bench is a project on a disk, an embedded bus with its artifacts, and a
// state folder: what a worker has in a run.
type bench struct {
	t     *testing.T
	dir   string
	state string
	srv   *bus.Server
	core  *bus.Bus
	store rollback.Blobs
}

// files describes a tree: path → content; a content that begins with "→" is
// the target of a link.
type files map[string]string

func newBench(t *testing.T, tree files) *bench {
	t.Helper()
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "project"), state: t.TempDir()}
	b.write(tree)
	names := make([]string, 0, len(Names()))
	for _, n := range Names() {
		names = append(names, string(n))
	}
	var err error
	b.srv, err = bus.StartServer(bus.ServerConfig{StateDir: t.TempDir(), NoSync: true, Workers: names, Log: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(b.srv.Stop)
	b.core, err = b.srv.Core(t.Context(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(b.core.Close)
	require.NoError(t, b.core.Provision(t.Context(), 1))
	b.store = b.core.Artifacts()
	return b
}

func (b *bench) write(tree files) {
	b.t.Helper()
	for p, text := range tree {
		full := filepath.Join(b.dir, p)
		require.NoError(b.t, os.MkdirAll(filepath.Dir(full), 0o755))
		if target, ok := strings.CutPrefix(text, "→"); ok {
			require.NoError(b.t, os.Symlink(target, full))
			continue
		}
		require.NoError(b.t, os.WriteFile(full, []byte(text), 0o644))
	}
}

func (b *bench) read(p string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, p))
	require.NoError(b.t, err)
	return string(data)
}

// hash is the tree hash of the project on the disk.
func (b *bench) hash() string {
	b.t.Helper()
	m, err := rollback.Scan(b.t.Context(), b.dir, rollback.Limits{})
	require.NoError(b.t, err)
	return m.Hash()
}

// snapshot stores the project as it is.
func (b *bench) snapshot() (rollback.Manifest, run.Tree) {
	b.t.Helper()
	m, err := rollback.Take(b.t.Context(), b.dir, rollback.Limits{}, b.store)
	require.NoError(b.t, err)
	tree, err := m.Store(b.t.Context(), b.store)
	require.NoError(b.t, err)
	return m, tree
}

func (b *bench) put(text string) run.Ref {
	b.t.Helper()
	ref, err := b.store.Put(b.t.Context(), []byte(text))
	require.NoError(b.t, err)
	return ref
}

func (b *bench) json(v any) run.Ref {
	b.t.Helper()
	data, err := json.Marshal(v)
	require.NoError(b.t, err)
	return b.put(string(data))
}

// guarded stores a list of protected files.
func (b *bench) guarded(paths ...string) *run.Ref {
	b.t.Helper()
	ref, err := keepProtected(b.t.Context(), b.store, paths)
	require.NoError(b.t, err)
	return ref
}

// modify is the change of one file of the manifest.
func (b *bench) modify(m rollback.Manifest, p, text string) run.Change {
	b.t.Helper()
	e, ok := m.Lookup(p)
	require.True(b.t, ok, p)
	return run.Change{Path: p, Op: run.OpModify, Base: e.SHA256, New: b.put(text).SHA256, Mode: e.Mode, BaseMode: e.Mode}
}

// staged is the candidate that the apply stage makes of the changes.
func (b *bench) staged(origin rollback.Manifest, changes ...run.Change) run.Candidate {
	b.t.Helper()
	next, err := rollback.Stage(b.t.Context(), origin, changes, b.store)
	require.NoError(b.t, err)
	tree, err := next.Store(b.t.Context(), b.store)
	require.NoError(b.t, err)
	c := run.Candidate{OnOrigin: true, Tree: &tree}
	c.Changes, err = rollback.Diff(origin, next)
	require.NoError(b.t, err)
	c.Hash = run.HashChanges(c.Changes)
	text, err := diffText(b.t.Context(), b.store, origin, next, c.Changes)
	require.NoError(b.t, err)
	c.Diff = b.put(string(text))
	return c
}

// job is an ask that no run waits for.
func job(a run.Ask) bus.Job {
	return bus.Job{Run: strings.Repeat("a", 26), N: 9, Ask: a, Log: zerolog.Nop()}
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// pending opens a run on the bus, brings it to where it waits for the worker,
// and returns that ask with what the test wants it to be. The workers before
// it say what lets the run go on; how says how the run is to end up there.
func (b *bench) pending(name run.Worker, want run.Ask) bus.Job {
	b.t.Helper()
	want.Worker = name
	got := make(chan bus.Job, 1)
	ctx, cancel := context.WithCancel(context.Background())
	parts := make(chan error, len(Names())+1)
	started := 1
	conductor, err := bus.NewConductor(b.core, bus.ConductorConfig{Intake: b.intake(want)})
	require.NoError(b.t, err)
	go func() { parts <- conductor.Run(ctx) }()
	for _, w := range Names() {
		worker := bus.Worker{Name: w, Home: home, Handle: func(ctx context.Context, j bus.Job) (run.Answer, error) {
			if j.Ask.Worker != name {
				return canned(j.Ask), nil
			}
			got <- j
			<-ctx.Done()
			return run.Answer{}, ctx.Err()
		}}
		require.NoError(b.t, b.core.ProvisionWorker(b.t.Context(), worker))
		link, err := b.srv.Connect(b.t.Context(), string(w), zerolog.Nop())
		require.NoError(b.t, err)
		b.t.Cleanup(link.Close)
		started++
		go func() { parts <- link.Work(ctx, worker) }()
	}
	b.t.Cleanup(func() {
		cancel()
		for range started {
			if err := <-parts; err != nil && !errors.Is(err, context.Canceled) {
				b.t.Errorf("part: %v", err)
			}
		}
	})
	_, err = b.core.Submit(b.t.Context(), "local", b.t.Name(), wire.Heal{Dir: b.dir})
	require.NoError(b.t, err)
	select {
	case j := <-got:
		j.Ask = want
		return j
	case <-time.After(patience):
		require.FailNow(b.t, "the run does not come to "+string(name))
		panic("not reached")
	}
}

// intake lets the task in with the settings under which the worker is asked.
func (b *bench) intake(want run.Ask) func(context.Context, string, wire.Heal) (run.Task, error) {
	return func(_ context.Context, tenant string, h wire.Heal) (run.Task, error) {
		t := run.Task{
			Tenant: tenant, Dir: h.Dir, Home: home, Sources: []run.Source{run.SourceModel},
			Deliver: run.DeliverApply, Limits: run.DefaultLimits(),
		}
		if want.Worker == run.Rollback || want.Worker == run.Report {
			t.Limits.DebugAttempts = 1
			t.Test = "red" // see canned
		}
		return t, t.Validate()
	}
}

// noBytes is the hash of nothing, which every store holds.
const noBytes = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// canned answers for the workers that a test is not about. A run whose test
// command is "red" is not healed.
func canned(a run.Ask) run.Answer {
	tree := func(name string) *run.Tree { return &run.Tree{Hash: name, Manifest: run.Ref{SHA256: name}} }
	verdict := func(k run.VerdictKind, tree string) run.Verdict {
		return run.Verdict{Kind: k, Tree: tree, Evidence: run.Ref{SHA256: "e-" + tree}}
	}
	switch {
	case a.Snapshot != nil:
		return run.Answer{Snapshot: &run.SnapshotAnswer{Tree: *tree("t0")}}
	case a.Test != nil && a.Test.Baseline == nil:
		return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: verdict(run.VerdictFailed, "t0")}}}}
	case a.Test != nil:
		kind := run.VerdictPassed
		if a.Test.Test == "red" {
			kind = run.VerdictFailed
		}
		return run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Candidate: "c1", Verdict: verdict(kind, "t1")}}}}
	case a.Debug != nil:
		return run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p1"}}}}}
	case a.Validate != nil:
		return run.Answer{Validate: &run.ValidateAnswer{Accepted: []run.Candidate{{Hash: "c1"}}}}
	case a.Apply != nil:
		return run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{{Hash: "c1", Tree: tree("t1"), Diff: run.Ref{SHA256: noBytes}}}}}
	case a.Review != nil:
		return run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove, Candidate: "c1", Tree: "t1"}}
	case a.Deliver != nil:
		return run.Answer{Deliver: &run.DeliverAnswer{Delivered: a.Deliver.Mode, Candidate: "c1", Before: "t0", After: "t1"}}
	case a.Rollback != nil:
		return run.Answer{Rollback: &run.RollbackAnswer{Before: "t0", After: "t0"}}
	}
	return run.Answer{Report: &run.ReportAnswer{Path: "report.md"}}
}

// evidence is that of a suite with one test, stored.
func (b *bench) evidence(tree string, o run.Outcome, change ...func(*run.Evidence)) run.Ref {
	b.t.Helper()
	e := run.Evidence{
		Runner: "pytest", Level: "user", Tree: tree, Completed: true, Canary: true,
		Outcomes: map[string]run.Outcome{"test_calc.py::test": o, "test_calc.py::other": run.OutcomePassed},
	}
	e.Collected = []string{"test_calc.py::test", "test_calc.py::other"}
	if o != run.OutcomePassed {
		e.Exit = 1
	}
	for _, c := range change {
		c(&e)
	}
	return b.json(e)
}

const (
	broken = "def add(a, b):\n    return a - b\n"
	fixed  = "def add(a, b):\n    return a + b\n"
	tests  = `import unittest

from calc import add


class T(unittest.TestCase):
    def test(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
`
)

// calc is the project of most tests.
func calc() files {
	return files{"calc.py": broken, "test_calc.py": tests, "notes.txt": "mine"}
}

// failing is a store that does not answer for some contents, or answers with
// other ones.
type failing struct {
	rollback.Blobs
	err  map[string]error
	fake map[string]string
}

// Get implements rollback.Blobs.
func (f failing) Get(ctx context.Context, sha string) ([]byte, error) {
	if err := f.err[sha]; err != nil {
		return nil, err
	}
	if data, ok := f.fake[sha]; ok {
		return []byte(data), nil
	}
	return f.Blobs.Get(ctx, sha)
}

// hooked is a store that calls before it answers.
type hooked struct {
	rollback.Blobs
	before func(ctx context.Context, sha string) error
}

// Get implements rollback.Blobs.
func (h hooked) Get(ctx context.Context, sha string) ([]byte, error) {
	if err := h.before(ctx, sha); err != nil {
		return nil, err
	}
	return h.Blobs.Get(ctx, sha)
}

// unwritable is a store that takes nothing.
type unwritable struct {
	rollback.Blobs
	err error
}

// Put implements rollback.Blobs.
func (u unwritable) Put(context.Context, []byte) (run.Ref, error) { return run.Ref{}, u.err }
