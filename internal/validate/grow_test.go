package validate

import (
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
			"from __future__ import annotations", "if x:", "\f", "x = 1;", "class B:\n    pass", "\r", "x = '\xe9'",
		} {
			same(strings.Join(slices.Insert(slices.Clone(lines), i, with), "\n"))
		}
	}
}
