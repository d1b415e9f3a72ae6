package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

func opened(t *testing.T, change func(*run.Task)) *runtest.Run {
	t.Helper()
	task := runtest.Task()
	if change != nil {
		change(&task)
	}
	r := runtest.New("run")
	require.NoError(t, r.Open(task))
	return r
}

// tell states an answer or a failure of the worker that was asked.
func tell(t *testing.T, r *runtest.Run, f run.Fact) {
	t.Helper()
	n, ask := r.Pending()
	require.NotZero(t, n)
	f.By, f.Ask = run.By(ask.Worker), n
	require.True(t, r.State.Awaits(f))
	require.NoError(t, r.Tell(f))
}

func TestADamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	for name, log := range map[string][]run.Event{
		"a gap":          {r.Log[0], {N: 3, Command: run.Result{}}},
		"a repetition":   {r.Log[0], r.Log[0]},
		"opened twice":   {r.Log[0], {N: 2, Command: r.Log[0].Command}},
		"never opened":   {{N: 1, Command: run.Result{}}},
		"an empty event": {r.Log[0], {N: 2}},
		"empty at first": {{N: 1}},
	} {
		s, err := run.FoldAll("run", log)
		require.Error(t, err, name)
		require.Equal(t, len(log)-1, s.N, "%s: what could be read is kept", name)
		_, err = run.Verify("run", log)
		require.Error(t, err, name)
	}
}

// A live process has clocks that a log does not keep; what it decides must
// not depend on them.
func TestALiveClockDecidesAsItsLogDoes(t *testing.T) {
	t.Parallel()
	live := time.Now().In(time.FixedZone("east", 3600))
	r := runtest.New("run")
	r.Now = live
	require.NoError(t, r.Open(runtest.Task()))
	tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
	r.Now = live.Add(1234567 * time.Nanosecond)
	tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
		Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 1)}},
	}}})
	require.Equal(t, time.UTC, r.State.OpenedAt.Location())
	require.NotContains(t, r.State.At.String(), "m=", "a monotonic reading")
	_, ask := r.Pending()
	require.InDelta(t, 1800-0.001234567, ask.Debug.Seconds, 1e-9)
}

func TestAnErrIsCutByCharacters(t *testing.T) {
	t.Parallel()
	r := opened(t, func(task *run.Task) { task.Sources = []run.Source{run.SourceModel} })
	tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
		Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 1)}},
	}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Debug: &run.DebugAnswer{Reason: strings.Repeat("修", 300)}}})
	require.Equal(t, strings.Repeat("修", 200), r.State.Last().Err)
}

// A message of any length must fit into the events that quote it.
func TestALongMessageIsQuotedInPart(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	tell(t, r, run.Fact{Failure: &run.Failure{Category: "security", Message: strings.Repeat("x", 1<<20)}})
	require.Less(t, len(r.State.Ended.Reason), 2200)
	require.Len(t, r.State.Ended.Dead.Reason, 2000)
}

func TestADeadLetterHasAKnownCategory(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	tell(t, r, run.Fact{Failure: &run.Failure{Category: "a.subject.>", Message: "it broke"}})
	require.Equal(t, "unexpected", r.State.Ended.Dead.Category)
	require.Equal(t, run.Failed, r.State.Ended.State)
}

// The deadline is not "no deadline" in the very moment in which it passes.
func TestNoWaitBeginsAtTheDeadline(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	r.Now = r.Now.Add(30 * time.Minute)
	tell(t, r, run.Fact{Failure: &run.Failure{Category: "timeout", Message: "slow"}})
	require.NotNil(t, r.State.Ended)
}

func TestParkedTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	deadline := func() time.Duration {
		require.Equal(t, run.TimerDeadline, r.State.Timers()[0].Name)
		return r.State.Timers()[0].At.Sub(runtest.Epoch)
	}
	order := func(k run.OrderKind) {
		require.NoError(t, r.Tell(run.Fact{By: run.ByOperator, Order: &run.Order{Kind: k}}))
	}
	require.Equal(t, 30*time.Minute, deadline())
	order(run.OrderPark)
	require.Empty(t, r.State.Timers())
	r.Now = r.Now.Add(time.Hour)
	order(run.OrderPark)
	order(run.OrderResume)
	require.Equal(t, 90*time.Minute, deadline())
	order(run.OrderResume)
	require.Equal(t, 90*time.Minute, deadline())
}

// A timer that was set anew may still fire for its old moment.
func TestATimerIsAwaitedAtItsMoment(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	f := run.Fact{By: run.ByClock, Timer: run.TimerDeadline, At: runtest.Epoch.Add(29 * time.Minute)}
	require.False(t, r.State.Awaits(f))
	f.At = runtest.Epoch.Add(30 * time.Minute)
	require.True(t, r.State.Awaits(f))
	require.True(t, r.State.Waits(2))
	require.False(t, r.State.Waits(1))
}

// Two verdicts on one candidate that disagree are no approval.
func TestOfTwoVerdictsTheRedOneCounts(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][2]run.VerdictKind{
		{run.VerdictPassed, run.VerdictFailed}, {run.VerdictFailed, run.VerdictPassed},
	} {
		r := opened(t, func(task *run.Task) { task.Sources = []run.Source{run.SourceEngine} })
		tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
		tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
			Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 1)}},
		}}})
		tell(t, r, run.Fact{Answer: &run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p"}}}}}})
		c, tree := runtest.Candidate(0, "fix"), runtest.Tree("fix")
		tell(t, r, run.Fact{Answer: &run.Answer{Validate: &run.ValidateAnswer{Accepted: []run.Candidate{c}}}})
		c.Tree = &tree
		tell(t, r, run.Fact{Answer: &run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{c}}}})
		var out run.TestAnswer
		for _, k := range kinds {
			out.Results = append(out.Results, run.TestResult{Candidate: c.Hash, Verdict: runtest.Verdict(k, tree.Hash, 1)})
		}
		tell(t, r, run.Fact{Answer: &run.Answer{Test: &out}})
		require.Equal(t, run.StatusPytestFail, r.State.Last().Status)
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, run.Approved.Exit())
	require.Equal(t, 2, run.NeedsHumanReview.Exit())
	require.Equal(t, 1, run.Failed.Exit())
	require.Equal(t, 1, run.Terminal("UNKNOWN").Exit())
}
