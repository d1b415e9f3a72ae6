package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// reporting is a run that was not healed and waits for its report.
func (b *bench) reporting(inProject bool) (*reporter, bus.Job) {
	b.t.Helper()
	r := &reporter{store: b.store, dir: filepath.Join(b.state, "reports")}
	return r, b.pending(run.Report, run.Ask{Report: &run.ReportInput{Dir: b.dir, InProject: inProject}})
}

func report(t *testing.T, r *reporter, j bus.Job) (path, text string) {
	t.Helper()
	ans, err := r.handle(t.Context(), j)
	require.NoError(t, err)
	data, err := os.ReadFile(ans.Report.Path)
	require.NoError(t, err)
	stored, err := rollback.Read(t.Context(), r.store, ans.Report.Report.SHA256)
	require.NoError(t, err)
	require.Equal(t, string(stored), string(data))
	return ans.Report.Path, string(data)
}

// TestReportBesideTheRun: without being asked for it, nothing is written into
// the project.
func TestReportBesideTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	r, j := b.reporting(false)
	path, text := report(t, r, j)
	require.Equal(t, filepath.Join(b.state, "reports", j.Run+".md"), path)
	require.Contains(t, text, "# Run "+j.Run+": NEEDS_HUMAN_REVIEW")
	require.Contains(t, text, "## Attempt 1: pytest_fail by model")
	require.NoFileExists(t, filepath.Join(b.dir, rollback.ReportName))
	require.Equal(t, before, b.hash())
}

// TestReportInTheProject: the tree that the run proved is the same with it.
func TestReportInTheProject(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	r, j := b.reporting(true)
	for range 2 {
		path, text := report(t, r, j)
		require.Equal(t, filepath.Join(b.dir, rollback.ReportName), path)
		require.True(t, strings.HasPrefix(text, rollback.ReportMark))
		require.Equal(t, before, b.hash())
	}
	left, err := filepath.Glob(filepath.Join(b.dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestReportThatTheFolderDoesNotTake: then the one beside the run has to do,
// and nothing in the folder changes.
func TestReportThatTheFolderDoesNotTake(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench) (undo func() error){
		"a report of the user's": func(b *bench) func() error {
			b.write(files{rollback.ReportName: "mine"})
			return nil
		},
		"a writer at work": func(b *bench) func() error {
			unlock, err := rollback.Lock(b.dir)
			require.NoError(b.t, err)
			return unlock
		},
		"no folder": func(b *bench) func() error {
			require.NoError(b.t, os.RemoveAll(b.dir))
			return nil
		},
	} {
		b := newBench(t, calc())
		r, j := b.reporting(true)
		undo := change(b)
		path, _ := report(t, r, j)
		require.Equal(t, filepath.Join(b.state, "reports", j.Run+".md"), path, name)
		if data, err := os.ReadFile(filepath.Join(b.dir, rollback.ReportName)); err == nil {
			require.Equal(t, "mine", string(data), name)
		}
		if undo != nil {
			require.NoError(t, undo())
		}
	}
}

// TestReportOnlyWhenAsked: a report whose run waits for it no more stays out
// of the project.
func TestReportOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	r, j := b.reporting(true)
	j.N++
	_, err := r.handle(t.Context(), j)
	require.ErrorIs(t, err, errNotPending)
	require.NoFileExists(t, filepath.Join(b.dir, rollback.ReportName))
}

// TestReportTellsAll: what a person needs to take over is in it: the proof,
// what others changed, every refusal, every verdict.
func TestReportTellsAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	text, err := (&reporter{store: b.store}).render(t.Context(), b.told())
	require.NoError(t, err)
	for _, want := range []string{
		"NOT PROVEN", "rollback: lost", ": ERROR",
		"kept, and perhaps with a change of the run in it: `calc.py`", "- and 3 more",
		"which never wrote it; not touched: `data.txt`", "- and 7 more",
		"## Attempt 1: gate_fail by model", "refused by the gate `prose`: a sentence",
		"refused by the gate `paths`: unsafe: it leads out", "The answer as it came (stop):", "I would rather not.",
		"## Attempt 2: pytest_fail by engine", "Tests of candidate 0: failed: 1 passed, 1 failed", "- `test_calc.py::test`",
		"Tests of candidate 1: infrastructure: 0 passed, 0 failed, 0 skipped (it could not be tested: no room)",
		"+    return a + b", "model calls: 3 (120 tokens)", "the guardian's last word: reject: It hides.",
		"````\nwith ``` in it\n````", "isolation of the tests: user, runner: pytest", "- request of attempt 1: `",
	} {
		require.Contains(t, string(text), want)
	}
}

