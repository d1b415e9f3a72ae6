package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

func TestCheckPath(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"a", "a.py", "src/a b.py", "日本/語.txt", "caf\xe9.txt", "..a", "a..", ".github/x", ".gitignore", "a/.gitkeep", "git", "-rf"} {
		require.NoError(t, patch.CheckPath(p), p)
	}
	bad := map[string]string{
		"": patch.ReasonBadPath, ".": patch.ReasonBadPath, "./a": patch.ReasonBadPath, "a/": patch.ReasonBadPath,
		"a//b": patch.ReasonBadPath, "a/./b": patch.ReasonBadPath, "a\x00b": patch.ReasonBadPath, "a\nb": patch.ReasonBadPath,
		"a\rb": patch.ReasonBadPath, `a\b`: patch.ReasonBadPath, `..\a`: patch.ReasonBadPath,
		"/etc/passwd": patch.ReasonEscape, "..": patch.ReasonEscape, "../a": patch.ReasonEscape, "a/../b": patch.ReasonEscape,
		"a/..": patch.ReasonEscape, "C:/x": patch.ReasonEscape, "c:x": patch.ReasonEscape, "~/x": patch.ReasonEscape,
		".git": patch.ReasonProtected, ".git/config": patch.ReasonProtected, "sub/.git/hooks/x": patch.ReasonProtected,
		".GIT/config": patch.ReasonProtected, ".git./config": patch.ReasonProtected, ".git /x": patch.ReasonProtected,
		"git~1/config": patch.ReasonProtected, ".g\u200cit/config": patch.ReasonProtected, ".git::$INDEX_ALLOCATION/x": patch.ReasonProtected,
	}
	for p, reason := range bad {
		requireReason(t, patch.CheckPath(p), reason)
	}
}

// TestNoFormatEscapes: whatever the format, a path that leaves the project is
// refused by Decode, before anything is read.
func TestNoFormatEscapes(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"../x.py", "/etc/x.py", "a/../../x.py", ".git/hooks/x.py", "src/../../x.py"} {
		for name, text := range map[string]string{
			"fence":    "```python " + p + "\nx = 1\n```\n",
			"diff":     "--- a/" + p + "\n+++ b/" + p + "\n@@ -1 +1 @@\n-x\n+y\n",
			"git diff": "diff --git a/" + p + " b/" + p + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + p + "\n@@ -0,0 +1 @@\n+y\n",
			"rename":   "diff --git a/x b/" + p + "\nrename from x\nrename to " + p + "\n",
			"search":   p + "\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
			"patch":    "*** Begin Patch\n*** Add File: " + p + "\n+x\n*** End Patch\n",
			"move":     "*** Begin Patch\n*** Update File: x\n*** Move to: " + p + "\n*** End Patch\n",
			"json":     `{"files":[{"path":"` + p + `","content":"x = 1\n"}]}`,
			"edits":    `{"edits":[{"path":"` + p + `","search":"a","replace":"b"}]}`,
			"tags":     "<file>" + p + "</file>\n<original>a</original>\n<patched>b</patched>\n",
		} {
			_, err := patch.Decode([]byte(text), patch.Options{Finish: patch.FinishStop, Paths: []string{"x"}})
			require.Error(t, err, "%s: %s", name, p)
			var e *patch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, patch.GatePaths, e.Gate, "%s: %s: %v", name, p, err)
		}
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for mode, ok := range map[string]bool{"100644": true, "100755": true, "120000": false, "160000": false, "040000": false, "100777": false} {
		text := "diff --git a/l b/l\nnew file mode " + mode + "\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n"
		d, err := patch.Decode([]byte(text), patch.Options{Finish: patch.FinishStop})
		if !ok {
			requireReason(t, err, patch.ReasonMode)
			continue
		}
		require.NoError(t, err)
		require.NotZero(t, d.Files[0].Mode)
	}
	for _, text := range []string{
		"diff --git a/l b/l\nold mode 100644\nnew mode 120000\n",
		"diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
		"diff --git a/l b/l\nindex 111..222 160000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+y\n",
	} {
		_, err := patch.Decode([]byte(text), patch.Options{Finish: patch.FinishStop})
		requireReason(t, err, patch.ReasonMode)
	}
}
