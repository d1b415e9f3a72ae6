package testrun_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

func limitTime(d time.Duration) func(*testrun.Options) {
	return func(o *testrun.Options) { o.Timeout = d }
}

// What a candidate may try; none of it may be taken for a healed project.
func TestFakesAreNotPassed(t *testing.T) {
	t.Parallel()
	base := pytestOn(t, calc())
	for name, candidate := range map[string]files{
		"os._exit(0) in the code (A130)": calc().with("calc.py", "import os\n\n\ndef add(a, b):\n    os._exit(0)\n\n\ndef mul(a, b):\n    return a * b\n"),
		"os._exit(0) at import":          calc().with("calc.py", "import os\nos._exit(0)\n"),
		"sys.exit at import":             calc().with("calc.py", "import sys\nsys.exit(0)\n"),
		"os._exit(0) at exit":            calc().with("calc.py", "import atexit, os\natexit.register(os._exit, 0)\n\n\ndef add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"),
		"kills its parent":               calc().with("calc.py", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\n"),
		"skips from the code":            calc().with("calc.py", "import unittest\n\n\ndef add(a, b):\n    raise unittest.SkipTest('x')\n\n\ndef mul(a, b):\n    return a * b\n"),
		"skips the module":               calc().with("calc.py", "import unittest\nraise unittest.SkipTest('x')\n"),
		"pytest.exit":                    calc().with("calc.py", "import pytest\n\n\ndef add(a, b):\n    pytest.exit('done', 0)\n\n\ndef mul(a, b):\n    return a * b\n"),
		"syntax error (A136)":            calc().with("calc.py", "def add(a, b):\n    return a + b\n\n\ndef mul(a, b)\n    return a * b\n"),
		"outcomes turned by a hook (A128)": calc().with("conftest.py", `
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    out.get_result().outcome = "passed"
`),
		"runner patched from the code": calc().with("calc.py", `
import _pytest.runner, _pytest.python
_pytest.python.Function.runtest = lambda self: None
def add(a, b): return 0
def mul(a, b): return 0
`),
		"tests deselected":         calc().with("conftest.py", "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'add' not in i.name]\n"),
		"a pytest of its own (40)": calc().with("pytest.py", "import sys\nsys.exit(0)\n").with("calc.py", "def add(a, b):\n    return 0\n\n\ndef mul(a, b):\n    return a * b\n"),
		"sitecustomize (42)":       calc().with("sitecustomize.py", "import os\nos._exit(0)\n"),
		"a forged record": calc().with("calc.py", `
import os, json
for fd in range(3, 260):
    try:
        os.write(fd, b'{"n":"guess","k":"outcome","id":"tests/test_calc.py::test_add","o":"passed"}\n{"n":"guess","k":"done","exit":0}\n')
    except OSError: pass
os._exit(0)
`),
		"an order read again": calc().with("calc.py", `
import os
os.lseek(0, 0, 0) if os.path.exists("/proc/self/fd/0") and not os.isatty(0) else None
print("READ", os.read(0, 100))
def add(a, b): return a - b
def mul(a, b): return a * b
`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pytestOn(t, candidate)
			v := run.Judge(base, got)
			require.NotEqual(t, run.VerdictPassed, v.Kind, got.Tail)
			if strings.HasPrefix(name, "os._exit(0) in") || strings.HasPrefix(name, "sys.exit") {
				require.False(t, got.Completed)
				require.Equal(t, run.VerdictUntrusted, v.Kind)
			}
			require.NotContains(t, got.Tail, "READ b'{")
		})
	}
}

func TestEndlessLoopIsATimeoutThatNamesTheTest(t *testing.T) {
	t.Parallel()
	loop := calc().with("calc.py", "def add(a, b):\n    while True: pass\n\n\ndef mul(a, b):\n    return a * b\n")
	base := pytestOn(t, loop, limitTime(3*time.Second))
	require.True(t, base.Timeout)
	require.False(t, base.Completed)
	require.Len(t, base.Collected, 2)
	require.Equal(t, outcomes("tests/test_calc.py::test_add", "error"), base.Outcomes)
	require.Equal(t, run.VerdictTimeout, run.JudgeBase(base).Kind)
	got := pytestOn(t, calc().with("calc.py", "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"))
	v := run.Judge(base, got)
	require.Equal(t, run.VerdictPassed, v.Kind, v.Reason)
}

