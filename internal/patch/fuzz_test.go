package patch_test

import (
	"bytes"
	"errors"
	"testing"

	"nexuscore.dev/nexus/internal/patch"
)

// fuzzFormat checks what must hold for any text at all: no panic, typed
// errors, checked paths, and an inverse diff that gives the file back.
func fuzzFormat(f *testing.F, format string, seeds ...string) {
	f.Helper()
	base := tree{"a.py": "def f(x):\n    return x\n\n\ny = 1\n", "dir/b.txt": "one\r\ntwo\nthree"}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, o := range []patch.Options{{Targets: []string{"a.py"}}, {Read: base.read}} {
			o.Format, o.Finish, o.Paths = format, patch.FinishStop, base.paths()
			fuzzText(t, base, text, o)
		}
	})
}

// fuzzText decodes and places one text.
func fuzzText(t *testing.T, base tree, text []byte, o patch.Options) {
	t.Helper()
	d, err := patch.Decode(text, o)
	if err != nil {
		requireTyped(t, err)
		return
	}
	edits, err := patch.Place(d, base.read)
	if err != nil {
		requireTyped(t, err)
		return
	}
	for _, e := range edits {
		if err := patch.CheckPath(e.Path); err != nil {
			t.Fatalf("placed on %q: %v", e.Path, err)
		}
		requireInverse(t, e)
	}
}

func requireTyped(t *testing.T, err error) {
	t.Helper()
	var e *patch.Error
	if !errors.As(err, &e) || e.Gate == "" || e.Reason == "" || e.Feedback == "" {
		t.Fatalf("%T %v is no complete *patch.Error", err, err)
	}
}

// requireInverse undoes a modification by its own diff.
func requireInverse(t *testing.T, e patch.Edit) {
	t.Helper()
	if e.Op != patch.OpModify || bytes.Equal(e.Old, e.New) || bytes.IndexByte(e.New, 0) >= 0 {
		return
	}
	diff := patch.Diff(e.Path, e.New, e.Old)
	got, _, err := tree{e.Path: string(e.New)}.apply(string(diff), patch.Options{Format: patch.FormatDiff})
	var typed *patch.Error
	if errors.As(err, &typed) && typed.Reason == patch.ReasonEncoding {
		return
	}
	if err != nil || got[e.Path] != string(e.Old) {
		t.Fatalf("inverse of %q -> %q: %v\n%s", e.Old, e.New, err, diff)
	}
}

func FuzzAuto(f *testing.F) {
	fuzzFormat(f, patch.FormatAuto, "Done", "```python\nx\n```", "<think>a</think>\nx = 1\n", "{\"fixed_code\":\"x\"}",
		"--- a/a.py\n+++ b/a.py\n@@\n-y = 1\n+y = 2\n", "*** Begin Patch\n*** Delete File: a.py\n*** End Patch")
}

func FuzzFile(f *testing.F) {
	fuzzFormat(f, patch.FormatFile, "```a.py```\n```python\nx = 1\n```", "a.py\n~~~\nx\n~~~", "x = 1\n", "```\n# a.py\nx\n```")
}

func FuzzDiff(f *testing.F) {
	fuzzFormat(f, patch.FormatDiff, "--- a/dir/b.txt\n+++ b/dir/b.txt\n@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n three\n\\ No newline at end of file\n",
		"diff --git a/a.py b/c.py\nrename from a.py\nrename to c.py\n", "+++ a.py\n@@ ... @@\n-y = 1\n+y = 2",
		"diff --git \"a/\\303\\251\" \"b/\\303\\251\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/\\303\\251\"\n@@ -0,0 +1 @@\n+x\n")
}

func FuzzSearch(f *testing.F) {
	fuzzFormat(f, patch.FormatSearch, "a.py\n<<<<<<< SEARCH\ny = 1\n=======\ny = 2\n>>>>>>> REPLACE\n",
		"<file>a.py</file>\n<original>y = 1</original>\n<patched>y = 2</patched>", "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE",
		"<<<<<<< SEARCH\ny = 1\n=======\ny = 2\n=======\n>>>>>>> REPLACE", "<<<<<<< SEARCH\ndef f(x):\n    return x\n\ny = 1\n=======\nz\n=======\n",
		"a.py\n<<<<<<< SEARCH\nreturn x\n=======\nif x:\n        return x\n>>>>>>> REPLACE")
}

func FuzzPatch(f *testing.F) {
	fuzzFormat(f, patch.FormatPatch, "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f(x):\n-    return x\n+    return 1\n*** End of File\n*** End Patch\n",
		"*** Begin Patch\n*** Add File: n\n+x\n*** End Patch")
}

func FuzzEdits(f *testing.F) {
	fuzzFormat(f, patch.FormatEdits, `{"edits":[{"path":"a.py","search":"y = 1","replace":"y = 2"}]}`,
		"{\"files\": [{\"path\": \"a.py\", \"content\": \"x\ny\"}]} // c", `[{"op":"rename","from":"a.py","to":"b.py"}]`)
}

// FuzzCheckPath: an accepted path never leaves the folder it is joined to.
func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b", "../a", ".git/x", "/x", "a//b", "C:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if patch.CheckPath(p) != nil {
			return
		}
		for _, part := range bytes.Split([]byte(p), []byte("/")) {
			if s := string(part); s == "" || s == "." || s == ".." || s == ".git" {
				t.Fatalf("accepted %q", p)
			}
		}
	})
}
