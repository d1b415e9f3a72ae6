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

// TestFollowOutlivesAGap takes the server's consumer away in the middle: every
// event comes once and in order.
func TestFollowOutlivesAGap(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	next := make(chan struct{})
	b := start(t, setup{workers: healers(worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		select {
		case <-next:
		case <-ctx.Done():
		}
		return answers()[run.Test](j.Ask), ctx.Err()
	}))})
	id := b.submit("k")
	c := b.attach()
	events, done := make(chan int, 100), make(chan error, 1)
	go func() {
		done <- c.Follow(ctx, id, func(e run.Event, s run.State) bool { events <- e.N; return !s.Closed })
	}()
	for n := 1; n <= 3; n++ {
		require.Equal(t, n, recv(t, events))
	}
	for range 2 {
		b.dropFollowers()
	}
	next <- struct{}{}
	next <- struct{}{}
	require.NoError(t, recv(t, done))
	for n := 4; n <= len(approvedLog); n++ {
		require.Equal(t, n, recv(t, events))
	}
	require.Empty(t, events)
}

// dropFollowers deletes the consumers of all followers once there is one.
func (b *bench) dropFollowers() {
	b.tb.Helper()
	require.Eventually(b.tb, func() bool {
		dropped := false
		for _, name := range b.followers() {
			dropped = b.core.js.DeleteConsumer(context.Background(), streamRuns, name) == nil
		}
		return dropped
	}, patience, 5*time.Millisecond)
}

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
	require.Eventually(t, func() bool { return len(b.followers()) == 0 }, patience, 5*time.Millisecond)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Follow(short, wire.RunID("no", "such"), nil), context.DeadlineExceeded)
}
