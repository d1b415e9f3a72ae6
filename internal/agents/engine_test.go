package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

// engine is a debugger, and what it is asked after a real baseline.
func (b *bench) engine() (*debugger, *run.DebugInput) {
	b.t.Helper()
	worker := b.tester()
	base, err := b.baseline(worker, unittest)
	require.NoError(b.t, err)
	_, tree := b.snapshot()
	v := base.Results[0].Verdict
	return &debugger{store: b.store, stage: worker.stage}, &run.DebugInput{
		Attempt: 1, Source: run.SourceEngine, Dir: b.dir, Base: tree, Evidence: v, Baseline: v,
		Plan: base.Plan, Protected: base.Protected, Limit: 20, Seconds: 120,
	}
}

// TestEngineProposes: edits under which the red tests pass, as diffs of the
// project, which it does not touch.
func TestEngineProposes(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, in := b.engine()
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.NotEmpty(t, ans.Proposals, ans.Reason)
	require.Zero(t, ans.Calls)
	p := ans.Proposals[0]
	require.Equal(t, "diff", p.Format)
	require.Contains(t, p.Note, "calc.py:2")
	text, err := rollback.Read(t.Context(), b.store, p.Text.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(text), "-    return a - b\n+    return a + b\n")
	require.Equal(t, before, b.hash())
}

// TestWhatTheEngineNeeds: a plan under which it can do nothing is told by its
// cause, before anything is tried.
func TestWhatTheEngineNeeds(t *testing.T) {
	t.Parallel()
	python := func(version string) *testrun.Interpreter {
		return &testrun.Interpreter{Path: "/opt/python", Version: version}
	}
	for _, c := range []struct {
		plan testrun.Plan
		says string
	}{
		{testrun.Plan{Runner: testrun.Command, Weak: true}, "a runner that tells of every test"},
		{testrun.Plan{Runner: testrun.Go, Tool: &testrun.Tool{}}, "for tests under go configure a model"},
		{testrun.Plan{Runner: testrun.Unittest, Python: python("3.7.16")}, "it needs Python 3.8 or later, and the tests run under 3.7.16 (/opt/python)"},
		{testrun.Plan{Runner: testrun.Unittest, Python: python("3.6.0")}, "it needs Python 3.8 or later"},
		{testrun.Plan{Runner: testrun.Unittest, Python: python("3.8.0")}, ""},
		{testrun.Plan{Runner: testrun.Pytest, Python: python("3.13.0")}, ""},
	} {
		b := newBench(t, files{})
		d, in := &debugger{store: b.store}, &run.DebugInput{Source: run.SourceEngine}
		ref, err := storeJSON(t.Context(), b.store, c.plan)
		require.NoError(t, err)
		in.Plan = &ref
		if c.says == "" {
			require.Empty(t, engineNeeds(c.plan))
			continue
		}
		ans, err := debug(t, d, in)
		require.NoError(t, err)
		require.Contains(t, ans.Reason, c.says)
		require.Empty(t, ans.Proposals)
	}
}

// TestEngineKeepsToItsPaths: neither protected files nor others than the
// targets are edited.
func TestEngineKeepsToItsPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	d, in := b.engine()
	in.Targets = []string{"other.py"}
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.Empty(t, ans.Proposals)
	in.Targets, in.Protected = nil, b.guarded("calc.py", "test_calc.py")
	ans, err = debug(t, d, in)
	require.NoError(t, err)
	require.Empty(t, ans.Proposals)
}

// TestEngineAndTestsThatDestroy: nothing can be tried on a tree whose tests
// take it, or what runs them, away. That is no fault of ours.
func TestEngineAndTestsThatDestroy(t *testing.T) {
	t.Parallel()
	kill := "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"
	b := newBench(t, files{"calc.py": broken, "test_calc.py": kill + tests})
	d, in := b.engine()
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.Empty(t, ans.Proposals)
	require.NotEmpty(t, ans.Reason)
}

// TestEngineWithoutItsArtifacts: it looks for no fix in the dark.
func TestEngineWithoutItsArtifacts(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("this machine has no python3")
	}
	lost := run.Ref{SHA256: strings.Repeat("8", 64)}
	for name, change := range map[string]func(in *run.DebugInput){
		"no plan":  func(in *run.DebugInput) { in.Plan = nil },
		"evidence": func(in *run.DebugInput) { in.Evidence.Evidence = lost },
		"baseline": func(in *run.DebugInput) { in.Baseline.Evidence = lost },
		"list":     func(in *run.DebugInput) { in.Protected = &lost },
		"no list":  func(in *run.DebugInput) { in.Protected = nil },
		"tree":     func(in *run.DebugInput) { in.Base.Manifest = lost },
		"other runners": func(in *run.DebugInput) {
			*in.Plan = b.json(testrun.Plan{Runner: "x", Python: &testrun.Interpreter{Path: python}})
		},
	} {
		in := b.debugging(run.SourceEngine)
		plan := b.json(testrun.Plan{Runner: testrun.Unittest, Root: b.dir, Python: &testrun.Interpreter{Path: python}})
		in.Plan = &plan
		change(in)
		ans, err := debug(t, &debugger{store: b.store, stage: stager{store: b.store, temp: t.TempDir()}}, in)
		require.Error(t, err, name)
		require.Nil(t, ans, name)
	}
}

func TestDestroyed(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"nothing":         {t.Context(), nil, ""},
		"a harness gone":  {t.Context(), fmt.Errorf("x: %w", repair.ErrNoReport), "end the process"},
		"a file gone":     {t.Context(), fmt.Errorf("x: %w", fs.ErrNotExist), "delete its files"},
		"a stop":          {over, repair.ErrNoReport, ""},
		"no sandbox":      {t.Context(), errors.Join(repair.ErrNoReport, sandbox.ErrUnavailable), ""},
		"no setup":        {t.Context(), errors.Join(repair.ErrNoReport, sandbox.ErrSetup), ""},
		"something of us": {t.Context(), errors.New("bug"), ""},
	} {
		got := destroyed(c.ctx, c.err)
		require.Equal(t, c.want == "", got == "", name)
		require.Contains(t, got, c.want, name)
	}
}

// TestSplit: what is red must turn green, what is gone must come back, what is
// green must stay; what changes by itself is in neither.
func TestSplit(t *testing.T) {
	t.Parallel()
	base := run.Evidence{Collected: []string{"a", "b", "c", "gone", "odd gone"}, Flaky: []string{"odd", "odd gone"}}
	now := run.Evidence{Outcomes: map[string]run.Outcome{
		"a": run.OutcomeFailed, "b": run.OutcomePassed, "c": run.OutcomeError, "skip": run.OutcomeSkipped,
		"odd": run.OutcomeFailed, "odder": run.OutcomePassed,
	}, Flaky: []string{"odder"}}
	failing, passing := split(base, now)
	require.Equal(t, []string{"a", "c", "gone"}, failing)
	require.Equal(t, []string{"b"}, passing)
}

func TestTestFiles(t *testing.T) {
	t.Parallel()
	got := testFiles(run.Evidence{Collected: []string{"b.py::x", "a.py::x", "b.py::y", "whole.py"}})
	require.Equal(t, []string{"a.py", "b.py"}, got)
}

// TestUnnamed: the engine knows tests by their names, and is told of the rest.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	p := protection{"test_a.py": true, "tests/x.py": true, "conftest.py": true, "tox.ini": true, "checks/b.py": true, "x_test.go": true, "tests.py": true}
	require.Equal(t, []string{"checks/b.py", "tests.py"}, unnamed(p))
}
