package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// What is left of a run whose removal was cut short is no run, and removing it
// again takes it away; every other run stays as it is.
func TestRemoveRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers()})
	gone, stays := b.submit("gone"), b.submit("stays")
	b.finish(gone)
	b.finish(stays)
	before := b.log(stays)
	old, err := b.core.ClosedBefore(ctx, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 2, old)
	old, err = b.core.ClosedBefore(ctx, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Zero(t, old)

	require.NoError(t, b.core.purge(ctx, streamRuns, gone, wire.NameOf(gone, run.Opened{}.Name())))
	runs, err := b.core.Runs(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{stays: true}, runs)
	places := map[string]int{}
	count := func(tr Trace) error { places[tr.Run]++; return nil }
	require.NoError(t, b.core.Traces(ctx, count, InRuns))
	require.Positive(t, places[gone])

	require.NoError(t, b.core.RemoveRun(ctx, gone))
	require.NoError(t, b.core.RemoveRun(ctx, gone), "again")
	clear(places)
	require.NoError(t, b.core.Traces(ctx, count))
	require.Equal(t, map[string]int{stays: len(before.Events)}, places)
	require.Equal(t, before, b.log(stays))
	for _, id := range []string{"", "*", ">", gone + ".*"} {
		require.Error(t, b.core.RemoveRun(ctx, id), id)
	}
	require.Equal(t, before, b.log(stays))
}

// A removed blob is gone for readers at once and may be put again; chunks that
// nothing describes are found.
func TestRemoveArtifact(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	a := b.core.Artifacts()
	large, err := a.Put(ctx, make([]byte, 2*maxChunk+1))
	require.NoError(t, err)
	small, err := a.Put(ctx, []byte("small"))
	require.NoError(t, err)
	_, err = b.core.publish(ctx, &nats.Msg{Subject: chunkSubject("torn"), Data: []byte("x")})
	require.NoError(t, err)

	all, loose, err := a.List(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"torn"}, loose)
	require.Len(t, all, 2)
	require.Equal(t, large.Size, all[large.SHA256].Size)
	require.NoError(t, a.RemoveLoose(ctx, "torn"))
	require.NoError(t, a.Remove(ctx, large.SHA256, all[large.SHA256]))
	_, err = a.Get(ctx, large.SHA256)
	require.ErrorIs(t, err, ErrNoArtifact)
	require.True(t, Gone(err))
	left, loose, err := a.List(ctx)
	require.NoError(t, err)
	require.Empty(t, loose)
	require.Len(t, left, 1)
	data, err := a.Get(ctx, small.SHA256)
	require.NoError(t, err)
	require.Equal(t, "small", string(data))
	again, err := a.Put(ctx, make([]byte, 2*maxChunk+1))
	require.NoError(t, err)
	require.Equal(t, large, again)
	_, err = a.Get(ctx, large.SHA256)
	require.NoError(t, err)
}
