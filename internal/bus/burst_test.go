package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
)

// One failure that nothing classifies is no news; the fifth within ten minutes
// is, once, also when each was recorded by another process.
func TestBurst(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	fails := worker(run.Snapshot, func(context.Context, Job) (run.Answer, error) {
		return run.Answer{}, errors.New("the frobnicator is out of cheese")
	})
	heard := make(chan Burst, 10)
	for i := 1; i <= burstSize+2; i++ {
		b := start(t, setup{dir: dir, workers: healers(fails)})
		listening, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.core.Bursts(listening, func(n Burst) { heard <- n })
		}()
		require.Eventually(t, func() bool { return b.core.nc.NumSubscriptions() > 0 }, patience, time.Millisecond)
		require.NoError(t, b.core.nc.Flush())
		id := b.submit(fmt.Sprint("run ", i))
		require.Equal(t, run.Failed, b.finish(id).Ended.State)
		last, err := b.core.LastBurst(ctx)
		require.NoError(t, err)
		if i < burstSize {
			require.True(t, last.At.IsZero(), "after %d", i)
		} else {
			require.Equal(t, burstSize, last.Count)
			require.Contains(t, last.Reason, "out of cheese")
		}
		if i == burstSize {
			require.Equal(t, id, last.Run)
			require.Equal(t, last, <-heard)
		}
		stop()
		<-done
		b.stop()
	}
	require.Empty(t, heard)
}

// Letters that are older, or of another kind, make no burst; the next one after
// a while does again.
func TestBurstCounts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	began := time.Now().UTC()
	n := 0
	bury := func(category failure.Category, at time.Duration, times int) time.Time {
		t.Helper()
		for range times {
			n++
			l := Letter{Category: string(category), Reason: "r", Run: fmt.Sprint("run", n), Ask: 1, At: began.Add(at)}
			require.NoError(t, b.core.bury(ctx, l))
			require.NoError(t, b.core.bury(ctx, l), "again changes nothing")
		}
		last, err := b.core.LastBurst(ctx)
		require.NoError(t, err)
		return last.At
	}
	require.Zero(t, bury(failure.Sandbox, 0, 2*burstSize))
	require.Zero(t, bury(failure.Unexpected, 0, burstSize-1))
	require.Zero(t, bury(failure.Unexpected, burstTime, burstSize-1))
	first := bury(failure.Unexpected, burstTime+time.Second, 1)
	require.Equal(t, began.Add(burstTime+time.Second), first)
	require.Equal(t, first, bury(failure.Unexpected, burstTime+time.Minute, burstSize))
	require.Equal(t, began.Add(3*burstTime), bury(failure.Unexpected, 3*burstTime, burstSize))
}
