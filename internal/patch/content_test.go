package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// TestFoundByContent: an edit that names no file belongs to the one file that
// has its lines; with several, or none, it is refused.
func TestFoundByContent(t *testing.T) {
	t.Parallel()
	base := tree{
		"a.py": "def price(x):\n    return x\n", "b.py": "def price(x):\n    return x * 2\n",
		"c.txt": "total = 1\ncost = 2\ncost = 2\n", "bin": "total\x00 = 1",
	}
	const head = "<<<<<<< SEARCH\n"
	for name, text := range map[string]string{
		"blocks":      head + "    return x * 2\n=======\n    return x * 3\n>>>>>>> REPLACE\n",
		"other depth": head + "def  price(x):\n  return x * 2\n=======\ndef  price(x):\n  return x * 3\n>>>>>>> REPLACE\n",
		"hunks":       "@@ -1,2 +1,2 @@\n def price(x):\n-    return x * 2\n+    return x * 3\n",
		"headless":    "```diff\n-    return x * 2\n+    return x * 3\n```\n",
		"fields":      `[{"search": "x * 2", "replace": "x * 3"}]`,
	} {
		got, d, err := base.apply(text, patch.Options{Read: base.read})
		require.NoError(t, err, name)
		require.Equal(t, "def price(x):\n    return x * 3\n", got["b.py"], name)
		require.Contains(t, d.Tolerances[0]+d.Tolerances[len(d.Tolerances)-1], "b.py", name)
		_, _, err = base.apply(text, patch.Options{})
		requireReason(t, err, patch.ReasonNoPath)
	}
	for name, text := range map[string]string{
		"in two files": head + "def price(x):\n=======\ndef cost(x):\n>>>>>>> REPLACE\n",
		"in none":      head + "    return x * 4\n=======\n    return x\n>>>>>>> REPLACE\n",
		"nowhere":      head + "=======\nx = 1\n>>>>>>> REPLACE\n",
		"fields":       `[{"search": "nothing", "replace": "x"}]`,
	} {
		_, _, err := base.apply(text, patch.Options{Read: base.read})
		requireReason(t, err, patch.ReasonNoPath)
		require.Contains(t, err.Error(), "a.py", name)
	}
	_, _, err := base.apply(head+"cost = 2\n=======\ncost = 3\n>>>>>>> REPLACE\n", patch.Options{Read: base.read})
	requireReason(t, err, patch.ReasonAmbiguous)
	two := head + "    return x * 2\n=======\n    return 0\n>>>>>>> REPLACE\n" + head + "total = 1\n=======\ntotal = 2\n>>>>>>> REPLACE\n"
	got, _, err := base.apply(two, patch.Options{Read: base.read})
	require.NoError(t, err)
	require.Equal(t, "def price(x):\n    return 0\n", got["b.py"])
	require.Equal(t, "total = 2\ncost = 2\ncost = 2\n", got["c.txt"])
}

// TestQuotedBlocks: of two blocks the one that the file has already is shown,
// the other is meant.
func TestQuotedBlocks(t *testing.T) {
	t.Parallel()
	base := calc()
	quote := "The old code:\n```python\ndef add(a, b):\n    return a - b\n```\n"
	o := oneTarget
	text := quote + "The new file:\n```python\n" + fixedCalc + "```\n"
	_, _, err := base.apply(text, o)
	requireReason(t, err, patch.ReasonNoPath)
	o.Read = base.read
	got, _, err := base.apply(text, o)
	require.NoError(t, err)
	require.Equal(t, fixedCalc, got["calc.py"])
}
