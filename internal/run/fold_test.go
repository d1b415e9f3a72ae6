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

// applied3 is a run whose three candidates of the first attempt wait for the test.
func applied3(t *testing.T) (*runtest.Run, []run.Candidate) {
	t.Helper()
	r := opened(t, nil)
	tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
		Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 5)}},
	}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: "p"}}}}}})
	cs := []run.Candidate{runtest.Candidate(0, "A"), runtest.Candidate(1, "B"), runtest.Candidate(2, "C")}
	tell(t, r, run.Fact{Answer: &run.Answer{Validate: &run.ValidateAnswer{Accepted: cs}}})
	for i := range cs {
		tree := runtest.Tree(cs[i].Note)
		cs[i].Tree = &tree
	}
	tell(t, r, run.Fact{Answer: &run.Answer{Apply: &run.ApplyAnswer{Candidates: cs}}})
	return r, cs
}

// Two verdicts on one candidate that disagree are no approval.
func TestOfTwoVerdictsTheRedOneCounts(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][2]run.VerdictKind{
		{run.VerdictPassed, run.VerdictFailed}, {run.VerdictFailed, run.VerdictPassed},
	} {
		r, cs := applied3(t)
		var out run.TestAnswer
		for _, k := range kinds {
			out.Results = append(out.Results, run.TestResult{Candidate: cs[0].Hash, Verdict: runtest.Verdict(k, cs[0].Tree.Hash, 1)})
		}
		tell(t, r, run.Fact{Answer: &run.Answer{Test: &out}})
		require.Equal(t, run.StatusPytestFail, r.State.Attempts[0].Status)
	}
}

// The next base breaks nothing that was green, has the fewest red tests, and
// the lowest rank; a test that is not reported any more is not green.
func TestTheNextBase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts [3]run.Counts
		base   string
	}{
		"fewest red":                {[3]run.Counts{{Failed: 3}, {Failed: 2}, {Failed: 4}}, "tree-B"},
		"lowest rank":               {[3]run.Counts{{Failed: 2}, {Failed: 2}, {Failed: 2}}, "tree-A"},
		"nothing newly red":         {[3]run.Counts{{Failed: 1, Broken: 1}, {Failed: 4}, {Failed: 5}}, "tree-B"},
		"a new test is red":         {[3]run.Counts{{Failed: 1, New: 1}, {Failed: 4}, {Failed: 5}}, "tree-B"},
		"nothing missing":           {[3]run.Counts{{Failed: 1, Missing: 9}, {Failed: 1, Broken: 1}, {Failed: 5}}, "tree-C"},
		"missing counts as red":     {[3]run.Counts{{Failed: 1, Missing: 9}, {Failed: 2, Missing: 2}, {Failed: 3, Broken: 3}}, "tree-C"},
		"missing counts as red too": {[3]run.Counts{{Failed: 1, Missing: 9}, {Failed: 2, Missing: 2}, {Failed: 5, Broken: 3}}, "tree-B"},
	} {
		r, cs := applied3(t)
		var out run.TestAnswer
		for i, counts := range c.counts {
			v := runtest.Verdict(run.VerdictFailed, cs[i].Tree.Hash, 0)
			v.Counts = counts
			out.Results = append(out.Results, run.TestResult{Rank: i, Candidate: cs[i].Hash, Verdict: v})
		}
		tell(t, r, run.Fact{Answer: &run.Answer{Test: &out}})
		require.Equal(t, c.base, r.State.Base.Hash, name)
		require.Equal(t, c.base, r.State.Evidence.Tree, name)
	}
}

