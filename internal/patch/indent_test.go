package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

const method = "class A:\n    def f(self):\n        if self.x:\n            return 1\n        return 0\n"

// TestIndentationIsRestored: a quoted text often starts at its first letter,
// so that the first line's indentation is lost and the others' is not.
func TestIndentationIsRestored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, search, replace, want string }{
		"lost in the first line of both texts": {
			method, "if self.x:\n            return 1\n", "if self.y:\n            return 2\n",
			"class A:\n    def f(self):\n        if self.y:\n            return 2\n        return 0\n",
		},
		"lost, with new lines of unknown depth": {
			method, "if self.x:\n            return 1\n", "if self.x:\n            if self.y:\n                return 2\n            return 1\n",
			"class A:\n    def f(self):\n        if self.x:\n            if self.y:\n                return 2\n            return 1\n        return 0\n",
		},
		"lost in the only line, the file's depth below": {
			method, "return 0\n", "y = 0\n        return y\n",
			"class A:\n    def f(self):\n        if self.x:\n            return 1\n        y = 0\n        return y\n",
		},
		"lost in the only line, a block below": {
			method, "return 0\n", "if self.y:\n            return 3\n        return 0\n",
			"class A:\n    def f(self):\n        if self.x:\n            return 1\n        if self.y:\n            return 3\n        return 0\n",
		},
		"the only line, new ones as seen from it": {
			method, "return 0\n", "if self.y:\n    return 3\nreturn 0\n",
			"class A:\n    def f(self):\n        if self.x:\n            return 1\n        if self.y:\n            return 3\n        return 0\n",
		},
		"lost in the old text alone": {
			method, "if self.x:\n            return 1\n", "if self.y:\n    return 2\n",
			"class A:\n    def f(self):\n        if self.y:\n            return 2\n        return 0\n",
		},
		"lost, with lines above the first": {
			method, "if self.x:\n            return 1\n", "# first\nif self.y:\n            return 1\n",
			"class A:\n    def f(self):\n        # first\n        if self.y:\n            return 1\n        return 0\n",
		},
		"lost, and a line that stays is deeper as seen from the first": {
			method, "if self.x:\n            return 1\n", "if self.x:\n    y = 0\n    if y:\n            return 1\n    return 2\n",
			"class A:\n    def f(self):\n        if self.x:\n            y = 0\n            if y:\n                    return 1\n            return 2\n        return 0\n",
		},
		"lost, with a comment and a block above": {
			"def f(self):\n    if a:\n        b()\n        raise E(a)\n    return 0\n",
			"if a:\n        b()\n        raise E(a)\n", "# why\nif a:\n    b()\n    try:\n        raise E(a)\n    except E:\n        c()\n",
			"def f(self):\n    # why\n    if a:\n        b()\n        try:\n            raise E(a)\n        except E:\n            c()\n    return 0\n",
		},
		"lost, a block behind a line that goes on": {
			"def f(self):\n    for a in b:\n        g(\n            a,\n        ).h()\n",
			"g(\n            a,\n        ).h()\n", "for c in g(\n            a,\n        ):\n    if c:\n        c.h()\n    else:\n        d()\n",
			"def f(self):\n    for a in b:\n        for c in g(\n                    a,\n                ):\n            if c:\n                c.h()\n            else:\n                d()\n",
		},
		"lost in a line that goes on": {
			"def f(a):\n    g(a,\n      1)\n", "g(a,\n      1)\n", "h(a,\n      2)\n", "def f(a):\n    h(a,\n      2)\n",
		},
		"brackets aligned by eye": {
			"def f(a):\n    if (a or\n            b):\n        return 1\n",
			"if (a or\n  b):\n    return 1\n", "if (a or\n  c):\n    return 2\n",
			"def f(a):\n    if (a or\n      c):\n        return 2\n",
		},
	} {
		got, _, err := tree{"f.py": c.old}.apply(block("f.py", c.search, c.replace), patch.Options{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got["f.py"], name)
	}
}

// TestTheSameEditTwice: an answer that repeats an edit, alone or as part of a
// larger one, means it once; two different edits of one line stay refused.
func TestTheSameEditTwice(t *testing.T) {
	t.Parallel()
	base := tree{"f": "a\nb\nc\n"}
	small := block("f", "b\n", "B\n")
	for _, text := range []string{
		small + small, small + block("f", "a\nb\nc\n", "a\nB\nc\nd\n"), edits("f", "b", "B", "b", "B"),
		diffOf("f", "@@ -2 +2 @@\n-b\n+B\n@@ -2,2 +2,2 @@\n-b\n+B\n c\n"),
	} {
		got, _, err := base.apply(text, patch.Options{})
		require.NoError(t, err, text)
		require.Contains(t, []string{"a\nB\nc\n", "a\nB\nc\nd\n"}, got["f"], text)
	}
	_, _, err := base.apply(small+block("f", "a\nb\n", "a\nX\n"), patch.Options{})
	requireReason(t, err, patch.ReasonOverlap)
}

// TestTagsWithRemarks: a remark after a closing tag is not part of the edit.
func TestTagsWithRemarks(t *testing.T) {
	t.Parallel()
	text := "<file>f</file>  # the likely place\n<original>\nb\n</original> old\n<patched>\nB\n</patched>\n"
	got, _, err := tree{"f": "a\nb\n"}.apply(text, patch.Options{})
	require.NoError(t, err)
	require.Equal(t, "a\nB\n", got["f"])
}

// TestEmptyOriginalCreatesNothing: tags without an original name a place that
// the source does not know, and mostly a file that it made up.
func TestEmptyOriginalCreatesNothing(t *testing.T) {
	t.Parallel()
	text := "<file>path/to/models.py</file>\n<original></original>\n<patched>x = 1</patched>\n"
	_, _, err := tree{"f": "a\n"}.apply(text, patch.Options{})
	requireReason(t, err, patch.ReasonMissing)
	_, _, err = tree{"path/to/models.py": "a\n"}.apply(text, patch.Options{})
	requireReason(t, err, patch.ReasonNoContext)
}
