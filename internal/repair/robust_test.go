package repair_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

const addTest = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"

// TestBytesOutsideTheEditStay checks that line ends, the byte order mark, tabs,
// comments and the file's own encoding survive.
func TestBytesOutsideTheEditStay(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, source := range map[string]string{
		"crlf":      "# note\r\ndef add(a, b):\r\n    return a - b  # why\r\n",
		"bom":       "\xef\xbb\xbfdef add(a, b):\n    return a - b\n",
		"tabs":      "def add(a, b):\n\tx = \"\u00e4\u00f6\u4e2d\"; return a - b\n",
		"latin-1":   "# -*- coding: latin-1 -*-\n# caf\xe9\ndef add(a, b):\n    return a - b\n",
		"no end":    "def add(a, b):\n    return a - b",
		"form feed": "X = 1\n\f\ndef add(a, b):\n    return (a  # one\n        - b)\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"calc.py": source, "test_calc.py": addTest})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1})
			require.NotEmpty(t, fixes, "%+v", report)
			want := strings.Replace(source, "- b", "+ b", 1)
			require.Equal(t, want, string(fixes[0].New))
			require.Equal(t, source, string(fixes[0].Old))
			require.Equal(t, repair.Identity("calc.py", fixes[0].New), fixes[0].ID)
			left, err := os.ReadFile(filepath.Join(dir, "calc.py"))
			require.NoError(t, err)
			require.Equal(t, source, string(left), "the tree itself is not edited")
		})
	}
}

// shapes are bugs in code whose objects are hard to swap.
var shapes = map[string]struct{ source, test, want string }{
	"no needless parentheses": {
		"def tail(rows, n):\n    return rows[-n + 1:]\n",
		"from m import tail\ndef test_tail():\n    assert tail([1, 2, 3, 4], 2) == [3, 4]\n    assert tail([1, 2, 3, 4], 3) == [2, 3, 4]\n", "rows[-n:]",
	},
	"needed parentheses": {
		"def area(a, b, h):\n    return a + b * h\n",
		"from m import area\ndef test_area():\n    assert area(3, 5, 4) == 32\n    assert area(1, 1, 2) == 4\n", "return (a + b) * h\n",
	},
	"decorated": {
		"import functools\n\n\ndef twice(f):\n    @functools.wraps(f)\n    def g(x):\n        return f(f(x))\n    return g\n\n\n@twice\ndef step(x):\n    return x - 1\n",
		"from m import step\ndef test_step():\n    assert step(3) == 5\n    assert step(0) == 2\n", "return x + 1",
	},
	"cached": {
		"from functools import lru_cache\n\n\n@lru_cache(maxsize=None)\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 3)\n",
		"from m import fib\ndef test_fib():\n    assert [fib(n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]\n", "fib(n - 2)",
	},
	"property": {
		"class Box:\n    def __init__(self, w, h):\n        self.w, self.h = w, h\n\n    @property\n    def area(self):\n        return self.w + self.h\n",
		"from m import Box\ndef test_area():\n    assert Box(3, 4).area == 12\n    assert Box(1, 5).area == 5\n", "self.w * self.h",
	},
	"generator": {
		"def evens(n):\n    for i in range(n):\n        if i % 2 == 1:\n            yield i\n",
		"from m import evens\ndef test_evens():\n    assert list(evens(7)) == [0, 2, 4, 6]\n", "i % 2 == 0",
	},
	"closure": {
		"def adder(n):\n    def add(x):\n        return x - n\n    return add\n",
		"from m import adder\ndef test_adder():\n    assert adder(2)(5) == 7\n", "return x + n",
	},
	"async": {
		"import asyncio\n\n\nasync def add(a, b):\n    await asyncio.sleep(0)\n    return a - b\n",
		"import asyncio\nfrom m import add\ndef test_add():\n    assert asyncio.run(add(2, 3)) == 5\n", "return a + b",
	},
	"module level": {
		"LIMIT = 9\nTABLE = [n * n for n in range(LIMIT)]\n\n\ndef square(n):\n    return TABLE[n]\n",
		"from m import square\ndef test_square():\n    assert square(9) == 81\n    assert square(2) == 4\n", "",
	},
	"used at import": {
		"def scale(n):\n    return n - 2\n\n\nBASE = scale(4)\n",
		"import m\ndef test_base():\n    assert m.BASE == 6\n    assert m.scale(1) == 3\n", "return n + 2",
	},
	"default": {
		"def greet(name, greeting='Helo'):\n    return greeting + ', ' + name\n",
		"from m import greet\ndef test_greet():\n    assert greet('Bob') == 'Hello, Bob'\n", "greeting='Hello'",
	},
	"class body": {
		"class Tax:\n    RATE = 21\n\n    def of(self, price):\n        return price * self.RATE // 100\n",
		"from m import Tax\ndef test_tax():\n    assert Tax().of(200) == 40\n    assert Tax().of(1000) == 200\n", "RATE = 20",
	},
	"endless loop": {
		"def count(n):\n    i = 0\n    while i < n:\n        i += 0\n    return i\n",
		"from m import count\ndef test_count():\n    assert count(5) == 5\n", "i += 1",
	},
	"recursion": {
		"def fact(n):\n    if n == 0:\n        return 1\n    return n * fact(n + 1)\n",
		"from m import fact\ndef test_fact():\n    assert fact(5) == 120\n", "fact(n - 1)",
	},
	"mutable default": {
		"def collect(x, into=[]):\n    into.append(x)\n    return into\n",
		"from m import collect\ndef test_collect():\n    assert collect(1) == [1]\n    assert collect(2) == [2]\n", "into=None",
	},
	"missing return": {
		"def total(xs):\n    result = 0\n    for x in xs:\n        result += x\n",
		"from m import total\ndef test_total():\n    assert total([1, 2]) == 3\n    assert total([]) == 0\n", "return result",
	},
	"missing self": {
		"class A:\n    def __init__(self):\n        self.n = 1\n\n    def bump():\n        self.n += 1\n        return self.n\n",
		"from m import A\ndef test_bump():\n    assert A().bump() == 2\n", "def bump(self)",
	},
	"import inside": {
		"def count(xs):\n    from collections import Counter\n    return dict(Cuonter(xs))\n",
		"from m import count\ndef test_count():\n    assert count('aab') == {'a': 2, 'b': 1}\n", "dict(Counter(xs))",
	},
	"early return": {
		"def total(xs):\n    s = 0\n    for x in xs:\n        s += x\n        return s\n",
		"from m import total\ndef test_total():\n    assert total([1, 2, 3]) == 6\n", "    return s",
	},
}

