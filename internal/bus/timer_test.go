package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// limited lets tasks in with other limits.
func limited(change func(*run.Limits)) func(string, wire.Heal) (run.Task, error) {
	return func(tenant string, h wire.Heal) (run.Task, error) {
		t, err := accept(tenant, h)
		change(&t.Limits)
		return t, err
	}
}

// flaky fails once with a failure that is tried again after a delay.
func flaky(name run.Worker) (Worker, chan Job) {
	got := make(chan Job, 10)
	failed := false
	return worker(name, func(_ context.Context, j Job) (run.Answer, error) {
		got <- j
		if !failed {
			failed = true
			return run.Answer{}, failure.New(failure.Connection, "test", errors.New("reset by peer"))
		}
		return answers()[name](j.Ask), nil
	}), got
}

func TestRetryTimer(t *testing.T) {
	t.Parallel()
	w, got := flaky(run.Test)
	b := start(t, setup{workers: healers(w), intake: hurried})
	id := b.submit("k")
	require.Zero(t, recv(t, got).Ask.Again)
	again := recv(t, got).Ask // of the retry
	require.Equal(t, 1, again.Again)
	require.Contains(t, again.Last, "reset by peer")
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
	require.Eventually(t, func() bool { return len(b.schedules()) == 0 }, patience, 5*time.Millisecond, "a closed run leaves no timer behind")
}

// schedules lists the timers that are set.
func (b *bench) schedules() []string {
	b.tb.Helper()
	s, err := b.core.stream(context.Background(), streamTimers)
	require.NoError(b.tb, err)
	info, err := s.Info(context.Background(), jetstream.WithSubjectFilter(wire.LaterSpace))
	require.NoError(b.tb, err)
	var out []string
	for subject := range info.State.Subjects {
		out = append(out, subject)
	}
	return out
}

// TestTimerSurvivesARestart: a timer that was set fires in the next process.
func TestTimerSurvivesARestart(t *testing.T) {
	t.Parallel()
	w, got := flaky(run.Test)
	b := start(t, setup{sync: true, workers: healers(w), intake: limited(func(l *run.Limits) { l.DelayScale = 0.3 })})
	id := b.submit("k")
	recv(t, got)
	b.until(id, func(_ run.Event, s run.State) bool { return s.Failed != nil })
	require.Eventually(t, func() bool { return len(b.schedules()) == 2 }, patience, 5*time.Millisecond)
	b.stop()
	b = start(t, setup{dir: b.set.dir, workers: healers(w)})
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestRecoverArmsTimers: what a crash left unarmed is armed by the next owner.
func TestRecoverArmsTimers(t *testing.T) {
	t.Parallel()
	w, got := flaky(run.Test)
	b := start(t, setup{workers: healers(w), intake: limited(func(l *run.Limits) { l.DelayScale = 0.3 })})
	id := b.submit("k")
	recv(t, got)
	b.until(id, func(_ run.Event, s run.State) bool { return s.Failed != nil })
	require.Eventually(t, func() bool { return len(b.schedules()) == 2 }, patience, 5*time.Millisecond)
	b.stop()
	b = start(t, setup{dir: b.set.dir, noConductor: true})
	require.NoError(t, b.core.disarm(t.Context(), id))
	require.Empty(t, b.schedules())
	c, err := NewConductor(b.core, ConductorConfig{Intake: anytime(accept)})
	require.NoError(t, err)
	require.NoError(t, c.Recover(t.Context(), id))
	require.Len(t, b.schedules(), 2)
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{
		workers: healers(worker(run.Debugger, stuck(got))),
		intake:  limited(func(l *run.Limits) { l.Seconds = 0.5 }),
	})
	s := b.finish(b.submit("k"))
	require.Equal(t, run.NeedsHumanReview, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "time limit")
}

// TestEarlyTimer: a timer that fires before its moment, by a clock that is
// ahead, is set again. Setting it for now replaces the schedule, so
// nothing else ends the run.
func TestEarlyTimer(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{
		workers: healers(worker(run.Debugger, stuck(got))),
		intake:  limited(func(l *run.Limits) { l.Seconds = 2 }),
	})
	id := b.submit("k")
	recv(t, got)
	require.NoError(t, b.core.arm(t.Context(), id, run.Timer{Name: run.TimerDeadline, At: time.Now()}))
	s := b.finish(id)
	require.Contains(t, s.Ended.Reason, "time limit")
	require.GreaterOrEqual(t, s.Stop.At.Sub(s.OpenedAt), 2*time.Second)
}
