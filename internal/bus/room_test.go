package bus

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// TestFullLog: above four fifths no task is taken, while runs under way end.
func TestFullLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	next := make(chan struct{})
	b := start(t, setup{
		tune: quick, provision: []ProvisionOption{RunsBytes(2 << 20)},
		workers: healers(worker(run.Deliver, func(ctx context.Context, j Job) (run.Answer, error) {
			select {
			case <-next:
			case <-ctx.Done():
			}
			return answers()[run.Deliver](j.Ask), ctx.Err()
		})),
	})
	under := b.submit("under way")
	b.until(under, func(_ run.Event, s run.State) bool { return s.Ruling != nil })
	for i := range 8 {
		_, err := b.core.js.Publish(ctx, fmt.Sprint("nexus.run.result.x.", i), make([]byte, 220<<10))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		full, err := b.core.Full(context.Background())
		return err == nil && full
	}, patience, 5*time.Millisecond)
	_, err := b.core.Submit(ctx, "local", "refused", wire.Heal{Dir: "/p"})
	require.ErrorIs(t, err, ErrFull)

	require.NoError(t, b.stranger().Publish("nexus.task.local.heal", []byte(`{"dir":"/p"}`)))
	next <- struct{}{}
	require.Equal(t, run.Approved, b.finish(under).Ended.State)
	runs, err := b.core.Runs(ctx)
	require.NoError(t, err)
	require.Len(t, runs, 1, "the stranger's task waits")
	require.Eventually(t, func() bool {
		usages, err := b.core.Usages(context.Background())
		return err == nil && usages[0].MaxBytes == 2<<20 && usages[1].Messages == 1
	}, patience, 5*time.Millisecond)

	s, err := b.core.stream(ctx, streamRuns)
	require.NoError(t, err)
	require.NoError(t, s.Purge(ctx, jetstream.WithPurgeSubject("nexus.run.result.x.*")))
	require.Eventually(t, func() bool {
		runs, err := b.core.Runs(context.Background())
		return err == nil && len(runs) == 2
	}, patience, 5*time.Millisecond)
	next <- struct{}{}
	close(next)
	b.finish(b.submit("welcome"))
}