func TestErrorsOfCollectionHealByFile(t *testing.T) {
	t.Parallel()
	good := "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"
	for name, c := range map[string]struct {
		broken files
		id     string
	}{
		"syntax error":   {calc().with("calc.py", "def add(a, b)\n"), "tests/test_calc.py"},
		"missing name":   {calc().with("calc.py", "def ad(a, b): pass\n"), "tests/test_calc.py"},
		"missing module": {calc().with("calc.py", "import no_such_module\n"), "tests/test_calc.py"},
		"conftest":       {calc().with("calc.py", "import no_such_module\n").with("tests/conftest.py", "import calc\n"), "tests/conftest.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := pytestOn(t, c.broken)
			trusted(t, base)
			require.Equal(t, run.OutcomeError, base.Outcomes[c.id], base.Tail)
			v := run.Judge(base, pytestOn(t, c.broken.with("calc.py", good)))
			require.Equal(t, run.VerdictPassed, v.Kind, v.Reason)
			require.Equal(t, []string{c.id}, v.Fixed)
		})
	}
}

// case A138: an edit of the same length within the same second.
func TestSameLengthEditInTheSameSecond(t *testing.T) {
	t.Parallel()
	project := files{"m.py": "def f():\n    return 1\n", "test_m.py": "from m import f\n\n\ndef test_f():\n    assert f() == 2\n"}
	dir := write(t, project)
	stamp := time.Now().Truncate(time.Second)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "m.py"), stamp, stamp))
	plan := pytestPlan(t, dir, "")
	require.Equal(t, run.OutcomeFailed, execute(t, plan, dir).Outcomes["test_m.py::test_f"])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.py"), []byte("def f():\n    return 2\n"), 0o644))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "m.py"), stamp, stamp))
	require.Equal(t, run.OutcomePassed, execute(t, plan, dir).Outcomes["test_m.py::test_f"])
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	test := "from pkg.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
	code := "def add(a, b):\n    return a + b\n"
	for name, c := range map[string]struct {
		project files
		ids     map[string]run.Outcome
	}{
		"src": {files{"src/pkg/__init__.py": "", "src/pkg/calc.py": code, "tests/test_calc.py": test}, outcomes("tests/test_calc.py::test_add", "passed")},
		"flat, tests a package": {
			files{"pkg/__init__.py": "", "pkg/calc.py": code, "tests/__init__.py": "", "tests/test_calc.py": test},
			outcomes("tests/test_calc.py::test_add", "passed"),
		},
		"tests inside the package": {
			files{"pkg/__init__.py": "", "pkg/calc.py": code, "pkg/tests/__init__.py": "", "pkg/tests/test_calc.py": test},
			outcomes("pkg/tests/test_calc.py::test_add", "passed"),
		},
		"conftest fixture, ini options": {
			files{
				"pytest.ini":        "[pytest]\naddopts = -x -q --strict-markers\npythonpath = lib\ntestpaths = checks\npython_files = check_*.py\n",
				"lib/deep.py":       code,
				"conftest.py":       "import pytest\n\n\n@pytest.fixture\ndef two():\n    return 2\n",
				"checks/check_a.py": "from deep import add\n\n\ndef test_bad():\n    assert add(1, 1) == 3\n\n\ndef test_two(two):\n    assert add(1, 1) == two\n",
			},
			outcomes("checks/check_a.py::test_bad", "failed", "checks/check_a.py::test_two", "passed"),
		},
		"last-failed options": {
			files{"pytest.ini": "[pytest]\naddopts = --ff\n", "test_a.py": "def test_a(): pass\n"},
			outcomes("test_a.py::test_a", "passed"),
		},
		"tests write files and use tmp_path": {
			files{"test_w.py": "import os\n\n\ndef test_w(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    open('here', 'w').write('y')\n    assert os.path.exists('here')\n"},
			outcomes("test_w.py::test_w", "passed"),
		},
		"tests start the project as a program": {
			files{
				"calc.py":   "print(1 + 2)\n",
				"test_p.py": "import subprocess\nimport sys\n\n\ndef test_p():\n    assert subprocess.check_output([sys.executable, '-m', 'calc']) == b'3\\n'\n",
			},
			outcomes("test_p.py::test_p", "passed"),
		},
		"subtests of unittest": {
			files{"test_u.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        for i in range(3):\n            with self.subTest(i=i):\n                self.assertNotEqual(i, 1)\n\n    def test_b(self):\n        pass\n"},
			outcomes("test_u.py::T::test_a", "failed", "test_u.py::T::test_b", "passed"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := pytestOn(t, c.project)
			trusted(t, e)
			require.Equal(t, c.ids, e.Outcomes, e.Tail)
		})
	}
}

