package node

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// TestUntilStuck: the log of a run that was interrupted long ago begins with
// states that are overdue; the order to go on comes only after them.
func TestUntilStuck(t *testing.T) {
	t.Parallel()
	now := time.Now()
	opened := func(ago time.Duration) run.State {
		return run.State{OpenedAt: now.Add(-ago), Task: run.Task{Limits: run.DefaultLimits()}}
	}
	require.Equal(t, replayTime, untilStuck(opened(24*time.Hour), now))
	limit := time.Duration(run.DefaultLimits().Seconds * float64(time.Second))
	require.Equal(t, limit+3*time.Minute, untilStuck(opened(0), now))
	settled := opened(24 * time.Hour)
	settled.Settled = &run.Settled{}
	require.Equal(t, time.Duration(math.MaxInt64), untilStuck(settled, now))
}
