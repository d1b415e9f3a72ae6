package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/validate"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	m.Run()
}

const (
	old    = "a: 1\nb: 2\n"
	better = "a: 1\nb: 3\n"
)

// lay writes files below a new folder.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func block(search, replace string) string {
	return "x.yaml\n<<<<<<< SEARCH\n" + search + "=======\n" + replace + ">>>>>>> REPLACE\n"
}

// TestReport: every answer is counted, every difference is listed by its id.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := lay(t, map[string]string{
		"task/base/x.yaml":          old,
		"task/good/answer.txt":      block("b: 2\n", "b: 3\n"),
		"task/good/label.txt":       "accepted and checked by a person\n",
		"task/good/want/x.yaml":     better,
		"task/stale/answer.txt":     block("b: 7\n", "b: 3\n"),
		"task/stale/label.txt":      "applicable\n",
		"task/broken/answer.txt":    block("b: 2\n", "b: [\n"),
		"task/broken/label.txt":     "inapplicable",
		"task/cut/answer.txt":       block("b: 2\n", "b: 3\n"),
		"task/cut/finish.txt":       "length\n",
		"task/other/answer.txt":     block("b: 2\n", "b: 4\n"),
		"task/other/label.txt":      "rejected",
		"task/other/want/x.yaml":    better,
		"own/answer.txt":            "```\ny: 2\n```\n",
		"own/base/y.yaml":           "y: 1\n",
		"own/base/z.yaml":           "z: 1\n",
		"own/targets.txt":           "y.yaml\n",
		"own/want/y.yaml":           "y: 2\n",
		"own/want/z.yaml":           "z: 1\n",
		"task/near/answer.txt":      block("b: 2\n", "b:  3\n"),
		"task/near/want/x.yaml":     better,
		"python/answer.txt":         "```python m.py\ndef f(:\n```\n",
		"prose/answer.txt":          "I could not find the cause.",
		"prose/base/x.yaml":         old,
		"task/base/answer.txt":      "a file of the tree, no answer",
		"task/empty/want/only.yaml": "",
	})
	var out, errs bytes.Buffer
	require.Equal(t, 0, execute(t.Context(), []string{"-all", dir}, &out, &errs), errs.String())
	for _, line := range []string{
		"answers       9\naccepted      4\nrejected      5\n",
		"              1  decode/no_code\n", "              1  decode/truncated\n",
		"              1  place/no_match\n", "              2  syntax/syntax_error\n",
		"labels        4, agreement 2 (50.00 %)\n",
		"differs   task/other: accepted, labelled rejected\n",
		"differs   task/stale: place/no_match, labelled applicable\n",
		"otherwise task/other: x.yaml\n", "otherwise task/near: x.yaml (white space only)\n", "task/good\taccepted\taccepted\t", "own\taccepted\t\t",
	} {
		require.Contains(t, out.String(), line)
	}
	require.NotContains(t, out.String(), "otherwise own")
	require.NotContains(t, out.String(), "panic")
}

// TestPanicsAreFailures: a panic of the gates is reported and fails the run.
func TestPanicsAreFailures(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.add(judge(t.Context(), nil, &answer{id: "bad", text: []byte("x"), label: labelInapplicable}))
	var out bytes.Buffer
	r.print(&out, false)
	require.True(t, r.panicked())
	require.Contains(t, out.String(), "panic     bad: ")
	require.Contains(t, out.String(), "differs")
}

// TestUsage: what can't be read is an error, not an empty report.
func TestUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"none": {}, "empty": {t.TempDir()}, "missing": {filepath.Join(t.TempDir(), "x")},
		"label": {lay(t, map[string]string{"a/answer.txt": "x", "a/label.txt": "good"})}, "flag": {"-x"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 1, execute(t.Context(), args, &out, &errs), name)
		require.NotEmpty(t, errs.String(), name)
		require.Empty(t, out.String(), name)
	}
}

// TestApplies: a well-formed edit applies whatever a later gate thinks of it.
func TestApplies(t *testing.T) {
	t.Parallel()
	require.True(t, outcome{verdict: validate.Verdict{Gate: validate.GateTamper}}.applies())
	require.True(t, outcome{verdict: validate.Verdict{Gate: validate.GateEmpty, Reason: "comments_only"}}.applies())
	for _, gate := range []string{validate.GateDecode, validate.GatePlace, validate.GateSyntax, validate.GateProse} {
		require.False(t, outcome{verdict: validate.Verdict{Gate: gate}}.applies(), gate)
	}
}

// TestAPanicNeverAgrees: it is no refusal.
func TestAPanicNeverAgrees(t *testing.T) {
	t.Parallel()
	for _, label := range []string{labelAccepted, labelRejected, labelApplicable, labelInapplicable} {
		require.True(t, outcome{label: label, panic: "index out of range"}.differs(), label)
	}
	require.False(t, outcome{panic: "index out of range"}.differs())
}
