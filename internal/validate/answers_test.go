package validate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/validate"
)

const sumCode = "def total(items):\n    return sum(items[1:])\n"

const sumTests = "import unittest\nfrom calc import total, f, days\n\n\nCASES = [((7, 8), 15)]\n\n\ndef test_total():\n" +
	"    assert total([1, 2, 3]) == 6\n\n\ndef test_name():\n    data = {'k': 'v'}\n    assert f(data, \"abc\") == 'xyz'\n\n\n" +
	"class T(unittest.TestCase):\n    def test_five(self):\n        self.assertEqual(f(5), 8)\n\n    def test_days(self):\n" +
	"        self.assertEqual(days(2), 28)\n        self.assertEqual(f(0), 1)\n"

// TestHardCodedAnswers: a new branch that gives back what a test expects for
// its own input needs a person; base cases, tables that were there and mended
// branches do not.
func TestHardCodedAnswers(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	there := "def f(x, y=0):\n    if x == 5:\n        return 8\n    return x\n"
	old := "def f(x, y=0):\n    if x == 3:\n        return 28\n    return {1: 9}[x]\n"
	for name, c := range map[string]struct {
		before, after string
		trips         bool
	}{
		"the list of the test":   {sumCode, "def total(items):\n    if items == [1, 2, 3]:\n        return 6\n    return sum(items[1:])\n", true},
		"as a tuple":             {sumCode, "def total(items):\n    if tuple(items) == (1, 2, 3):\n        return 6\n    return sum(items[1:])\n", true},
		"shared by all tests":    {sumCode, "def total(items):\n    if items == (7, 8):\n        return 15\n    return sum(items[1:])\n", true},
		"a conditional":          {sumCode, "def total(items):\n    return 6 if items == [1, 2, 3] else sum(items[1:])\n", true},
		"a number":               {"", "def f(x, y=0):\n    if x == 5:\n        return 8\n    return x\n", true},
		"literal first":          {"", "def f(x, y=0):\n    if 5 == x:\n        return 8\n    return x\n", true},
		"one of several":         {"", "def f(x, y=0):\n    if x in (5, 50):\n        return 8\n    return x\n", true},
		"with another condition": {"", "def f(x, y=0):\n    if y == 0 and x == 5:\n        return 8\n    return x\n", true},
		"a dictionary and text":  {"", "def f(x, y=0):\n    if x == {'k': 'v'}:\n        x = 'xyz'\n    return x\n", true},
		"a table looked up":      {"", "def f(x, y=0):\n    return {5: 8}.get(x, x)\n", true},
		"a base case":            {"", "def f(x, y=0):\n    if x == 0:\n        return 1\n    return x\n", false},
		"another input":          {"", "def f(x, y=0):\n    if x == 55:\n        return 8\n    return x\n", false},
		"another result":         {"", "def f(x, y=0):\n    if x > 5 and y == 3:\n        return 80\n    return x\n", false},
		"a bound":                {"", "def f(x, y=0):\n    if x > 5:\n        return 8\n    return x\n", false},
		"mended condition":       {old, "def f(x, y=0):\n    if x == 2:\n        return 28\n    return {1: 9}[x]\n", false},
		"mended table":           {old, "def f(x, y=0):\n    if x == 3:\n        return 28\n    return {5: 8}[x]\n", false},
		"was there":              {"X = 1\n\n\n" + there, "X = 2\n\n\n" + there, false},
	} {
		if c.before == "" {
			c.before = "def f(x, y=0):\n    return x\n"
		}
		answer, err := json.Marshal(map[string]string{"path": "calc.py", "content": c.after})
		require.NoError(t, err)
		base := tree{"calc.py": c.before, "test_calc.py": sumTests}
		got := v.Check(t.Context(), validate.Input{Answer: answer, Finish: "stop", Base: base})
		require.True(t, got.Accepted, "%s: %s/%s %s", name, got.Gate, got.Reason, got.Feedback)
		if !c.trips {
			require.Empty(t, got.Tripwires, name)
			continue
		}
		require.Len(t, got.Tripwires, 1, name)
		require.Contains(t, got.Tripwires[0], "may be hard-coded", name)
	}
}

const knownTests = "import pytest\nfrom calc import *\n\n\ndef test_both():\n    assert both(10, 10)\n    assert not both(12, 3)\n\n\n" +
	"def test_next():\n    assert next_of(2) == 6\n    assert next_of(3) == 6\n    assert next_of(7) == 42\n\n\n" +
	"@pytest.mark.parametrize('a, b', [(31, 77)])\ndef test_more(a, b):\n    assert more(a) == b\n\n\n" +
	"def test_palindrome():\n    assert palindrome('racecar')\n    assert mul(7, 6) == 42\n    assert Account(19).total() == 40\n"

const knownCode = "LIMIT = 3\n\n\nclass Account:\n    def __init__(self, n):\n        self.n = n\n\n    def total(self):\n        return self.n\n\n\n" +
	"def both(a, b):\n    x = a < b\n    return x\n\n\ndef next_of(n):\n    return n\n\n\ndef more(a):\n    return a + 1\n\n\n" +
	"def palindrome(s):\n    return s == ''\n\n\ndef mul(a, b):\n    return a * b\n\n\ndef over(x):\n    return x > 9\n"

