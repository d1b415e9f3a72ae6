package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/run"
)

// answer is a script line with a model's answer.
func answer(text string) string { return "answer " + strconv.Quote(text) }

func fenced(text string) string { return "Here is the fix:\n\ncalc.py\n```python\n" + text + "```\n" }

var wrong = strings.Replace(calcBroken, "a - b", "a * b", 1)

// saying is what a model says, and what must come of it.
type saying struct {
	name     string
	script   []string
	state    run.Terminal
	calls    int
	statuses []run.AttemptStatus
}

func TestModelAnswers(t *testing.T) {
	t.Parallel()
	diff := string(patch.Diff("calc.py", []byte(calcBroken), []byte(calcFixed)))
	cases := []saying{
		{"fence with an introduction", []string{answer(fenced(calcFixed))}, run.Approved, 1, []run.AttemptStatus{run.StatusPytestPass}},
		{"diff", []string{answer("```diff\n" + diff + "```\n")}, run.Approved, 1, []run.AttemptStatus{run.StatusPytestPass}},
		{
			"after a wrong one",
			[]string{answer(fenced(wrong)), answer(fenced(calcFixed))},
			run.Approved, 2,
			[]run.AttemptStatus{run.StatusPytestFail, run.StatusPytestPass},
		},
		{
			"a diff of the original after a wrong one",
			[]string{answer(fenced(wrong)), answer("```diff\n" + diff + "```\n")},
			run.Approved, 2,
			[]run.AttemptStatus{run.StatusPytestFail, run.StatusPytestPass},
		},
		{"a path in the wrong case", []string{"answer times=* " + strconv.Quote(strings.Replace(fenced(calcFixed), "calc.py", "CALC.PY", 1))}, run.Approved, 1, nil},
		{"after 429", []string{`status 429 Retry-After=1 "slow down"`, answer(fenced(calcFixed))}, run.Approved, 2, []run.AttemptStatus{run.StatusPytestPass}},
		{"after 500", []string{`status 500 "oops"`, answer(fenced(calcFixed))}, run.Approved, 2, []run.AttemptStatus{run.StatusPytestPass}},
		{"after a cut stream", []string{`cut "def add("`, answer(fenced(calcFixed))}, run.Approved, 2, []run.AttemptStatus{run.StatusPytestPass}},
		{"prose", []string{answer("I will change the operator next.")}, run.NeedsHumanReview, 1, []run.AttemptStatus{run.StatusNoFixedCode}},
		{"empty", []string{answer("")}, run.NeedsHumanReview, 1, []run.AttemptStatus{run.StatusNoFixedCode}},
		{"a Japanese sentence", []string{answer("演算子を足し算に修正しました")}, run.NeedsHumanReview, 1, []run.AttemptStatus{run.StatusNoFixedCode}},
		{
			"prose in fences",
			[]string{answer("```python\nThe minus sign looks wrong.\n```"), answer("```python\nI am sure it is the minus sign.\n```")},
			run.NeedsHumanReview, 2,
			[]run.AttemptStatus{run.StatusASTFail, run.StatusASTFail},
		},
		{"the same wrong patch again", []string{"answer times=* " + strconv.Quote(fenced(wrong))}, run.NeedsHumanReview, 2, nil},
		{"401", []string{`status 401 "bad key"`}, run.Failed, 1, nil},
		{"cut off at the limit", []string{"answer finish=length times=* " + strconv.Quote(fenced(calcFixed))}, run.NeedsHumanReview, 2, nil},
		{
			"edited tests",
			[]string{"answer times=* " + strconv.Quote("test_calc.py\n```python\n"+strings.Replace(calcTests, "1, 2), 3", "1, 2), -1", 1)+"```\n")},
			run.NeedsHumanReview, 2, nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c saying) check(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	m := w.script(c.script...)
	dir := w.project("calc")
	before := w.tree(dir)
	sum, r := w.heal(dir, "--source", "model")
	require.Equal(t, c.state, sum.State, "%s\n%s", r.out, r.err)
	require.Equal(t, c.calls, m.Count(), "%s\n%s", r.out, r.err)
	var statuses []run.AttemptStatus
	for _, a := range sum.Tries {
		statuses = append(statuses, a.Status)
	}
	if c.statuses != nil {
		require.Equal(t, c.statuses, statuses)
	}
	require.Equal(t, before, sum.BaseTree)
	require.Equal(t, w.tree(dir), sum.FinalTree)
	if c.state == run.Approved {
		data, err := os.ReadFile(filepath.Join(dir, "calc.py"))
		require.NoError(t, err)
		require.Equal(t, calcFixed, string(data))
		require.Equal(t, []string{"calc.py"}, sum.Files)
		require.Contains(t, sum.Diff, "+    return a + b")
		return
	}
	require.Equal(t, before, w.tree(dir))
	report, err := os.ReadFile(sum.Report)
	require.NoError(t, err)
	for _, a := range sum.Tries {
		require.Contains(t, string(report), "## Attempt "+strconv.Itoa(a.N))
	}
	require.NotContains(t, string(report)+r.out+r.err, "sk-test-0123456789")
}

func TestModelThenEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer("I do not know."))
	dir := w.project("calc")
	sum, r := w.heal(dir)
	require.Equal(t, run.Approved, sum.State, r.out)
	require.Len(t, sum.Tries, 2)
	require.Equal(t, run.SourceEngine, sum.Tries[1].Source)
}

func TestMaxCallsZeroAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(answer(fenced(calcFixed)))
	sum, r := w.heal(w.project("calc"), "--source", "model", "--max-calls", "0")
	require.Equal(t, run.NeedsHumanReview, sum.State, r.out)
	require.Zero(t, m.Count())
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		kept bool
	}{
		{"apply", nil, false},
		{"in place", []string{"--in-place"}, false},
		{"dry run", []string{"--dry-run"}, true},
		{"dry run in place", []string{"--dry-run", "--in-place"}, true},
		{"patch", []string{"--deliver", "patch"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := w.project("calc")
			before := w.tree(dir)
			sum, r := w.heal(dir, append(c.args, "--source", "engine")...)
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, c.kept, before == w.tree(dir))
			require.Equal(t, w.tree(dir), sum.FinalTree)
			if sum.Delivered == run.DeliverPatch {
				text, err := os.ReadFile(sum.Patch)
				require.NoError(t, err)
				require.Equal(t, sum.Diff, string(text))
			}
			again, r := w.heal(dir, "--source", "engine", "--dry-run")
			require.Equal(t, run.Approved, again.State, r.out)
			require.Equal(t, c.kept, len(again.Tries) == 1, "a healed folder has nothing to do")
		})
	}
}

// Without pytest the engine works under unittest.
func TestEngineUnderUnittest(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"python3 -m unittest", "python3 -m unittest test_calc", "python3 -m unittest discover"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := w.project("calc")
			sum, r := w.heal(dir, "--source", "engine", "--test", command)
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Contains(t, sum.Diff, "+    return a + b")
		})
	}
}

// An exit status alone proves nothing: a person decides.
func TestWeakEvidenceGoesToAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(calcFixed)))
	dir := w.project("calc")
	w.write(dir, "check.sh", "exec python3 -m unittest -q\n")
	before := w.tree(dir)
	sum, r := w.heal(dir, "--test", "sh check.sh", "--source", "model")
	require.Equal(t, run.NeedsHumanReview, sum.State, r.out)
	require.Contains(t, sum.Reason, "exit status")
	require.Equal(t, before, w.tree(dir))
	require.Equal(t, run.StatusPytestPass, sum.Tries[0].Status)
}

func TestReportInTheProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer("no idea"))
	dir := w.project("calc")
	sum, r := w.heal(dir, "--source", "model", "--report")
	require.Equal(t, run.NeedsHumanReview, sum.State, r.out)
	require.Equal(t, filepath.Join(dir, "review_report.md"), sum.Report)
	require.FileExists(t, sum.Report)
}

func TestReplayVerifyAndRunCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	sum, _ := w.heal(dir, "--source", "engine")
	id := sum.Run[:8]
	r := w.nexus("replay", id)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "every decision is the same (APPROVED)")
	events := w.nexus("run", "show", id, "--events").out
	require.Regexp(t, `(?m)^   1  run `+sum.Run+` opened\n   2  → snapshot\n   3  snapshot   .* → test\n   4  baseline   .* → debugger$`, events)
	r = w.nexus("run", "diff", id)
	require.Equal(t, sum.Diff, r.out)
	r = w.nexus("run", "ls")
	require.Contains(t, r.out, id)
	r = w.nexus("run", "show", id)
	require.Contains(t, r.out, "APPROVED")
	r = w.nexus("run", "watch", id)
	require.Zero(t, r.exit, r.err)
	r = w.nexus("run", "show", "zzzz")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "no run")
}

// TestReadmeHeals: the first thing that the README shows is what a user gets,
// line for line, but for runner, level and time; … stands for the rest.
func TestReadmeHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.dir, "billing")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/broken")))
	out := w.nexus("heal", dir, "--source", "engine").out
	vary := regexp.MustCompile(`\[\w+, \w+, [0-9.]+ s\]`)
	lines := strings.Split(vary.ReplaceAllString(out, ""), "\n")
	for _, want := range strings.Split(readme(t, "console"), "\n")[1:] {
		want, cut := strings.CutSuffix(vary.ReplaceAllString(want, ""), "…")
		i := slices.IndexFunc(lines, func(l string) bool { return l == want || cut && strings.HasPrefix(l, want) })
		require.GreaterOrEqual(t, i, 0, "%q is not what comes next in\n%s", want, out)
		lines = lines[i+1:]
	}
}

// TestHealAtLevelThin: the engine works where the kernel grants no namespaces.
func TestHealAtLevelThin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "NEXUS_SANDBOX_LEVEL=thin")
	sum, r := w.heal(w.project("calc"), "--source", "engine")
	require.Equal(t, run.Approved, sum.State, "%s\n%s", sum.Reason, r.err)
	require.Equal(t, "thin", sum.Level)
}
