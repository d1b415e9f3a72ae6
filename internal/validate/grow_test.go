package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// grown has most of what can stand at the top of a Python file.
const grown = `"""Doc."""
import os; import re

X = (1,
     2)
Y = 1 \

@decorator
class A:
    """Doc."""
    z = """
text
"""

    def f(self):
        return 1


if X:
    Y = 2
elif Y:
    Y = 3
else:
    Y = 4
try:
    import json
except ImportError:
    json = None
for i in X: print(i)
# done
async def g():
    await h()
`

// TestGrownModulesAreWholeModules: reading only the changed statements comes
// to the same judgement as reading the whole file, whatever is changed.
func TestGrownModulesAreWholeModules(t *testing.T) {
	t.Parallel()
	v, err := New(Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	same := func(after string) {
		got, err := v.worker.Analyse(t.Context(), []byte(grown), []byte(after))
		require.NoError(t, err)
		alone, err := v.worker.Analyse(t.Context(), nil, []byte(after))
		require.NoError(t, err)
		require.Equal(t, alone.Error == nil, got.Error == nil, "%v instead of %v:\n%s", got.Error, alone.Error, after)
		require.Equal(t, alone.Statements, got.Statements, after)
		if alone.Error != nil {
			require.Equal(t, alone.Error.Line, got.Error.Line, after)
		}
	}
	lines := strings.Split(grown, "\n")
	for i := range lines {
		same(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"))
		same(strings.Join(lines[:i], "\n"))
		for _, with := range []string{
			"x = 1", "    x = 1", "else:", ")", "(", `"""`, "\\", "x = \\", "@d", "return 1", "# coding: latin-1",
			"global X", "global Y", "global json", "class A: global z", "from __future__ import annotations", "if x:", "\f", "x = 1;", "class B:\n    pass", "\r", "x = '\xe9'",
		} {
			same(strings.Join(slices.Insert(slices.Clone(lines), i, with), "\n"))
		}
	}
}

// TestTheWholeIsCompiled: a statement that is right alone may be wrong beside
// the others, on either side of it and inside of a class.
func TestTheWholeIsCompiled(t *testing.T) {
	t.Parallel()
	v, err := New(Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	for name, c := range map[string]struct{ old, after, want string }{
		"declared after":        {"x = 1\ny = 2\n", "x = 1\ny = 2\nglobal x\n", "global"},
		"assigned before":       {"y = 2\n\n\nglobal x\n", "y = 2\nx = 1\n\n\nglobal x\n", "global"},
		"in a class":            {"class A:\n    x = 1\n    y = 2\n", "class A:\n    x = 1\n    y = 2\n    global x\n", "global"},
		"annotated":             {"x: int = 1\n", "x: int = 1\nglobal x\n", "global"},
		"a function's own":      {"x = 1\n", "x = 1\n\n\ndef f():\n    global x\n    x = 2\n", ""},
		"broken as it was":      {"x = 1\nglobal x\n", "x = 1\nglobal x\nz = 3\n", "global"},
		"a new name beside old": {"x = 1\n", "x = 1\nz = 3\nglobal w\n", ""},
	} {
		got, err := v.worker.Analyse(t.Context(), []byte(c.old), []byte(c.after))
		require.NoError(t, err, name)
		require.Equal(t, c.want == "", got.OK, "%s: %v", name, got.Error)
		if c.want != "" {
			require.Contains(t, got.Error.Msg+got.Error.Text, "global", name)
			line := strings.Count(c.after[:strings.Index(c.after, "global")], "\n") + 1
			require.Equal(t, line, got.Error.Line, name)
		}
	}
	broken := v.Check(t.Context(), Input{
		Answer: []byte("m.py\n```\nx = 1\nglobal x\nz = 4\n```\n"), Finish: "stop", Base: mapBase{"m.py": "x = 1\nglobal x\nz = 3\n"},
	})
	require.True(t, broken.Accepted, "what was broken before is nobody's new error: %s", broken.Feedback)
	require.NotEmpty(t, broken.Tolerances)
	require.NotEmpty(t, broken.Tripwires)
}

// mapBase is a tree in memory.
type mapBase map[string]string

func (m mapBase) Read(p string) ([]byte, bool)     { s, ok := m[p]; return []byte(s), ok }
func (m mapBase) Paths() []string                  { return slices.Sorted(maps.Keys(m)) }
func (m mapBase) Mode(string) uint32               { return 0o644 }
func (m mapBase) Resolve(p string) (string, error) { return p, nil }
