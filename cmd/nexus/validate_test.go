package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// judged runs `nexus validate --json` on an answer.
func (w *world) judged(answer, dir string, args ...string) (judgement, result) {
	w.t.Helper()
	r := w.feed(answer, nil, append([]string{"validate", "--base", dir, "--json"}, args...)...)
	var j judgement
	require.NoError(w.t, json.Unmarshal([]byte(r.out), &j), "%s\n%s", r.out, r.err)
	require.Equal(w.t, j.Accepted, r.exit == 0, r.err)
	return j, r
}

func fence(body string) string { return "```python\n" + body + "```\n" }

// TestValidateAccepts: the files are written whole, with their modes, and the
// base is not.
func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	before := w.tree(dir)
	out := filepath.Join(w.dir, "accepted")
	answer := "*** Begin Patch\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n" +
		"*** Add File: pkg/new.py\n+X = 1\n*** Delete File: notes.txt\n*** End Patch\n"
	j, r := w.judged(answer, dir, "--task", "drop notes.txt", "--out", out)
	require.Zero(t, r.exit, r.out)
	require.Equal(t, before, w.tree(dir))
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	require.ElementsMatch(t, []judgedFile{
		{"calc.py", "modify", sum(calcFixed)}, {"pkg/new.py", "create", sum("X = 1\n")}, {"notes.txt", "delete", ""},
	}, j.Files)
	for name, want := range map[string]string{"calc.py": calcFixed, "pkg/new.py": "X = 1\n"} {
		got, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	info, err := os.Stat(filepath.Join(out, "calc.py"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	require.NoFileExists(t, filepath.Join(out, "notes.txt"))

	text := w.feed(fence(calcFixed), nil, "validate", "--base", dir, "--target", filepath.Join(dir, "calc.py"))
	require.Zero(t, text.exit, text.err)
	require.Contains(t, text.out, "ACCEPTED")
	require.Contains(t, text.out, "calc.py")
}

// TestValidateRejects: one status for each reason, and nothing is written.
func TestValidateRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	before := w.tree(dir)
	out := filepath.Join(w.dir, "out")
	for name, c := range map[string]struct {
		answer, gate, status string
		args                 []string
	}{
		"no code":   {"I have fixed it.", "decode", "no_fixed_code", nil},
		"empty":     {"\n", "decode", "no_fixed_code", nil},
		"prose":     {fence("I changed the minus sign into a plus sign\n"), "prose", "ast_fail", []string{"--target", "calc.py"}},
		"syntax":    {fence(strings.Replace(calcFixed, "(a, b):", "(a, b:", 1)), "syntax", "ast_fail", []string{"--target", "calc.py"}},
		"cut off":   {fence(calcFixed), "decode", "gate_fail", []string{"--finish-reason", "length"}},
		"lost":      {fence("def add(a, b):\n    return a + b\n"), "structure", "gate_fail", nil},
		"a test":    {`{"path":"test_calc.py","search":"add(1, 2), 3","replace":"add(1, 2), -1"}`, "tamper", "gate_fail", []string{"--target", "test_calc.py"}},
		"no diff":   {fence(calcFixed), "decode", "no_fixed_code", []string{"--format", "diff"}},
		"not asked": {"```python pkg/x.py\nX = 1\n```\n", "paths", "gate_fail", []string{"--target", "calc.py"}},
	} {
		j, r := w.judged(c.answer, dir, append(c.args, "--out", out)...)
		require.Equal(t, 2, r.exit, name)
		require.Equal(t, c.gate, j.Gate, "%s: %s", name, r.out)
		require.Equal(t, c.status, string(j.Status), "%s: %s", name, r.out)
		require.NotEmpty(t, j.Reason, name)
		require.NotEmpty(t, j.Feedback, name)
		require.Empty(t, j.Files, name)
		require.NoDirExists(t, out, name)
	}
	require.Equal(t, before, w.tree(dir))
	text := w.feed("I have fixed it.", nil, "validate", "--base", dir)
	require.Equal(t, 2, text.exit)
	require.Contains(t, text.out, "REJECTED  decode/no_code (no_fixed_code)")
}

// TestValidateUsage: what a person can set right ends with 1 and a sentence.
func TestValidateUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	full := filepath.Join(w.dir, "full")
	w.write(full, "keep.txt", "mine")
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "void"), 0o755))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no base":         {nil, "--base"},
		"missing base":    {[]string{"--base", filepath.Join(w.dir, "nowhere")}, "no such file"},
		"base is a file":  {[]string{"--base", filepath.Join(dir, "calc.py")}, "not a folder"},
		"full out":        {[]string{"--base", dir, "--out", full}, "not empty"},
		"out in the base": {[]string{"--base", dir, "--out", filepath.Join(dir, "new")}, "only read"},
		"base in the out": {[]string{"--base", dir, "--out", w.dir}, "not empty"},
		"out is a file":   {[]string{"--base", dir, "--out", filepath.Join(full, "keep.txt")}, "not a folder"},
		"out in nowhere":  {[]string{"--base", dir, "--out", filepath.Join(w.dir, "a", "b")}, "no such file"},
		"target outside":  {[]string{"--base", dir, "--target", "../x.py"}, "leaves the folder"},
		"unknown format":  {[]string{"--base", dir, "--format", "tar"}, "--format"},
		"unknown finish":  {[]string{"--base", dir, "--finish-reason", "tired"}, "--finish-reason"},
		"a word too many": {[]string{"--base", dir, "answer.txt"}, "unexpected argument"},
	} {
		r := w.feed(fence(calcFixed), nil, append([]string{"validate"}, c.args...)...)
		require.Equal(t, 1, r.exit, "%s: %s%s", name, r.out, r.err)
		require.Contains(t, r.err, c.want, name)
		require.NotContains(t, r.err, "goroutine", name)
	}
	kept, err := os.ReadFile(filepath.Join(full, "keep.txt"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	left, err := filepath.Glob(filepath.Join(w.dir, ".nexus-out-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	// An empty folder is as good as a new one, for the base and for the files.
	j, r := w.judged("```python main.py\nx = 1\n```\n", filepath.Join(w.dir, "void"), "--out", filepath.Join(w.dir, "fresh"))
	require.True(t, j.Accepted, r.out)
	require.FileExists(t, filepath.Join(w.dir, "fresh", "main.py"))
}

// TestValidateUsesTheProjectsPython: what is new syntax to the project's own
// interpreter is an error, and a hostile one gets no hand on anything.
func TestValidateUsesTheProjectsPython(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	mark := filepath.Join(w.dir, "mark")
	w.write(dir, ".venv/bin/python", "#!/bin/sh\necho x > "+mark+"\nexit 0\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, ".venv/bin/python"), 0o755))
	j, r := w.judged(fence(calcFixed), dir, "--target", "calc.py")
	require.True(t, j.Accepted, r.out)
	require.NoFileExists(t, mark)
}

// TestReadmeValidates runs the README's own example.
func TestReadmeValidates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, line, ok := strings.Cut(string(text), "bin/nexus validate --base DIR --target")
	require.True(t, ok)
	line, _, ok = strings.Cut("validate --base DIR --target"+line, " < answer.txt")
	require.True(t, ok)
	out := filepath.Join(w.dir, "accepted")
	line = strings.NewReplacer("DIR", dir, "src/cart.py", "calc.py", "/tmp/accepted", out).Replace(line)
	r := w.feed(fence(calcFixed), nil, strings.Fields(line)...)
	require.Zero(t, r.exit, r.out+r.err)
	require.FileExists(t, filepath.Join(out, "calc.py"))
}