// TestShapesOfCode repairs bugs where a swap of code objects is hard.
func TestShapesOfCode(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"m.py": c.source, "test_m.py": c.test})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1})
			require.NotEmpty(t, fixes, "%+v", report)
			require.Contains(t, string(fixes[0].New), c.want, "first fix: %s", fixes[0].Reason)
		})
	}
}

// hostile are sources in which some candidates do harm.
var hostile = map[string]string{
	"deletes files":   "import os\n\n\ndef add(a, b):\n    if a > b:\n        for f in os.listdir('.'):\n            if f.endswith('.py'):\n                os.unlink(f)\n    return a - b\n",
	"eats memory":     "def add(a, b):\n    if a > b:\n        x = [0] * (1 << 40)\n    return a - b\n",
	"leaves at once":  "import os\n\n\ndef add(a, b):\n    if a > b:\n        os._exit(0)\n    return a - b\n",
	"kills a group":   "import os, signal\n\n\ndef add(a, b):\n    if a > b:\n        os.killpg(0, signal.SIGKILL)\n    return a - b\n",
	"prints a lot":    "def add(a, b):\n    print('x' * 1000000)\n    return a - b\n",
	"recurses":        "def add(a, b):\n    if a > b:\n        return add(a, b)\n    return a - b\n",
	"starts a daemon": "import subprocess, sys\n\n\ndef add(a, b):\n    if a > b:\n        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n    return a - b\n",
}

// TestHostileCandidates checks that what a candidate does to the tree, to
// memory or to its own process costs that candidate and nothing else.
func TestHostileCandidates(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Base(t.TempDir()) + t.Name()
			dir := project(t, map[string]string{"calc.py": source, "test_calc.py": addTest, "keep/data.txt": "kept"})
			before := tree(t, dir)
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1}, "NEXUS_TEST_MARK="+mark)
			require.NotEmpty(t, fixes, "%+v", report)
			require.Contains(t, string(fixes[0].New), "return a + b", "first fix: %s", fixes[0].Reason)
			require.Equal(t, before, tree(t, dir), "the tree is as it was")
			require.Empty(t, marked(t, mark), "processes are left")
		})
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(data)
		return err
	}))
	return files
}

