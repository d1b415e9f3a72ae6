package testrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	goleak.VerifyTestMain(m)
}

type files map[string]string

// calc is the project that most tests vary.
func calc() files {
	return files{
		"calc.py":            "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n",
		"tests/test_calc.py": "from calc import add, mul\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n",
	}
}

func (f files) with(path, text string) files {
	out := files{path: text}
	for k, v := range f {
		if k != path {
			out[k] = v
		}
	}
	return out
}

func write(t *testing.T, f files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// find plans for pytest, or skips where no interpreter has it.
func find(t *testing.T, dir, command string) testrun.Plan {
	t.Helper()
	plan, err := testrun.Find(t.Context(), dir, command)
	if errors.Is(err, testrun.ErrNoInterpreter) {
		t.Skip("this machine has no pytest: ", err)
	}
	require.NoError(t, err)
	return plan
}

func pytestPlan(t *testing.T, dir, command string) testrun.Plan {
	t.Helper()
	plan := find(t, dir, command)
	if plan.Runner != testrun.Pytest {
		t.Skip("this machine has no pytest: ", plan)
	}
	return plan
}

func execute(t *testing.T, plan testrun.Plan, dir string, change ...func(*testrun.Options)) run.Evidence {
	t.Helper()
	opts := testrun.Options{Tree: "tree", Timeout: time.Minute}
	for _, c := range change {
		c(&opts)
	}
	e, _, err := testrun.Run(t.Context(), plan, dir, opts)
	require.NoError(t, err)
	return e
}

// machine finds the machine's pytest once; projects then share it.
var machine = sync.OnceValues(func() (testrun.Plan, error) {
	dir, err := os.MkdirTemp("", "nexus-test-")
	if err != nil {
		return testrun.Plan{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "test_a.py"), []byte("def test_a(): pass\n"), 0o600); err != nil {
		return testrun.Plan{}, err
	}
	return testrun.Find(context.Background(), dir, "pytest")
})

// pytestOn plans and runs one project, staged apart from where it was found.
func pytestOn(t *testing.T, f files, change ...func(*testrun.Options)) run.Evidence {
	t.Helper()
	plan, err := machine()
	if errors.Is(err, testrun.ErrNoInterpreter) {
		t.Skip("this machine has no pytest: ", err)
	}
	require.NoError(t, err)
	if plan.Runner != testrun.Pytest {
		t.Skip("this machine has no pytest: ", plan)
	}
	plan.Root = write(t, f)
	return execute(t, plan, write(t, f), change...)
}

func outcomes(pairs ...string) map[string]run.Outcome {
	m := map[string]run.Outcome{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = run.Outcome(pairs[i+1])
	}
	return m
}

func trusted(t *testing.T, e run.Evidence) {
	t.Helper()
	require.True(t, e.Completed, "completed: %s", e.Tail)
	require.True(t, e.Canary, "canary: %s", e.Tail)
	require.Empty(t, e.Tampered)
	require.Empty(t, e.Infrastructure)
}

func TestPytestReportsEveryOutcome(t *testing.T) {
	t.Parallel()
	e := pytestOn(t, files{"test_all.py": `
import pytest

def test_pass(): pass
def test_fail(): assert 1 == 2
def test_skip(): pytest.skip("later")
@pytest.mark.xfail
def test_xfail(): assert False
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.skipif(True, reason="never here")
def test_marked(): pass
@pytest.fixture
def broken(): raise RuntimeError("set-up")
def test_setup(broken): pass
@pytest.fixture
def late():
    yield
    raise RuntimeError("tear-down")
def test_teardown(late): pass
@pytest.mark.parametrize("x", ["a b", "[x]", "ü::", "\n", "/"])
def test_odd(x): assert x != "/"
`})
	trusted(t, e)
	require.Equal(t, 1, e.Exit)
	for id, o := range outcomes(
		"test_all.py::test_pass", "passed", "test_all.py::test_fail", "failed", "test_all.py::test_skip", "skipped",
		"test_all.py::test_xfail", "xfailed", "test_all.py::test_xpass", "xpassed", "test_all.py::test_marked", "skipped",
		"test_all.py::test_setup", "error", "test_all.py::test_teardown", "error", "test_all.py::test_odd[a b]", "passed",
	) {
		require.Equal(t, o, e.Outcomes[id], id)
	}
	require.Len(t, e.Collected, 13)
	require.Len(t, e.Outcomes, 13)
	require.ElementsMatch(t, []string{
		"test_all.py::test_xfail", "test_all.py::test_xpass", "test_all.py::test_marked",
	}, e.Declared)
}

func TestHealedProjectIsJudgedPassed(t *testing.T) {
	t.Parallel()
	base := pytestOn(t, calc())
	trusted(t, base)
	require.Equal(t, outcomes("tests/test_calc.py::test_add", "failed", "tests/test_calc.py::test_mul", "passed"), base.Outcomes)
	require.Equal(t, run.VerdictFailed, run.JudgeBase(base).Kind)

	got := pytestOn(t, calc().with("calc.py", "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"))
	trusted(t, got)
	v := run.Judge(base, got)
	require.Equal(t, run.VerdictPassed, v.Kind, v.Reason)
	require.Equal(t, []string{"tests/test_calc.py::test_add"}, v.Fixed)
}