// The signs of plugins are expressions that every Python accepts, whichever
// plugins this machine has.
func TestSignsOfPlugins(t *testing.T) {
	t.Parallel()
	plan, err := machine()
	if err != nil || plan.Python == nil {
		t.Skip("this machine has no pytest: ", err)
	}
	out, err := exec.CommandContext(t.Context(), plan.Python.Path, "-W", "error", "-c", testrun.SignsProgram).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestTheStagedTreeWinsOverTheProject(t *testing.T) {
	t.Parallel()
	origin := write(t, calc())
	staged := write(t, calc().with("calc.py", "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"))
	plan := pytestPlan(t, origin, "PYTHONPATH="+origin+":. pytest "+filepath.Join(origin, "tests"))
	e := execute(t, plan, staged)
	trusted(t, e)
	require.Equal(t, 0, e.Exit, e.Tail)
	require.Len(t, e.Outcomes, 2)
}

func TestPytestArguments(t *testing.T) {
	t.Parallel()
	dir := write(t, calc())
	for command, c := range map[string]struct {
		ids  int
		exit int
		why  string
	}{
		"pytest -k mul":                            {1, 0, ""},
		"python -m pytest -q tests/test_calc.py":   {2, 1, ""},
		"pytest 'tests/test_calc.py::test_mul' -x": {1, 0, ""},
		"FOO=1 pytest tests":                       {2, 1, ""},
		"pytest tests/none":                        {0, 0, "pytest refused its arguments or configuration"},
		"pytest --no-such-option":                  {0, 0, "pytest refused its arguments or configuration"},
		"pytest -k nothing_matches":                {0, 5, ""},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			e := execute(t, pytestPlan(t, dir, command), write(t, calc()))
			require.Equal(t, c.why, e.Infrastructure)
			require.Len(t, e.Outcomes, c.ids)
			if c.why == "" {
				trusted(t, e)
				require.Equal(t, c.exit, e.Exit)
			}
			if c.ids == 0 {
				require.NotEqual(t, run.VerdictPassed, run.JudgeBase(e).Kind)
			}
		})
	}
}

func TestUnittest(t *testing.T) {
	t.Parallel()
	project := files{
		"calc.py": "def add(a, b):\n    return a - b\n",
		"tests/test_u.py": `
import unittest
from calc import add

class T(unittest.TestCase):
    def test_pass(self): self.assertEqual(add(1, 1), 0)
    def test_fail(self): self.assertEqual(add(1, 2), 3)
    def test_error(self): raise RuntimeError("x")
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    @unittest.skip("later")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("class")
    def test_never(self): pass
`,
		"tests/test_import.py": "import no_such_module\n",
		"test_top.py":          "import unittest\n\n\nclass Top(unittest.TestCase):\n    def test_ok(self): pass\n",
	}
	plan, err := testrun.Find(t.Context(), write(t, project), "python -m unittest")
	require.NoError(t, err)
	require.Equal(t, testrun.Unittest, plan.Runner)
	e := execute(t, plan, write(t, project))
	trusted(t, e)
	require.Equal(t, 1, e.Exit)
	require.Equal(t, outcomes(
		"test_top.py::Top::test_ok", "passed", "tests/test_import.py", "error",
		"tests/test_u.py::Broken::test_never", "error", "tests/test_u.py::T::test_error", "error",
		"tests/test_u.py::T::test_fail", "failed", "tests/test_u.py::T::test_pass", "passed",
		"tests/test_u.py::T::test_skip", "skipped", "tests/test_u.py::T::test_sub", "failed",
		"tests/test_u.py::T::test_unexpected", "failed", "tests/test_u.py::T::test_xfail", "xfailed",
	), e.Outcomes)

	for command, ids := range map[string]int{
		"python3 -m unittest -v test_top":                     1,
		"python3 -m unittest test_top.py":                     1,
		"python -m unittest discover -s tests -p 'test_u*'":   8,
		"python -m unittest test_top.Top.test_ok test_absent": 2,
	} {
		plan, err := testrun.Find(t.Context(), write(t, project), command)
		require.NoError(t, err)
		require.Equal(t, testrun.Unittest, plan.Runner, command)
		e := execute(t, plan, write(t, project))
		trusted(t, e)
		require.Len(t, e.Outcomes, ids, command)
	}
}

