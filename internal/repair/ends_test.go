package repair_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// bad are tests that take all they are given. The search must still mend what
// the other test shows; ids that stay red are no part of its order.
var bad = map[string]string{
	"loops":           "def test_bad():\n    while True:\n        pass\n",
	"catches all":     "def test_bad():\n    while True:\n        try:\n            while True:\n                pass\n        except BaseException:\n            pass\n",
	"loops in C":      "import itertools\n\n\ndef test_bad():\n    sum(itertools.repeat(1))\n",
	"waits":           "import threading\n\n\ndef test_bad():\n    threading.Event().wait()\n",
	"leaves":          "import os\n\n\ndef test_bad():\n    os._exit(0)\n",
	"fills the pipe":  "import os\n\n\ndef test_bad():\n    while True:\n        os.write(1, b'x' * 65536)\n",
	"fills a capture": "def test_bad(capsys):\n    while True:\n        print('x' * 1000000)\n",
}

// TestOneBadTest gives the search a budget that one such test could use up.
func TestOneBadTest(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, test := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{
				"calc.py": "def add(a, b):\n    return a - b\n", "test_bad.py": test,
				"test_calc.py": addTest + "    assert add(1, 1) == 2\n",
			})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1, Failing: []string{"test_calc.py::test_add"}, Budget: time.Minute})
			require.NotEmpty(t, fixes, "%+v", report)
			require.Contains(t, string(fixes[0].New), "return a + b")
		})
	}
}

// TestBadCode: the code under repair is what never ends, out of reach of a
// timer that raises; its own lines are still found.
func TestBadCode(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, c := range map[string]struct{ source, test, want string }{
		"in C":  {"import itertools\n\n\ndef f(n):\n    if n >= 3:\n        return sum(itertools.repeat(n))\n    return n\n", "f(3) == 3 and f(1) == 1", "n > 3"},
		"waits": {"import time\n\n\ndef f(n):\n    while n > 0:\n        time.sleep(.01)\n        n += 1\n    return n\n", "f(3) == 0", "n -= 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"m.py": c.source, "test_m.py": "from m import f\n\n\ndef test_f():\n    assert " + c.test + "\n"})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 5})
			require.NotEmpty(t, fixes, "%+v", report)
			found := false
			for _, fix := range fixes {
				found = found || strings.Contains(string(fix.New), c.want)
			}
			require.True(t, found, "first fix: %s", fixes[0].Reason)
		})
	}
}

// TestLongDifference: two long lists that differ cost a test run's time, not
// that of a text about them.
func TestLongDifference(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerUnittest)
	dir := project(t, map[string]string{
		"m.py":      "def numbers(n):\n    return [str(i + 1) * 20 for i in range(n)]\n",
		"test_m.py": "import unittest\n\nfrom m import numbers\n\n\nclass T(unittest.TestCase):\n    def test_numbers(self):\n        self.assertEqual(numbers(4000), [str(i) * 20 for i in range(4000)])\n",
	})
	fixes, report := propose(t, python, repair.RunnerUnittest, repair.Request{Dir: dir, Limit: 1})
	require.NotEmpty(t, fixes, "%+v", report)
	require.Positive(t, report.Tried)
}
