package run_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

func TestASummaryTellsWhatTheLogTells(t *testing.T) {
	t.Parallel()
	approved := run.Summarise(scenarioRuns(t, "heal")[0].State)
	require.Equal(t, run.Approved, approved.State)
	require.Equal(t, 0, approved.Status())
	require.Equal(t, []string{"calc.py"}, approved.Files)
	require.Equal(t, run.DeliverApply, approved.Delivered)
	require.Equal(t, [2]string{"tree-origin", "tree-fix"}, [2]string{approved.BaseTree, approved.FinalTree})
	require.True(t, approved.Proven)
	require.Equal(t, "closed", approved.Step)
	require.Equal(t, run.StatusPytestPass, approved.Tries[0].Status)

	refused := scenarioRuns(t, "refused")[1].State
	sum := run.Summarise(refused)
	require.Equal(t, run.NeedsHumanReview, sum.State)
	require.Equal(t, 2, sum.Status())
	require.Equal(t, "prose", sum.Tries[0].Gate)
	require.Empty(t, sum.Delivered)

	unproven := run.Summarise(scenarioRuns(t, "end")[1].State)
	require.False(t, unproven.Proven)
	require.Contains(t, unproven.Reason, "rollback: four")

	for _, s := range states(t) {
		require.NotEmpty(t, s.Step())
		if s.Ended != nil && s.Settled == nil {
			want := map[bool]string{true: "settling", false: "rollback"}[s.Ended.State == run.Approved]
			require.Equal(t, want, s.Step(), "an approved run is not taken back")
		}
		if s.Ended == nil {
			want := map[bool]run.Terminal{true: run.Waiting, false: run.Running}[s.Parked]
			require.Equal(t, want, run.Summarise(s).State)
		}
	}
}

// A run that has not ended has no exit status to show; the command line, which
// must exit with one, fails.
func TestNoExitBeforeTheEnd(t *testing.T) {
	t.Parallel()
	sum := run.Summarise(run.State{})
	require.Equal(t, 1, sum.Status())
	text, err := json.Marshal(sum)
	require.NoError(t, err)
	require.NotContains(t, string(text), `"exit"`)
	text, err = json.Marshal(run.Summarise(run.State{Ended: &run.Ended{State: run.Approved}}))
	require.NoError(t, err)
	require.Contains(t, string(text), `"exit":0`)
}