// withoutPytest finds as if the machine had only a Python without pytest.
func withoutPytest(t *testing.T, dir, command string) (testrun.Plan, error) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this machine has no /usr/bin/python3")
	}
	return testrun.FindWith(t.Context(), dir, command, "/usr/bin/python3")
}

func TestWithoutPytest(t *testing.T) {
	t.Parallel()
	plan, err := withoutPytest(t, write(t, calc()), "")
	require.NoError(t, err)
	if plan.Runner == testrun.Pytest {
		t.Skip("the system's Python has pytest")
	}
	require.Equal(t, testrun.Unittest, plan.Runner)
	require.NotEmpty(t, plan.Note)
	base := execute(t, plan, write(t, calc()))
	trusted(t, base)
	require.Equal(t, outcomes("tests/test_calc.py::test_add", "failed", "tests/test_calc.py::test_mul", "passed"), base.Outcomes)
	got := execute(t, plan, write(t, calc().with("calc.py", "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n")))
	require.Equal(t, run.VerdictPassed, run.Judge(base, got).Kind)

	for name, c := range map[string]struct{ text, why string }{
		"imports pytest": {"import pytest\n\n\ndef test_a(): pass\n", "imports pytest"},
		"fixture":        {"def test_a(tmp_path): pass\n", "takes a fixture"},
		"async":          {"async def test_a(): pass\n", "is asynchronous"},
		"set-up":         {"def setup_module(): pass\n\n\ndef test_a(): pass\n", "has setup_module"},
		"class set-up":   {"class TestA:\n    def setup_method(self): pass\n    def test_a(self): pass\n", "has setup_method"},
	} {
		_, err := withoutPytest(t, write(t, files{"test_a.py": c.text}), "")
		require.ErrorIs(t, err, testrun.ErrNoInterpreter, name)
		require.ErrorContains(t, err, c.why)
		require.ErrorContains(t, err, "/usr/bin/python3")
	}
	_, err = withoutPytest(t, write(t, calc()), "pytest -x")
	require.ErrorIs(t, err, testrun.ErrNoInterpreter)
	plan, err = withoutPytest(t, write(t, files{"test_c.py": "class TestC:\n    def test_m(self):\n        assert 1\n"}), "")
	require.NoError(t, err)
	require.Equal(t, outcomes("test_c.py::TestC::test_m", "passed"), execute(t, plan, write(t, files{"test_c.py": "class TestC:\n    def test_m(self):\n        assert 1\n"})).Outcomes)
}

