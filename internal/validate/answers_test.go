package validate_test

import (
	"encoding/json"
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
		"another result":         {"", "def f(x, y=0):\n    if x == 5:\n        return 80\n    return x\n", false},
		"of two tests":           {"", "def f(x, y=0):\n    if x == 5:\n        return 28\n    return x\n", false},
		"a bound":                {"", "def f(x, y=0):\n    if x > 5:\n        return 8\n    return x\n", false},
		"computed":               {"", "def f(x, y=0):\n    if x == 5:\n        return x + 3\n    return x\n", false},
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