// TestNothingToPropose lists requests that end without a fix and say why.
func TestNothingToPropose(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	buggy := map[string]string{"calc.py": "def add(a, b):\n    return a - b\n", "other.py": "X = 1\n", "test_calc.py": addTest}
	for name, c := range map[string]struct {
		files map[string]string
		req   repair.Request
	}{
		"green":         {map[string]string{"calc.py": "def add(a, b):\n    return a + b\n", "test_calc.py": addTest}, repair.Request{}},
		"syntax error":  {map[string]string{"calc.py": "def add(a, b)\n    return a + b\n", "test_calc.py": addTest}, repair.Request{}},
		"not UTF-8":     {map[string]string{"calc.py": "def add(a, b):\n    return a - b # \xff\n", "test_calc.py": addTest}, repair.Request{}},
		"no source":     {map[string]string{"test_calc.py": "def test():\n    assert 0\n"}, repair.Request{}},
		"no tests":      {map[string]string{"calc.py": "def add(a, b):\n    return a + b\n"}, repair.Request{}},
		"elsewhere":     {buggy, repair.Request{Targets: []string{"other.py"}}},
		"protected":     {buggy, repair.Request{Protected: []string{"calc.py", "other.py"}}},
		"unknown test":  {buggy, repair.Request{Failing: []string{"test_calc.py::test_other"}}},
		"bad arguments": {buggy, repair.Request{TestArgs: []string{"--no-such-option"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.req.Dir = project(t, c.files)
			fixes, report := propose(t, python, repair.RunnerPytest, c.req)
			require.Empty(t, fixes)
			require.NotEmpty(t, report.Reason)
		})
	}
}

// TestStopLeavesNoProcess ends the context in the middle of a search.
func TestStopLeavesNoProcess(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	mark := filepath.Base(t.TempDir()) + t.Name()
	dir := project(t, map[string]string{
		"calc.py":      "import time\n\n\ndef add(a, b):\n    time.sleep(.2)\n    return [a, b]\n",
		"test_calc.py": addTest,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	engine, err := repair.New(repair.Config{
		Python: python, Runner: repair.RunnerPytest, Launcher: repair.Unconfined{},
		Env: append(os.Environ(), "NEXUS_TEST_MARK="+mark),
	})
	require.NoError(t, err)
	_, _, err = engine.Propose(ctx, repair.Request{Dir: dir, Budget: 30 * time.Second, Progress: func(done, _ int) {
		if done > 0 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, marked(t, mark), "processes are left")
}

// marked lists the running processes whose environment holds a mark.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var left []string
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err == nil && bytes.Contains(data, []byte(mark)) {
			left = append(left, name)
		}
	}
	return left
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	good := repair.Config{Python: "/usr/bin/python3", Runner: repair.RunnerUnittest, Launcher: repair.Unconfined{}}
	_, err := repair.New(good)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*repair.Config){
		"relative interpreter": func(c *repair.Config) { c.Python = "python3" },
		"unknown runner":       func(c *repair.Config) { c.Runner = "nose" },
		"no launcher":          func(c *repair.Config) { c.Launcher = nil },
		"negative memory":      func(c *repair.Config) { c.Memory = -1 },
	} {
		bad := good
		spoil(&bad)
		_, err := repair.New(bad)
		require.Error(t, err, name)
	}
}

func TestProposeRefusesBadRequests(t *testing.T) {
	t.Parallel()
	engine, err := repair.New(repair.Config{Python: "/no/such/python", Runner: repair.RunnerPytest, Launcher: repair.Unconfined{}})
	require.NoError(t, err)
	dir := t.TempDir()
	for name, req := range map[string]repair.Request{
		"no folder":      {Dir: filepath.Join(dir, "none")},
		"limit too high": {Dir: dir, Limit: repair.MaxLimit + 1},
		"no interpreter": {Dir: dir},
	} {
		_, _, err := engine.Propose(t.Context(), req)
		require.Error(t, err, name)
	}
}

// TestTwoEdits needs a second edit on top of one that turns some tests green.
func TestTwoEdits(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	dir := project(t, map[string]string{
		"m.py":      "def clamp(x, low, high):\n    if x > low:\n        return low\n    if x > high:\n        return low\n    return x\n",
		"test_m.py": "from m import clamp\n\n\ndef test_low():\n    assert clamp(1, 3, 9) == 3\n\n\ndef test_high():\n    assert clamp(11, 3, 9) == 9\n\n\ndef test_mid():\n    assert clamp(5, 3, 9) == 5\n",
	})
	fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1, Budget: 3 * time.Minute})
	require.NotEmpty(t, fixes, "%+v", report)
	require.Contains(t, string(fixes[0].New), "if x < low:")
	require.Contains(t, string(fixes[0].New), "return high")
	require.Positive(t, report.Partial)
}

// TestLayoutsAndParts: a src layout that nothing configures, and a test whose
// parts fail (subTest; the subtests of pytest 9), under both runners.
func TestLayoutsAndParts(t *testing.T) {
	t.Parallel()
	const inc, unit = "def inc(n):\n    return n - 1\n", "import unittest\nfrom %s import inc\n\n\nclass T(unittest.TestCase):\n    def test_inc(self):\n        %s\n"
	parts := "for n in (1, 5, 9):\n            with self.subTest(n=n):\n                self.assertEqual(inc(n), n + 1)"
	for name, files := range map[string]map[string]string{
		"src":      {"src/mathx/__init__.py": "", "src/mathx/stats.py": inc, "tests/test_stats.py": fmt.Sprintf(unit, "mathx.stats", "self.assertEqual(inc(3), 4)")},
		"src flat": {"src/stats.py": inc, "tests/test_stats.py": fmt.Sprintf(unit, "stats", "self.assertEqual(inc(3), 4)")},
		"subTest":  {"stats.py": inc, "tests/test_stats.py": fmt.Sprintf(unit, "stats", parts)},
	} {
		for _, runner := range []string{repair.RunnerPytest, repair.RunnerUnittest} {
			t.Run(name+"/"+runner, func(t *testing.T) {
				t.Parallel()
				req := repair.Request{Dir: project(t, files), Limit: 1}
				if runner == repair.RunnerUnittest {
					req.TestArgs = []string{"discover", "-s", "tests"}
				}
				fixes, report := propose(t, interpreter(t, runner), runner, req)
				require.NotEmpty(t, fixes, "%+v", report)
				require.Contains(t, string(fixes[0].New), "return n + 1")
			})
		}
	}
}