func TestFindErrors(t *testing.T) {
	t.Parallel()
	empty := write(t, files{"README": "nothing"})
	for command, want := range map[string]error{
		"":                          testrun.ErrNoTests,
		"no-such-command --flag":    testrun.ErrCommandNotFound,
		"./run.sh":                  testrun.ErrCommandNotFound,
		"'unclosed":                 testrun.ErrTestCommand,
		"FOO=1":                     testrun.ErrTestCommand,
		"a\x00b":                    testrun.ErrTestCommand,
		"/no/such/python -m pytest": testrun.ErrCommandNotFound,
	} {
		_, err := testrun.Find(t.Context(), empty, command)
		require.ErrorIs(t, err, want, command)
	}
	_, err := testrun.Find(t.Context(), filepath.Join(empty, "none"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	dir := write(t, files{"run.sh": "#!/bin/sh\necho ran in $(basename \"$PWD\"); exit 3\n"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	for command, c := range map[string]struct {
		exit int
		out  string
	}{
		"./run.sh":                         {3, "ran in"},
		"true":                             {0, ""},
		"sh -c 'sleep 300 & echo started'": {0, "started\n"}, // case A155
		"echo a | tr a b && exit 4":        {4, "b\n"},
		"no-such-program-here || exit 9":   {9, "not found"},
		`X="a b" sh -c 'echo "<$X>"'`:      {0, "<a b>\n"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			plan, err := testrun.Find(t.Context(), dir, command)
			require.NoError(t, err)
			require.True(t, plan.Weak)
			e := execute(t, plan, dir)
			require.True(t, e.Weak)
			require.Equal(t, c.exit, e.Exit, e.Tail)
			require.Contains(t, e.Tail, c.out)
			require.True(t, e.Completed)
		})
	}
}

// case A157, A153.
func TestHangingCommand(t *testing.T) {
	t.Parallel()
	dir := write(t, calc())
	plan, err := testrun.Find(t.Context(), dir, "echo begun; sleep 1200")
	require.NoError(t, err)
	e := execute(t, plan, dir, limitTime(500*time.Millisecond))
	require.True(t, e.Timeout)
	require.False(t, e.Completed)
	require.Equal(t, "begun\n", e.Tail)
	require.Equal(t, run.VerdictTimeout, run.JudgeBase(e).Kind)
}

// case A158, A159.
func TestHugeAndUglyOutput(t *testing.T) {
	t.Parallel()
	e := pytestOn(t, files{"test_o.py": `
import os, sys
def test_ugly():
    os.write(2, bytes.fromhex("1b5b33316d46fe00ff41494c0a"))
    sys.stdout.write("x" * 50_000_000)
    assert False
`}, func(o *testrun.Options) { o.Limits = sandbox.Limits{MemoryBytes: 1 << 30} })
	trusted(t, e)
	require.Equal(t, outcomes("test_o.py::test_ugly", "failed"), e.Outcomes)
	require.LessOrEqual(t, len(e.Tail), 8<<10)
	require.NotContains(t, e.Tail, "\x1b")
	require.Contains(t, e.Tail, "1 failed")
}

func TestNetworkAndEnvironmentOfTests(t *testing.T) {
	t.Setenv("NEXUS_MODEL_API_KEY", "sk-secret-value")
	e := pytestOn(t, files{"test_n.py": `
import os, socket
def test_env():
    assert not any("NEXUS" in k or "sk-secret" in v for k, v in os.environ.items())
def test_net():
    try:
        socket.create_connection(("127.0.0.1", 1), 1)
    except ConnectionRefusedError:
        assert False, "the host's loopback answered"
    except OSError:
        pass
`})
	trusted(t, e)
	require.Equal(t, outcomes("test_n.py::test_env", "passed", "test_n.py::test_net", "passed"), e.Outcomes, e.Tail)
}

func TestThinWorksToo(t *testing.T) {
	t.Parallel()
	e := pytestOn(t, calc(), func(o *testrun.Options) { o.Level = sandbox.LevelThin })
	trusted(t, e)
	require.Equal(t, "thin", e.Level)
	require.Len(t, e.Outcomes, 2)
}

func TestCancelledRun(t *testing.T) {
	t.Parallel()
	plan, err := testrun.Find(t.Context(), write(t, calc()), "sleep 100")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	temp := t.TempDir()
	_, _, err = testrun.Run(ctx, plan, write(t, calc()), testrun.Options{Tree: "t", Temp: temp})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	list, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestVirtualEnvironmentOfTheProject(t *testing.T) {
	t.Parallel()
	origin := write(t, calc())
	base := pytestPlan(t, origin, "")
	venv := filepath.Join(origin, ".venv")
	made, err := testrun.Find(t.Context(), origin, base.Python.Path+" -c 'import sys; sys.exit(0)'")
	require.NoError(t, err)
	require.Equal(t, testrun.Command, made.Runner)
	require.NoError(t, os.MkdirAll(filepath.Join(venv, "bin"), 0o755))
	require.NoError(t, os.Symlink(base.Python.Path, filepath.Join(venv, "bin", "python")))
	cfg := "home = " + filepath.Dir(base.Python.Path) + "\ninclude-system-site-packages = true\n"
	require.NoError(t, os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte(cfg), 0o644))
	lib := filepath.Join(venv, "lib", "python"+strings.Join(strings.Split(base.Python.Version, ".")[:2], "."), "site-packages")
	require.NoError(t, os.MkdirAll(lib, 0o755))
	// An editable installation of the project, as path and as a finder would.
	require.NoError(t, os.WriteFile(filepath.Join(lib, "project.pth"), []byte(origin+"\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(lib, "only_in_venv.py"), []byte("X = 1\n"), 0o644))

	plan := pytestPlan(t, origin, "")
	require.Equal(t, filepath.Join(venv, "bin", "python"), plan.Python.Path)
	e := execute(t, plan, write(t, files{
		"calc.py":           "WHERE = 'staged'\n",
		"tests/test_env.py": "import calc, only_in_venv\n\n\ndef test_staged():\n    assert calc.WHERE == 'staged'\n",
	}))
	trusted(t, e)
	require.Equal(t, outcomes("tests/test_env.py::test_staged", "passed"), e.Outcomes, e.Tail)
}
