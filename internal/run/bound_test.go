package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// maxEvent is what a message of the bus may have.
const maxEvent = 1 << 20

// wide is evidence of a suite with that many tests of one outcome.
func wide(tree string, n int, o run.Outcome) run.Evidence {
	e := run.Evidence{Runner: "pytest", Tree: tree, Completed: true, Canary: true, Outcomes: map[string]run.Outcome{}}
	for i := range n {
		id := fmt.Sprintf("tests/test_%05d.py::Case<%s>::test_%d", i, strings.Repeat("&", 100), i)
		e.Outcomes[id] = o
		e.Collected = append(e.Collected, id)
	}
	if o == run.OutcomeFailed {
		e.Exit, e.Tail = 1, strings.Repeat("<", 8<<10)
	}
	return e
}

// TestTwentyThousandRedTests: what a run quotes of a suite in which everything
// is red fits into a message, for every candidate of the longest list, and
// escaped as JSON; the counts stay true.
func TestTwentyThousandRedTests(t *testing.T) {
	t.Parallel()
	const n = 20_000
	base := wide("t0", n, run.OutcomePassed)
	red := run.Judge(base, wide("t1", n, run.OutcomeFailed))
	require.Equal(t, run.VerdictFailed, red.Kind)
	require.Equal(t, run.Counts{Failed: n, Broken: n, New: n}, red.Counts)
	require.NotEmpty(t, red.Failed)
	gone := run.Judge(base, wide("t1", 1, run.OutcomeFailed))
	require.Equal(t, n-1, gone.Counts.Missing)
	var ans run.TestAnswer
	for rank := range 20 {
		ans.Results = append(ans.Results, run.TestResult{Rank: rank, Candidate: strings.Repeat("c", 64), Verdict: red})
	}
	ans.Bound()
	body, err := json.Marshal(ans)
	require.NoError(t, err)
	require.Less(t, len(body), maxEvent/2)
	for _, r := range ans.Results {
		require.Equal(t, red.Counts, r.Verdict.Counts)
		require.NotEmpty(t, r.Verdict.Failed)
		require.True(t, utf8.ValidString(r.Verdict.Tail))
	}
	one := run.TestAnswer{Results: []run.TestResult{{Verdict: red}}}
	one.Bound()
	require.Equal(t, red, one.Results[0].Verdict, "a verdict alone is left as it is")
}

func TestCutList(t *testing.T) {
	t.Parallel()
	require.Nil(t, run.CutList(nil, 3, 10))
	require.Equal(t, []string{"a", "b"}, run.CutList([]string{"a", "b", "c"}, 2, 10))
	require.Equal(t, []string{"aaaa"}, run.CutList([]string{"aaaa", "bbbb"}, 5, 7))
	require.Equal(t, []string{"aa" + run.Cut}, run.CutList([]string{"aaaa", "b"}, 5, 2))
	require.Equal(t, []string{"é" + run.Cut}, run.CutList([]string{"ééé"}, 5, 3), "between characters")
}

func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	e := wide("t1", 1, run.OutcomePassed)
	e.Infrastructure = strings.Repeat("no ", 10_000)
	v := run.JudgeBase(e)
	require.Equal(t, run.VerdictInfrastructure, v.Kind)
	require.LessOrEqual(t, len(v.Reason), run.MaxText+len(run.Cut))
}

func TestOversized(t *testing.T) {
	t.Parallel()
	var c run.Candidate
	for i := range 20 {
		c.Changes = append(c.Changes, run.Change{
			Path: fmt.Sprintf("pkg/module_%d.py", i), Op: run.OpModify, Base: strings.Repeat("a", 64), New: strings.Repeat("b", 64),
		})
	}
	require.False(t, c.Oversized(), "policy lets twenty files through")
	for len(c.Changes) < 200 {
		c.Changes = append(c.Changes, c.Changes...)
	}
	require.True(t, c.Oversized())
}

// TestNewlyRed: a base that was cut short, or could not collect a file, says
// nothing about the tests that it does not know.
func TestNewlyRed(t *testing.T) {
	t.Parallel()
	got := wide("t1", 0, run.OutcomePassed)
	got.Outcomes = map[string]run.Outcome{
		"a.py::old": run.OutcomeFailed, "b.py::inner": run.OutcomeFailed, "c.py::new": run.OutcomeFailed, "d.py::ok": run.OutcomePassed,
	}
	got.Exit = 1
	base := wide("t0", 0, run.OutcomePassed)
	base.Outcomes = map[string]run.Outcome{"a.py::old": run.OutcomeFailed, "b.py": run.OutcomeError, "d.py::ok": run.OutcomePassed}
	base.Collected, base.Exit = []string{"a.py::old", "d.py::ok"}, 1
	require.Equal(t, 1, run.Judge(base, got).Counts.New)
	base.Completed, base.Timeout = false, true
	require.Zero(t, run.Judge(base, got).Counts.New)
}
