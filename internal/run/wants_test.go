package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// A person looks at what nobody could heal, and at every folder that is not
// known to be as it was; not at what was cancelled or could not be asked.
func TestWhoWantsAPerson(t *testing.T) {
	t.Parallel()
	proven := &run.Settled{Proven: true}
	ended := func(s run.Terminal) *run.Ended { return &run.Ended{State: s} }
	by := func(who run.By) *run.Stop { return &run.Stop{By: who} }
	for name, c := range map[string]struct {
		state run.State
		wants bool
	}{
		"under way":              {run.State{}, false},
		"approved":               {run.State{Ended: ended(run.Approved), Settled: proven}, false},
		"no fix":                 {run.State{Ended: ended(run.NeedsHumanReview), Settled: proven}, true},
		"broke":                  {run.State{Ended: ended(run.Failed), Settled: proven}, true},
		"time is up":             {run.State{Ended: ended(run.NeedsHumanReview), Settled: proven, Stop: by(run.ByClock)}, true},
		"cancelled":              {run.State{Ended: ended(run.NeedsHumanReview), Settled: proven, Stop: by(run.ByOperator)}, false},
		"cancelled, not settled": {run.State{Ended: ended(run.NeedsHumanReview), Stop: by(run.ByOperator)}, true},
		"cancelled, unproven":    {run.State{Ended: ended(run.NeedsHumanReview), Settled: &run.Settled{}, Stop: by(run.ByOperator)}, true},
		"cancelled, conflict": {
			run.State{Ended: ended(run.NeedsHumanReview), Settled: &run.Settled{Proven: true, Conflicts: []string{"a"}}, Stop: by(run.ByOperator)}, true,
		},
		"bad input":           {run.State{Ended: ended(run.Failed), Settled: proven, BadInput: true}, false},
		"bad input, unproven": {run.State{Ended: ended(run.Failed), Settled: &run.Settled{}, BadInput: true}, true},
	} {
		require.Equal(t, c.wants, c.state.WantsPerson(), name)
	}
}
