package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// attach is a client of another process.
func (b *bench) attach() *Bus {
	b.tb.Helper()
	c, err := Connect(b.tb.Context(), b.srv.URL(), "attached", zerolog.Nop(), nats.NoReconnect())
	require.NoError(b.tb, err)
	b.part(c.Close)
	return c
}

// TestFollowEndsWithTheServer: a follower hears at once that the owner is
// gone.
func TestFollowEndsWithTheServer(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{workers: healers(worker(run.Test, stuck(got)))})
	c := b.attach()
	id := b.submit("k")
	done, seen := make(chan error, 1), make(chan struct{}, 100)
	go func() {
		done <- c.Follow(context.Background(), id, func(run.Event, run.State) bool { seen <- struct{}{}; return true })
	}()
	recv(t, seen)
	recv(t, got)
	began := time.Now()
	b.srv.Stop()
	require.ErrorIs(t, recv(t, done), ErrLost)
	require.Less(t, time.Since(began), 3*time.Second)
	require.ErrorIs(t, c.Follow(context.Background(), id, nil), ErrLost)
	_, err := c.Submit(context.Background(), "local", "k2", wire.Heal{Dir: "/p"})
	require.ErrorIs(t, err, ErrLost)
}

// TestFollowWithoutHints: a follower that hears nothing looks for itself; every
// event comes once and in order.
func TestFollowWithoutHints(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	b := start(t, setup{workers: healers(worker(run.Test, gated(next)))})
	id := b.submit("k")
	deaf := b.connect("guardian") // its user may hear the end of runs alone
	events, done := make(chan int, 100), make(chan error, 1)
	go func() {
		done <- deaf.Follow(t.Context(), id, func(e run.Event, s run.State) bool { events <- e.N; return !s.Closed })
	}()
	for n := 1; n <= 3; n++ {
		require.Equal(t, n, recv(t, events))
	}
	next <- struct{}{}
	next <- struct{}{}
	require.NoError(t, recv(t, done))
	for n := 4; n <= len(approvedLog); n++ {
		require.Equal(t, n, recv(t, events))
	}
	require.Empty(t, events)
	require.ErrorContains(t, deaf.nc.LastError(), "permissions violation")
}

// gated answers as the test worker of an approved run, once for each value.
func gated(next <-chan struct{}) func(context.Context, Job) (run.Answer, error) {
	return func(ctx context.Context, j Job) (run.Answer, error) {
		select {
		case <-next:
		case <-ctx.Done():
		}
		return answers()[run.Test](j.Ask), ctx.Err()
	}
}

// TestFollowHearsAtOnce: hints make a follower see an event without waiting
// for its own look.
func TestFollowHearsAtOnce(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	b := start(t, setup{workers: healers(worker(run.Test, gated(next)))})
	id := b.submit("k")
	c := b.connect(RoleLocal)
	c.tune.pullBeat = time.Hour
	seen, done := make(chan int, 100), make(chan error, 1)
	go func() {
		done <- c.Follow(t.Context(), id, func(e run.Event, s run.State) bool { seen <- e.N; return !s.Closed })
	}()
	next <- struct{}{}
	next <- struct{}{}
	require.NoError(t, recv(t, done), "without a hint the next look is an hour away")
	require.Len(t, seen, len(approvedLog))
}

// TestFollowLeavesConsumersAlone: a client of role local follows, and cannot
// take a worker's consumer away or change it.
func TestFollowLeavesConsumersAlone(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{workers: healers(worker(run.Test, stuck(got)))})
	id := b.submit("k")
	recv(t, got)
	c := b.attach()
	require.NoError(t, c.Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return s.N < 2 }))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.Error(t, c.js.DeleteConsumer(ctx, streamRuns, "worker-test-"+home))
	_, err := b.core.js.Consumer(t.Context(), streamRuns, "worker-test-"+home)
	require.NoError(t, err)
	require.Empty(t, b.followers())
}

// followers lists the consumers that are no worker's.
func (b *bench) followers() []string {
	b.tb.Helper()
	s, err := b.core.stream(context.Background(), streamRuns)
	require.NoError(b.tb, err)
	var out []string
	list := s.ListConsumers(context.Background())
	for info := range list.Info() {
		if info.Config.Durable == "" {
			out = append(out, info.Name)
		}
	}
	require.NoError(b.tb, list.Err())
	return out
}

// TestFollowStops: the caller's end is the follower's end, and nothing stays
// behind on the server.
func TestFollowStops(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{workers: healers(worker(run.Test, stuck(got)))})
	id := b.submit("k")
	recv(t, got)
	c := b.attach()
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Follow(ctx, id, func(run.Event, run.State) bool { cancel(); return true })
	require.ErrorIs(t, err, context.Canceled)
	n := 0
	require.NoError(t, c.Follow(t.Context(), id, func(run.Event, run.State) bool { n++; return n < 2 }))
	require.Equal(t, 2, n)
	require.Empty(t, b.followers())
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Follow(short, wire.RunID("no", "such"), nil), context.DeadlineExceeded)
}
