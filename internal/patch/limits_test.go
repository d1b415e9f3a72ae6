package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// TestLongAnswers: sizes at which anything quadratic would not end within the
// deadline of the tests.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	const n = 400_000
	base := tree{"a.py": "a\n", "b.py": strings.Repeat("e", n) + "\n"}
	for name, c := range map[string]struct{ text, reason string }{
		"blank lines behind a hunk": {diffOf("a.py", "@@ -1,5 +1,9 @@\n-a\n+b\n"+strings.Repeat("\n", n)), ""},
		"header lines in a hunk":    {diffOf("a.py", fmt.Sprintf("@@ -1,%d +1,%d @@\n", n, n)+strings.Repeat("--- x\n+++ y\n", n)), patch.ReasonNoMatch},
		"equal hunks":               {diffOf("a.py", strings.Repeat("@@\n-a\n+b\n", n)), ""},
		"thoughts":                  {strings.Repeat("<think></think>\n", n) + diffOf("a.py", "@@\n-a\n+b\n"), ""},
		"fences that never end":     {strings.Repeat("```a\n ```\n", n), patch.ReasonTooLarge},
		"places of a letter":        {`{"path":"b.py","old_string":"e","new_string":"x"}`, patch.ReasonAmbiguous},
	} {
		got, _, err := base.apply(c.text, patch.Options{Targets: []string{"a.py", "b.py"}})
		if c.reason == "" {
			require.NoError(t, err, name)
			require.Equal(t, "b\n", got["a.py"], name)
			continue
		}
		var e *patch.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, c.reason, e.Reason, name)
	}
}

// TestTooManyFiles: an answer has a bound of files, whatever its format.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	answers := map[string]func(i int) string{
		"patch":  func(i int) string { return fmt.Sprintf("*** Add File: d/f%d.txt\n+x\n", i) },
		"diff":   func(i int) string { return fmt.Sprintf("--- /dev/null\n+++ b/d/f%d.txt\n@@ -0,0 +1 @@\n+x\n", i) },
		"search": func(i int) string { return block(fmt.Sprintf("d/f%d.txt", i), "", "x\n") },
	}
	for name, one := range answers {
		write := func(n int) string {
			var b strings.Builder
			for i := range n {
				b.WriteString(one(i))
			}
			if name == "patch" {
				return "*** Begin Patch\n" + b.String() + "*** End Patch\n"
			}
			return b.String()
		}
		_, d, err := tree{}.apply(write(patch.MaxFiles), patch.Options{})
		require.NoError(t, err, name)
		require.Len(t, d.Files, patch.MaxFiles)
		_, _, err = tree{}.apply(write(patch.MaxFiles+1), patch.Options{})
		var e *patch.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, patch.ReasonTooLarge, e.Reason)
	}
}

// TestRepeatedDiff: a diff that is printed twice is one edit; edits that state
// no place mean one place each.
func TestRepeatedDiff(t *testing.T) {
	t.Parallel()
	for name, hunk := range map[string]string{
		"line number":         "@@ -7,2 +7,2 @@\n-    x = 1\n+    x = 2\n     return x\n",
		"heading":             "@@ def b():\n-    x = 1\n+    x = 2\n     return x\n",
		"line and heading":    "@@ -7,2 +7,2 @@ def b():\n-    x = 1\n+    x = 2\n     return x\n",
		"wrong line, heading": "@@ -3,2 +3,2 @@ def b():\n-    x = 1\n+    x = 2\n     return x\n",
	} {
		fenced := "```diff\n" + diffOf("f", hunk) + "```\n"
		once, _, err := tree{"f": two}.apply(fenced, patch.Options{})
		require.NoError(t, err, name)
		twice, _, err := tree{"f": two}.apply("The fix:\n"+fenced+"So the patch is\n"+fenced, patch.Options{})
		require.NoError(t, err, name)
		require.Equal(t, once, twice, name)
		require.Equal(t, strings.Replace(two, "def b():\n    x = 1", "def b():\n    x = 2", 1), twice["f"], name)
	}
	each := "@@\n-    x = 1\n+    x = 2\n"
	got, _, err := tree{"f": two}.apply(diffOf("f", each+each), patch.Options{})
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(two, "x = 1", "x = 2"), got["f"])
}

// TestHeadingElsewhere: lines that stand only above the stated heading are not
// the ones that are meant; those behind its block are reported.
func TestHeadingElsewhere(t *testing.T) {
	t.Parallel()
	base := tree{"m.py": "class A:\n    x = 1\n\n\nclass B:\n    x = 3\n\n\nclass C:\n    x = 5\n"}
	envelope := func(heading, old string) string {
		return "*** Begin Patch\n*** Update File: m.py\n@@ " + heading + "\n-    " + old + "\n+    x = 2\n*** End Patch\n"
	}
	for _, text := range []string{
		envelope("class B:", "x = 1"), envelope("class C:", "x = 1"), envelope("class C:", "x = 3"),
		diffOf("m.py", "@@ class B:\n-    x = 1\n+    x = 2\n"),
	} {
		_, _, err := base.apply(text, patch.Options{})
		var e *patch.Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, patch.ReasonNoMatch, e.Reason)
		require.Contains(t, e.Feedback, "above it")
	}
	for text, want := range map[string]string{
		envelope("class B:", "x = 5"):                                        "not below the stated heading",
		diffOf("m.py", "@@ -2,1 +2,1 @@ class B:\n-    x = 1\n+    x = 2\n"): "not below the stated heading",
		envelope("class B:", "x = 3"):                                        "",
	} {
		d, err := patch.Decode([]byte(text), patch.Options{Finish: patch.FinishStop, Paths: base.paths()})
		require.NoError(t, err)
		placed, err := patch.Place(d, base.read)
		require.NoError(t, err, text)
		require.Contains(t, strings.Join(placed[0].Tolerances, " "), want)
		require.Equal(t, want == "", len(placed[0].Tolerances) == 0, text)
	}
}

// TestOneEncoding: no block brings a second encoding into a file, whether the
// blocks after it look at the file or at what it wrote.
func TestOneEncoding(t *testing.T) {
	t.Parallel()
	old := "caf\xe9\none\ntwo\n"
	first := block("f", "one\n", "uno é\nmid\n")
	for name, text := range map[string]string{
		"alone":             first,
		"then its result":   first + "\n" + block("f", "mid\n", "MID\n"),
		"then the file":     first + "\n" + block("f", "two\n", "TWO\n"),
		"then its new line": first + "\n" + block("f", "uno é\n", "uno é\nx\n"),
		"behind another":    block("f", "two\n", "dos\n") + "\n" + block("f", "dos\n", "dos é\n"),
	} {
		_, _, err := tree{"f": old}.apply(text, patch.Options{})
		var e *patch.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, patch.ReasonEncoding, e.Reason, name)
	}
	got, _, err := tree{"f": old}.apply(block("f", "one\n", "uno\n")+"\n"+block("f", "uno\n", "UNO\n"), patch.Options{})
	require.NoError(t, err)
	require.Equal(t, "caf\xe9\nUNO\ntwo\n", got["f"])
}