// told is a run to which everything happened that a report tells of.
func (b *bench) told() run.State {
	b.t.Helper()
	origin, tree := b.snapshot()
	c := b.staged(origin, b.modify(origin, "calc.py", fixed))
	other := b.staged(origin, b.modify(origin, "calc.py", "pass\n"))
	other.Rank = 1
	red := run.Verdict{
		Kind: run.VerdictFailed, Tree: c.Tree.Hash, Level: "user", Runner: "pytest", Failed: []string{"test_calc.py::test"},
		Counts: run.Counts{Passed: 1, Failed: 1}, Tail: "with ``` in it",
	}
	untested := run.Verdict{Kind: run.VerdictInfrastructure, Tree: other.Tree.Hash, Reason: "it could not be tested: no room"}
	request := b.put("what was asked")
	end := run.Ended{State: run.NeedsHumanReview, Reason: "no fix"}
	return run.State{
		ID: strings.Repeat("a", 26), Task: run.Task{Dir: b.dir}, OpenedAt: time.Unix(1, 0), At: time.Unix(3, 0),
		Origin: &tree, Baseline: &red, Calls: 3, PromptTokens: 100, AnswerTokens: 20,
		Review: &run.ReviewAnswer{Word: run.WordReject, Reasons: []string{"It hides."}},
		Attempts: []run.Attempt{
			{
				N: 1, Source: run.SourceModel, Status: run.StatusGateFail, Err: "a sentence",
				Proposed:  &run.DebugAnswer{Proposals: []run.Proposal{{Text: b.put("I would rather not."), Finish: "stop"}}, Request: &request},
				Validated: &run.ValidateAnswer{Rejected: []run.Rejection{{Gate: "prose", Reason: "a sentence"}}},
				Applied:   &run.ApplyAnswer{Refused: []run.Rejection{{Gate: "paths", Reason: "unsafe", Feedback: "it leads out"}}},
			},
			{
				N: 2, Source: run.SourceEngine, Status: run.StatusPytestFail,
				Applied: &run.ApplyAnswer{Candidates: []run.Candidate{c, other}},
				Tested: &run.TestAnswer{Results: []run.TestResult{
					{Candidate: c.Hash, Verdict: red}, {Rank: 1, Candidate: other.Hash, Verdict: untested},
				}},
			},
		},
		Ended: &end,
		Settled: &run.Settled{
			State: run.Failed, Reason: "rollback: lost", Conflicts: []string{"calc.py"}, Foreign: []string{"data.txt"},
			Counts: run.RollbackCounts{Conflicts: 4, Foreign: 8},
		},
	}
}

// TestReportWithoutItsArtifacts: a report that would be incomplete is none.
func TestReportWithoutItsArtifacts(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	for name, lose := range map[string]func(s *run.State){
		"an answer": func(s *run.State) { s.Attempts[0].Proposed.Proposals[0].Text.SHA256 = strings.Repeat("1", 64) },
		"a diff":    func(s *run.State) { s.Attempts[1].Applied.Candidates[0].Diff.SHA256 = strings.Repeat("2", 64) },
	} {
		s := b.told()
		lose(&s)
		_, err := (&reporter{store: b.store}).render(t.Context(), s)
		require.True(t, rollback.IsKind(err, rollback.KindBlob), "%s: %v", name, err)
	}
}

func TestReportSaysWhatIsProved(t *testing.T) {
	t.Parallel()
	s := run.State{Origin: &run.Tree{Hash: "t0"}}
	require.Empty(t, proof(s))
	s.Settled = &run.Settled{Proven: true, After: "t0"}
	require.Contains(t, proof(s), "byte for byte")
	s.Settled.After = "t1"
	require.Empty(t, proof(s))
	s.Settled.Proven = false
	require.Contains(t, proof(s), "NOT PROVEN")
}

// TestReportThatCannotBeKept: a disk that takes no report is a failure.
func TestReportThatCannotBeKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	r, j := b.reporting(false)
	r.dir = filepath.Join(b.dir, "calc.py", "reports")
	_, err := r.handle(t.Context(), j)
	require.ErrorContains(t, err, "report: ")
	r.dir = filepath.Join(b.state, "reports")
	r.store = unwritable{r.store, fmt.Errorf("no space")}
	_, err = r.handle(t.Context(), j)
	require.ErrorContains(t, err, "no space")
}
