package repair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// places are bugs at positions of the syntax that are easily forgotten; the
// body of f stands for its kind.
var places = map[string]struct{ source, test, want string }{
	"argument":             {"def g(a):\n    return a * 2\n\n\ndef f(n):\n    return g(n)\n\n\nf.g = g\n", "f(3) == 8 and f(0) == 2 and f.g(3) == 6", "g(n + 1)"},
	"second argument":      {"def f(n):\n    return list(enumerate('ab', n))\n", "f(0) == [(1, 'a'), (2, 'b')] and f(4) == [(5, 'a'), (6, 'b')]", "enumerate('ab', n + 1)"},
	"keyword argument":     {"def f(n):\n    return dict(k=n)\n", "f(3) == {'k': 4} and f(9) == {'k': 10}", "k=n + 1"},
	"lambda":               {"def f(n):\n    return list(map(lambda q: q, [n, 7]))\n", "f(3) == [4, 8] and f(0) == [1, 8]", "lambda q: q + 1"},
	"or":                   {"def f(n):\n    return n and n\n", "f(3) == 4 and f(0) == 0 and f(1) == 2", "n + 1"},
	"slice of a step":      {"def f(n):\n    return list(range(9))[::n]\n", "f(1) == [0, 2, 4, 6, 8] and f(2) == [0, 3, 6]", "[::n + 1]"},
	"field of an f-string": {"def f(n):\n    return f'page {n} of {n * 2:>3}'\n", "f(3) == 'page 4 of   6' and f(0) == 'page 1 of   0'", "{n + 1} of"},
	"name in an f-string":  {"def f(name):\n    return f'\u00e4 {nmae!r}'\n", "f('x') == '\u00e4 ' + repr('x')", "{name!r}"},
	"f-string operator":    {"def f(a, b):\n    return (f'{{{a}}}'\n            f' {a - b}')\n", "f(3, 2) == '{3} 5' and f(0, 1) == '{0} 1'", "{a + b}"},
	"decimal":              {"def f(n):\n    return round(n * 1.5, 2)\n", "f(100) == 105 and f(200) == 210", "1.05"},
	"table":                {"RATES = {'a': 3, 'b': 8}\n\n\ndef f(k):\n    return RATES[k]\n", "f('a') == 4 and f('b') == 8", "'a': 4"},
	"grouping":             {"def f(a, b, c):\n    return a or b and c\n", "not f(True, False, False) and f(True, False, True) and f(False, True, True) and not f(False, False, True)", "(a or b) and c"},
	"own attribute":        {"class A:\n    def __init__(self, size):\n        self.sise = size\n\n    def twice(self):\n        return self.size + self.size\n\n\ndef f(n):\n    return A(n).twice()\n", "f(3) == 6", "self.size = size"},
	"own property":         {"class A:\n    def __init__(self, items):\n        self.items = items\n\n    @property\n    def first(self):\n        return self.items[0]\n\n    def show(self):\n        return str(self.frist)\n\n\ndef f(n):\n    return A([n]).show()\n", "f(3) == '3'", "str(self.first)"},
	"several imports":      {"def f(n):\n    return isqrt(n) + gcd(n, 6)\n", "f(9) == 6", "from math import "},
	"in an annotation":     {"from typing import List\n\n\ndef f(n: Optional[int]) -> List[int]:\n    return [n]\n", "f(1) == [1]", "import List, Optional"},
	"submodule":            {"import logging\n\n\ndef f(n):\n    return logging.handlers.MemoryHandler(n).capacity\n", "f(3) == 3", "import logging.handlers"},
	"misspelt module":      {"import colections\n\n\ndef f(n):\n    return collections.Counter(n)\n", "f('aa') == {'a': 2}", "import collections"},
}

// TestPlaces repairs each of them, and the edit ranked first is the right one.
func TestPlaces(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, c := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"m.py": c.source, "test_m.py": "from m import f\n\n\ndef test_f():\n    assert " + c.test + "\n"})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir, Limit: 1})
			require.NotEmpty(t, fixes, "%+v", report)
			require.Contains(t, string(fixes[0].New), c.want, "first fix: %s", fixes[0].Reason)
		})
	}
}

// TestOthersBehaveDifferently: what passes the same tests is told apart by what
// it does near their inputs.
func TestOthersBehaveDifferently(t *testing.T) {
	t.Parallel()
	python := interpreter(t, repair.RunnerPytest)
	for name, c := range map[string]struct {
		source, test string
		others       bool
	}{
		"one test, many programs": {"def f(a, b):\n    return a - b\n", "f(2, 2) == 4", true},
		"a method":                {"class A:\n    def __init__(self, n):\n        self.n = n\n\n    def take(self, k):\n        return self.n - k\n\n\ndef f(n, k):\n    return A(n).take(k)\n", "f(2, 2) == 4", true},
		"the same program":        {"LIMIT = 11\n\n\ndef f(x):\n    return x < LIMIT\n", "not f(10) and f(9)", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"m.py": c.source, "test_m.py": "from m import f\n\n\ndef test_f():\n    assert " + c.test + "\n"})
			fixes, report := propose(t, python, repair.RunnerPytest, repair.Request{Dir: dir})
			require.Greater(t, len(fixes), 1, "%+v", report)
			require.Equal(t, c.others, len(repair.Others(fixes, 0)) > 0, "%+v", report.Behaviours)
		})
	}
}
