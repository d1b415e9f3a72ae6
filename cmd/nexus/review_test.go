package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// weakly heals a project whose test command has an exit status only: the fix
// is proved as far as that goes, and waits for a person.
func (w *world) weakly(dir string) run.Summary {
	w.t.Helper()
	w.write(dir, "check.sh", "exec python3 -m unittest -q\n")
	sum, r := w.heal(dir, "--source", "model", "--test", "sh check.sh")
	require.Equal(w.t, run.NeedsHumanReview, sum.State, r.out)
	return sum
}

func (w *world) text(dir, path string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, path))
	require.NoError(w.t, err)
	return string(data)
}

func TestReviewApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("answer times=* " + strconv.Quote(fenced(calcFixed)))
	require.Equal(t, "nothing waits for a person\n", w.nexus("review", "ls").out)
	dir := w.project("calc")
	sum := w.weakly(dir)
	before := w.tree(dir)
	id := sum.Run[:8]
	require.Regexp(t, id+` +waiting`, w.nexus("review", "ls").out)
	shown := w.nexus("review", "show", id)
	require.Contains(t, shown.out, "nexus review approve "+id)
	require.Equal(t, sum.Run+"\n", w.nexus("completion", "bash", "--line", "nexus review approve ").out)
	require.Contains(t, shown.out, "+    return a + b")

	w.write(dir, "other.py", "x = 1\n")
	moved := w.nexus("review", "approve", id)
	require.Equal(t, 2, moved.exit, moved.out)
	require.Contains(t, moved.out, "not as it was when the decision was made")
	require.NoError(t, os.Remove(filepath.Join(dir, "other.py")))
	require.Equal(t, before, w.tree(dir), "nothing was written")

	calls := w.model.Count()
	done := w.nexus("review", "approve", id, "--by", "ada")
	require.Zero(t, done.exit, "%s%s", done.out, done.err)
	require.Equal(t, calcFixed, w.text(dir, "calc.py"))
	require.Equal(t, calls, w.model.Count(), "a person's decision asks no model")
	require.Equal(t, "nothing waits for a person\n", w.nexus("review", "ls").out)
	require.Contains(t, w.nexus("review", "ls", "--all").out, "solved")
	require.Empty(t, w.nexus("completion", "bash", "--line", "nexus review approve ").out, "nothing is left to decide")
	w.clean(dir)
}

// What ended because the task was at fault waits for nobody.
func TestReviewOfBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.dir, "bare")
	w.write(dir, "main.py", "print('hi')\n")
	sum, _ := w.heal(dir)
	require.Equal(t, run.Failed, sum.State)
	require.Equal(t, "nothing waits for a person\n", w.nexus("review", "ls").out)
	require.Regexp(t, sum.Run[:8]+` +bad input `, w.nexus("review", "ls", "--all").out)
	require.Contains(t, w.nexus("run", "ls").out, sum.Run[:8])
}

// A person's own difference is believed as little as a model's.
func TestReviewPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("answer times=* " + strconv.Quote(fenced(wrong)))
	dir := w.project("calc")
	sum, _ := w.heal(dir, "--source", "model")
	require.Equal(t, run.NeedsHumanReview, sum.State)
	before := w.tree(dir)
	none := w.nexus("review", "approve", sum.Run)
	require.Equal(t, 1, none.exit)
	require.Contains(t, none.err, "nothing to approve")
	for name, c := range map[string]struct{ text, says string }{
		"tests.patch": {"--- a/test_calc.py\n+++ b/test_calc.py\n@@ -8,2 +8,1 @@\n     def test_add(self):\n-        self.assertEqual(add(1, 2), 3)\n", "NEEDS_HUMAN_REVIEW"},
		"wrong.patch": {"--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return b - a\n", "NEEDS_HUMAN_REVIEW"},
		"prose.patch": {"I would add the numbers.\n", "NEEDS_HUMAN_REVIEW"},
	} {
		w.write(w.dir, name, c.text)
		r := w.nexus("review", "patch", sum.Run, filepath.Join(w.dir, name))
		require.Equal(t, 2, r.exit, "%s: %s%s", name, r.out, r.err)
		require.Contains(t, r.out, c.says)
		require.Equal(t, before, w.tree(dir), name)
	}
	w.write(w.dir, "right.patch", "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n")
	r := w.nexus("review", "patch", sum.Run, filepath.Join(w.dir, "right.patch"))
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Equal(t, calcFixed, w.text(dir, "calc.py"))
	empty := w.nexus("review", "patch", sum.Run, os.DevNull)
	require.Equal(t, 1, empty.exit)
	require.Contains(t, empty.err, "is empty")
}

func TestReviewRetryAndReject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(wrong)), answer(fenced(wrong)), answer("no idea"), answer(fenced(calcFixed)))
	dir := w.project("calc")
	sum, _ := w.heal(dir, "--source", "model")
	require.Equal(t, run.NeedsHumanReview, sum.State)
	require.Zero(t, w.nexus("review", "assign", sum.Run, "ada").exit)
	require.Contains(t, w.nexus("review", "ls").out, "ada")
	first, _ := w.heal(dir, "--source", "model", "--max-calls", "1")
	require.Equal(t, run.NeedsHumanReview, first.State)

	r := w.nexus("review", "retry", sum.Run, "--hint", "add should add", "--json")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Equal(t, calcFixed, w.text(dir, "calc.py"))
	requests := w.model.Requests()
	require.Contains(t, requests[len(requests)-1].Last(), "add should add")

	reject := w.nexus("review", "reject", first.Run, "--reason", "solved elsewhere", "--by", "ada")
	require.Zero(t, reject.exit, reject.err)
	again := w.nexus("review", "retry", first.Run)
	require.Equal(t, 1, again.exit)
	require.Contains(t, again.err, "rejected by ada: solved elsewhere")
	approved := w.nexus("review", "reject", first.Run)
	require.Equal(t, 1, approved.exit)
	require.Equal(t, "nothing waits for a person\n", w.nexus("review", "ls").out)
}
