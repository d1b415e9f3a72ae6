package run_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

func TestVerifyFindsWhatWasChanged(t *testing.T) {
	t.Parallel()
	r := scenarioRuns(t, "heal")[0]
	diffs, err := run.Verify(r.ID, r.Log)
	require.NoError(t, err)
	require.Empty(t, diffs)

	at := slices.IndexFunc(r.Log, func(e run.Event) bool { return e.Command.Name() == "guardian" })
	for name, change := range map[string]func(*run.Event){
		"the input of an ask": func(e *run.Event) {
			ask := e.Command.(run.Ask)
			in := *ask.Review
			in.Candidate.Hash = "another"
			ask.Review = &in
			e.Command = ask
		},
		"another step":   func(e *run.Event) { e.Command = run.Result{} },
		"no fact":        func(e *run.Event) { e.Fact = nil },
		"another answer": func(e *run.Event) { f := *e.Fact; f.Answer = nil; e.Fact = &f },
	} {
		log := slices.Clone(r.Log[:at+1])
		change(&log[at])
		diffs, err := run.Verify(r.ID, log)
		require.NoError(t, err, name)
		require.Len(t, diffs, 1, name)
		require.Equal(t, at+1, diffs[0].N)
		require.True(t, diffs[0].Corrupt())
		require.Contains(t, diffs[0].String(), "not what this version decided")
	}
}

// What another version decided is a differing decision, and the rest of the
// log is judged from the state that the log really led to.
func TestVerifyKnowsOtherVersions(t *testing.T) {
	t.Parallel()
	r := scenarioRuns(t, "heal")[0]
	log := slices.Clone(r.Log)
	for i := range log {
		log[i].Decider = run.Decider + 1
	}
	ended := slices.IndexFunc(log, func(e run.Event) bool { return e.Command.Name() == "ended" })
	log[ended].Command = run.Ended{State: run.Approved, Reason: "in other words"}
	diffs, err := run.Verify(r.ID, log)
	require.NoError(t, err)
	require.Len(t, diffs, 1)
	require.False(t, diffs[0].Corrupt())
	require.Equal(t,
		"event 11 (decider 2, this is 1): the log has ended, now decided: ended: a differing decision", diffs[0].String())
}

// An event that nothing called for is one, even at the end of a log.
func TestVerifyFindsAnEventWithoutAReason(t *testing.T) {
	t.Parallel()
	r := scenarioRuns(t, "heal")[0]
	log := append(slices.Clone(r.Log[:2]), run.Event{N: 3, Decider: 1, Command: run.Cancelling{Reason: "?"}})
	diffs, err := run.Verify(r.ID, log)
	require.NoError(t, err)
	require.Len(t, diffs, 1)
	require.Nil(t, diffs[0].Decided)
	require.Contains(t, diffs[0].String(), "now decided: nothing")
}

// A timer has an event of its own, whatever follows from it.
func TestVerifyWantsTimersRecorded(t *testing.T) {
	t.Parallel()
	r := opened(t, nil)
	fired, err := r.Fire(run.TimerDeadline)
	require.NoError(t, err)
	require.True(t, fired)
	log := slices.Clone(r.Log)
	log[2].Command = log[3].Command
	diffs, err := run.Verify(r.ID, log[:3])
	require.NoError(t, err)
	require.Len(t, diffs, 1)
	require.Equal(t, run.Due{}, diffs[0].Decided)
}