// A request quotes at most twenty refusals, the newest.
func TestRefusalsInARequestAreBounded(t *testing.T) {
	t.Parallel()
	r := opened(t, func(task *run.Task) {
		task.Sources, task.Limits.DebugAttempts = []run.Source{run.SourceModel}, 50
	})
	tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
		Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 1)}},
	}}})
	for i := range 25 {
		name := string(rune('a' + i))
		tell(t, r, run.Fact{Answer: &run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{Text: run.Ref{SHA256: name}}}}}})
		tell(t, r, run.Fact{Answer: &run.Answer{Validate: &run.ValidateAnswer{
			Rejected: []run.Rejection{{Gate: "tamper", Reason: name, Status: run.StatusGateFail}},
		}}})
	}
	_, ask := r.Pending()
	require.Len(t, ask.Debug.Rejected, 20)
	require.Equal(t, "y", ask.Debug.Rejected[19].Reason)
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, run.Approved.Exit())
	require.Equal(t, 2, run.NeedsHumanReview.Exit())
	require.Equal(t, 1, run.Failed.Exit())
	require.Equal(t, 1, run.Running.Exit())
}

// A log that skipped a reviewer, whoever wrote it, leads to no approval.
func TestADeliveryThatNobodyAllowedIsNoApproval(t *testing.T) {
	t.Parallel()
	for _, skipped := range []run.By{"guardian", "policy"} {
		skip := func(run.Fact) *run.Fact { return nil }
		object := func(f run.Fact) *run.Fact {
			word := *f.Answer.Review
			word.Word = run.WordReject
			f.Answer = &run.Answer{Review: &word}
			return &f
		}
		for name, change := range map[string]func(run.Fact) *run.Fact{"without": skip, "against": object} {
			end := endOfHeal(t, skipped, change)
			require.Equal(t, run.NeedsHumanReview, end.State, "%s %s", name, skipped)
		}
	}
}

// endOfHeal is the end of an approved run whose log has other facts by one
// worker.
func endOfHeal(t *testing.T, by run.By, change func(run.Fact) *run.Fact) run.Ended {
	t.Helper()
	r := scenarioRuns(t, "heal")[0]
	s := run.State{ID: r.ID}
	for _, e := range r.Log {
		if _, ok := e.Command.(run.Ended); ok {
			return decided(t, run.FoldFact(s, *e.Fact))
		}
		if e.Fact != nil && e.Fact.By == by {
			e.Fact = change(*e.Fact)
		}
		var err error
		s, err = run.Fold(s, e)
		require.NoError(t, err)
	}
	return run.Ended{}
}

func decided(t *testing.T, s run.State) run.Ended {
	t.Helper()
	s.Pending = nil // the ask of the step that was skipped
	cmds := run.Decide(s)
	require.Len(t, cmds, 1)
	end, ok := cmds[0].(run.Ended)
	require.True(t, ok, "%T", cmds[0])
	return end
}

// States that grew from one state do not share what they added.
func TestStatesDoNotShareTheirAttempts(t *testing.T) {
	t.Parallel()
	for _, s := range states(t) {
		ask := func(feedback string) run.State {
			next, err := run.Fold(s, run.Event{N: s.N + 1, Decider: 1, Command: run.Ask{
				Worker: run.Debugger, Debug: &run.DebugInput{Attempt: len(s.Attempts) + 1, Feedback: feedback},
			}})
			require.NoError(t, err)
			return next
		}
		one := ask("one")
		before := text(one)
		ask("another")
		require.Equal(t, before, text(one))
	}
}

// A worker that counts backwards gives no call back.
func TestCallsAreNeverGivenBack(t *testing.T) {
	t.Parallel()
	calls := 1
	r := opened(t, func(task *run.Task) { task.Limits.ModelCalls = &calls })
	tell(t, r, run.Fact{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}})
	tell(t, r, run.Fact{Answer: &run.Answer{Test: &run.TestAnswer{
		Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "tree-origin", 1)}},
	}}})
	tell(t, r, run.Fact{Failure: &run.Failure{Category: "invalid_output", Message: "cut off", Calls: -5}})
	tell(t, r, run.Fact{Answer: &run.Answer{Debug: &run.DebugAnswer{Calls: -5, PromptTokens: -1, AnswerTokens: -1}}})
	require.Zero(t, r.State.Calls)
	require.Zero(t, r.State.PromptTokens+r.State.AnswerTokens)
}