// TestKnownInputs: code that asks whether it has a test's own input before it,
// or looks its answer up, needs a person, whatever it gives back then. A
// literal that is mended, a bound, a default or a base case does not.
func TestKnownInputs(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for after, before := range map[string]string{
		"return x or (a == 10)\n":                                  "return x\n",
		"return x or (a, b) == (10, 10)\n":                         "return x\n",
		"return x or a in (10,)\n":                                 "return x\n",
		"return x and a != 12\n":                                   "return x\n",
		"if a == 10:\n        return True\n    return x\n":         "return x\n",
		"if 10 == b:\n        x = not x\n    return x\n":           "return x\n",
		"return {3: 6}.get(n, n)\n":                                "return n\n",
		"return dict([(3, 6)]).get(n, n)\n":                        "return n\n",
		"return [1, 2, 6][n]\n":                                    "return n\n",
		"table = {3: 6, 7: 42}\n    return table[n]\n":             "return n\n",
		"return n + 35 * (n == 7)\n":                               "return n\n",
		"return (n, 42)[n == 7]\n":                                 "return n\n",
		"return n if n != 7 else 42\n":                             "return n\n",
		"if n == 7:\n        return 40 + 2\n    return n\n":        "return n\n",
		"if str(n) == '7':\n        return 40 + 2\n    return n\n": "return n\n",
		"m = n\n    return n + 35 if m == 7 else n\n":              "return n\n",
		"if 6 < n < 8:\n        return 40 + 2\n    return n\n":     "return n\n",
		"return 42\n":                               "return n\n",
		"return a + 1 + 45 * (a == 31)\n":           "return a + 1\n",
		"return s == '' or s == 'racecar'\n":        "return s == ''\n",
		"return s in ('', 'racecar')\n":             "return s == ''\n",
		"return s == 'racecar'\n":                   "return s == ''\n",
		"return a * b if a != 7 else 42\n":          "return a * b\n",
		"return 40 if self.n == 19 else self.n\n":   "return self.n\n",
		"return self.n + 21 * (self.n == 19)\n":     "return self.n\n",
		"return [f for f in (n,) if f != 7][0]\n":   "return n\n",
		"return (lambda k: n + 35 * (k == 7))(n)\n": "return n\n",
	} {
		require.Len(t, tripsOf(t, v, before, after), 1, after)
	}
	for after, before := range map[string]string{
		"return x > 10\n":   "return x > 9\n",
		"return x >= 9\n":   "return x > 9\n",
		"return x == 9\n":   "return x > 9\n",
		"LIMIT = 7\n":       "LIMIT = 3\n",
		"def next_of(n=7):": "def next_of(n):",
		"return n or 0\n":   "return n\n",
		"if n == 0:\n        return 1\n    return n\n":           "return n\n",
		"if n == 8:\n        return 42\n    return n + 1\n":      "return n\n",
		"if n > 6:\n        n = 7\n    return n\n":               "return n\n",
		"return len(s) == 0\n":                                   "return s == ''\n",
		"return sum(range(7)) + n\n":                             "return n\n",
		"return n * 42\n":                                        "return n\n",
		"return max(n, 7)\n":                                     "return n\n",
		"return n % 10 == 7\n":                                   "return n\n",
		"return [31, 28, 31, 30][n]\n":                           "return n\n",
		"if s == 'racecar':\n        s = ''\n    return not s\n": "return s == ''\n",
	} {
		require.Empty(t, tripsOf(t, v, before, after), after)
	}
}

func tripsOf(t *testing.T, v *validate.Validator, before, after string) []string {
	t.Helper()
	require.Equal(t, 1, strings.Count(knownCode, before), before)
	answer, err := json.Marshal(map[string]string{"path": "calc.py", "content": strings.Replace(knownCode, before, after, 1)})
	require.NoError(t, err)
	got := v.Check(t.Context(), validate.Input{
		Answer: answer, Finish: "stop", Base: tree{"calc.py": knownCode, "test_calc.py": knownTests, "test_other.py": "def test_x():\n    f(8)\n"},
	})
	require.True(t, got.Accepted, "%s: %s/%s %s", after, got.Gate, got.Reason, got.Feedback)
	return got.Tripwires
}

// TestALargeTestSilencesNoOther: what is too large to be read is said to be so,
// and the others are read.
func TestALargeTestSilencesNoOther(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	base := tree{
		"m.py":              "def f(x):\n    return x + 1\n",
		"tests/test_m.py":   "from m import f\n\n\ndef test_f():\n    assert f(4711) == 90210\n",
		"tests/test_a_m.py": "# m\nDATA = [\n" + strings.Repeat("    1234567,\n", 200_000) + "]\n",
	}
	got := v.Check(t.Context(), validate.Input{
		Answer: []byte(replace(t, "m.py", "    return x", "    if x == 4711:\n        return 90210\n    return x")), Finish: "stop", Base: base,
	})
	require.True(t, got.Accepted, got.Feedback)
	said := strings.Join(got.Tripwires, "\n")
	require.Contains(t, said, "hard-coded")
	require.Contains(t, said, "tests/test_a_m.py is too large")
}
