package bus

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// stuck is a handler that tells of each ask and holds it until ctx ends.
func stuck(got chan Job) func(context.Context, Job) (run.Answer, error) {
	return func(ctx context.Context, j Job) (run.Answer, error) {
		got <- j
		<-ctx.Done()
		return run.Answer{}, ctx.Err()
	}
}

func answer(name run.Worker) func(context.Context, Job) (run.Answer, error) {
	f := answers()[name]
	return func(_ context.Context, j Job) (run.Answer, error) { return f(j.Ask), nil }
}

// except are healers without a worker of that name.
func except(name run.Worker) []Worker {
	return healers(Worker{Name: name})[1:]
}

func TestLostWorker(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Test), tune: quick})
	got := make(chan Job, 1)
	lost := b.work(worker(run.Test, stuck(got)))
	id := b.submit("k")
	recv(t, got)
	lost.bus.Close()
	require.ErrorIs(t, lost.wait(), ErrLost)
	b.work(worker(run.Test, answer(run.Test)))
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestDeadlyAsk: an ask that takes its worker down each time ends its run.
func TestDeadlyAsk(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Test), tune: quick})
	id := b.submit("k")
	var deaths atomic.Int32
	for over := false; !over; {
		got := make(chan Job, 1)
		w := b.work(worker(run.Test, stuck(got)))
		ended := make(chan struct{})
		go func() {
			b.finish(id)
			close(ended)
		}()
		for waiting := true; waiting; {
			select {
			case <-got:
				deaths.Add(1)
				w.bus.Close()
				require.ErrorIs(t, w.wait(), ErrLost)
				waiting = false
			case <-ended:
				waiting, over = false, true
			}
		}
	}
	s := b.finish(id)
	require.Equal(t, run.Failed, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "5 workers were lost")
	// The first try counts when the ask is older than the worker.
	require.GreaterOrEqual(t, int(deaths.Load()), tuned().maxTries)
	require.LessOrEqual(t, int(deaths.Load()), tuned().maxTries+1)
	l := b.letter("", func(l Letter) bool { return l.Category == "lost" })
	require.Equal(t, id, l.Run)
	require.Equal(t, "test", l.Worker)
}

// TestMaxDeliver: the server's own guard says the same when a worker does not
// count.
func TestMaxDeliver(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Test), tune: func(t *tuning) { quick(t); t.maxDeliver = 2; t.ackWait = 100 * time.Millisecond }})
	require.NoError(t, b.core.ProvisionWorker(t.Context(), worker(run.Test, nil)))
	cons, err := b.core.js.Consumer(t.Context(), streamRuns, "worker-test-"+home)
	require.NoError(t, err)
	it, err := cons.Messages(jetstream.PullMaxMessages(1))
	require.NoError(t, err)
	defer it.Stop()
	id := b.submit("k")
	for range 2 {
		_, err := it.Next(jetstream.NextMaxWait(patience)) // never acknowledged
		require.NoError(t, err)
	}
	none := make(chan error, 1)
	go func() {
		_, err := it.Next()
		none <- err
	}()
	s := b.finish(id)
	it.Stop()
	require.ErrorIs(t, recv(t, none), jetstream.ErrMsgIteratorClosed)
	require.Equal(t, run.Failed, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "workers were lost")
}

// TestShutdownCostsNothing: work that is given back by an orderly shutdown is
// taken up at once, however often that happens.
func TestShutdownCostsNothing(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Test)}) // with the real AckWait of 15 s
	id := b.submit("k")
	began := time.Now()
	for range 2 * (tuned().maxTries + 1) {
		got := make(chan Job, 1)
		w := b.work(worker(run.Test, stuck(got)))
		recv(t, got)
		require.NoError(t, w.halt())
	}
	require.Less(t, time.Since(began), tuned().ackWait)
	b.work(worker(run.Test, answer(run.Test)))
	s := b.finish(id)
	require.Equal(t, run.Approved, s.Ended.State)
	require.Empty(t, s.Failures)
}

// TestShutdownKeepsAnAnswer: what is done when the process stops is stated.
func TestShutdownKeepsAnAnswer(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Test)})
	got := make(chan Job, 1)
	w := b.work(worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		got <- j
		<-ctx.Done()
		return answers()[run.Test](j.Ask), nil
	}))
	id := b.submit("k")
	n := recv(t, got).N
	require.NoError(t, w.halt())
	b.until(id, func(_ run.Event, s run.State) bool { return s.N > n && !s.Waits(n) })
}

// TestHeartbeat: a handler that is slower than AckWait is not called twice.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	slow := worker(run.Snapshot, func(ctx context.Context, j Job) (run.Answer, error) {
		calls.Add(1)
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
			return run.Answer{}, ctx.Err()
		}
		return answers()[run.Snapshot](j.Ask), nil
	})
	slow.Slots = 3
	b := start(t, setup{workers: healers(slow), tune: quick})
	require.Equal(t, run.Approved, b.finish(b.submit("k")).Ended.State)
	require.EqualValues(t, 1, calls.Load())
}

func TestPanic(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(worker(run.Apply, func(context.Context, Job) (run.Answer, error) { panic("ouch") }))})
	s := b.finish(b.submit("k"))
	require.Equal(t, run.Failed, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "ouch")
	require.Equal(t, "t0", s.Settled.After)
	l := b.letter("", func(l Letter) bool { return l.Run == s.ID })
	require.Equal(t, "unexpected", l.Category)
}

// TestCap: an attempt that takes too long is a timeout, which is tried again.
func TestCap(t *testing.T) {
	t.Parallel()
	first := true
	w := worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		if first {
			first = false
			<-ctx.Done()
			return run.Answer{}, ctx.Err()
		}
		return answers()[run.Test](j.Ask), nil
	})
	w.Cap = 50 * time.Millisecond
	b := start(t, setup{workers: healers(w), intake: hurried})
	id := b.submit("k")
	s := b.until(id, func(_ run.Event, s run.State) bool { return s.Failed != nil })
	require.Equal(t, string(failure.Timeout), s.Failed.Failure.Category)
	require.Contains(t, s.Failed.Failure.Message, "50ms")
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestNoProgress: a handler that does not move on as it promised loses its ask
// before its cap, and one that does keeps it.
func TestNoProgress(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w := worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		if calls.Add(1) > 1 {
			for range 4 {
				j.Progress(patience)
			}
			return answers()[run.Test](j.Ask), nil
		}
		j.Progress(time.Millisecond)
		<-ctx.Done()
		return run.Answer{}, ctx.Err()
	})
	b := start(t, setup{workers: healers(w), intake: hurried, tune: quick})
	id := b.submit("k")
	s := b.until(id, func(_ run.Event, s run.State) bool { return s.Failed != nil })
	require.Equal(t, string(failure.Timeout), s.Failed.Failure.Category)
	require.Contains(t, s.Failed.Failure.Message, "no progress")
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

func TestPulse(t *testing.T) {
	t.Parallel()
	var p pulse
	now := time.Now()
	require.False(t, p.stopped(now.Add(time.Hour)), "nothing was promised")
	p.extend(now, time.Minute)
	p.extend(now, time.Second)
	require.False(t, p.stopped(now.Add(30*time.Second)), "the most patient one counts")
	require.True(t, p.stopped(now.Add(2*time.Minute)))
	p.extend(now.Add(2*time.Minute), time.Second)
	require.False(t, p.stopped(now.Add(2*time.Minute)))
	Job{}.Progress(time.Second)
}

// hurried lets tasks in whose delays are a thousandth.
func hurried(tenant string, h wire.Heal) (run.Task, error) {
	t, err := accept(tenant, h)
	t.Limits.DelayScale = 0.001
	return t, err
}

// TestCancel: the end of a run cuts the work on it at once, and its report
// and rollback still run.
func TestCancel(t *testing.T) {
	t.Parallel()
	got, cut := make(chan Job, 1), make(chan error, 1)
	b := start(t, setup{workers: healers(worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		got <- j
		<-ctx.Done()
		cut <- context.Cause(ctx)
		return run.Answer{}, ctx.Err()
	}))})
	id := b.submit("k")
	recv(t, got)
	local := b.connect(RoleLocal)
	began := time.Now()
	require.NoError(t, local.Order(t.Context(), id, run.Order{Kind: run.OrderCancel, Reason: "enough"}))
	require.ErrorIs(t, recv(t, cut), errRunEnded)
	require.Less(t, time.Since(began), tuned().heartbeat)
	s := b.finish(id)
	require.Equal(t, "enough", s.Ended.Reason)
	require.Equal(t, run.NeedsHumanReview, s.Settled.State)
	require.Empty(t, s.Failures)
}

// TestForgedEnd: an end that is announced and not in the log cuts nothing.
func TestForgedEnd(t *testing.T) {
	t.Parallel()
	got, next := make(chan Job, 1), make(chan struct{})
	b := start(t, setup{workers: healers(worker(run.Test, func(ctx context.Context, j Job) (run.Answer, error) {
		select {
		case got <- j:
		default:
			return answers()[run.Test](j.Ask), nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return run.Answer{}, context.Cause(ctx)
		}
		return answers()[run.Test](j.Ask), nil
	}))})
	end := wire.EventSubject(wire.RunID("local", "key", "k"), "ended", 4)
	ears := func() int {
		subs, err := b.srv.ns.Subsz(&server.SubszOptions{Subscriptions: true, Test: end})
		require.NoError(t, err)
		return subs.Total
	}
	before := ears()
	id := b.submit("k")
	j := recv(t, got)
	require.Eventually(t, func() bool { return ears() > before }, patience, time.Millisecond, "the worker listens")
	// The server routes it before it refuses to store it.
	_, err := b.core.js.Publish(t.Context(), end, []byte("{}"), jetstream.WithExpectLastSequence(7777))
	require.Error(t, err)
	require.False(t, b.core.awaitEnd(t.Context(), j))
	close(next)
	got <- j
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestCancelBeforeTheTask: an order that overtakes its task waits for it.
func TestCancelBeforeTheTask(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 2)
	b := start(t, setup{workers: healers(worker(run.Test, stuck(got))), noConductor: true})
	id := wire.RunID("local", "key", "k")
	require.NoError(t, b.core.Order(t.Context(), id, run.Order{Kind: run.OrderCancel, Reason: "never mind"}))
	b.conduct(b.core)
	b.submit("other")
	recv(t, got) // the conductor is well past the order
	require.Equal(t, id, b.submit("k"))
	require.Equal(t, "never mind", b.finish(id).Ended.Reason)
}

// TestOtherHome: asks for other homes are left to them.
func TestOtherHome(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Deliver)})
	elsewhere := worker(run.Deliver, func(context.Context, Job) (run.Answer, error) { return run.Answer{}, errTest })
	elsewhere.Home = "elsewhere"
	b.work(elsewhere)
	id := b.submit("k")
	b.until(id, func(_ run.Event, s run.State) bool { return len(s.Pending) > 0 && s.Ruling != nil })
	require.Eventually(t, func() bool {
		cons, err := b.core.js.Consumer(context.Background(), streamRuns, elsewhere.durable())
		return err == nil && cons.CachedInfo().AckFloor.Stream > 0
	}, patience, 5*time.Millisecond)
	b.work(worker(run.Deliver, answer(run.Deliver)))
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestForeignOutcomes: an outcome by the wrong worker, for no ask, for an
// unknown run, late or twice changes nothing.
func TestForeignOutcomes(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: except(run.Deliver)})
	id := b.submit("k")
	s := b.until(id, func(_ run.Event, s run.State) bool { return s.Ruling != nil })
	n := s.N
	require.True(t, s.Waits(n))
	bad := wire.Outcome{Failure: &run.Failure{Category: "unexpected", Message: "forged"}}
	good := answers()[run.Snapshot](run.Ask{})
	for _, o := range []struct {
		by, run string
		n       int
		o       wire.Outcome
	}{
		{"test", id, n, bad},
		{"deliver", id, n + 5, bad},
		{"deliver", strings.Repeat("c", 26), n, bad},
		{"snapshot", id, 2, wire.Outcome{Answer: &good}},
		{"snapshot", id, 2, bad},
	} {
		body, err := wire.EncodeOutcome(o.o)
		require.NoError(t, err)
		_, err = b.core.js.Publish(t.Context(), wire.OutcomeSubject(o.by, o.run, o.n), body)
		require.NoError(t, err)
	}
	b.work(worker(run.Deliver, answer(run.Deliver)))
	s = b.finish(id)
	require.Equal(t, run.Approved, s.Ended.State)
	require.Empty(t, s.Failures)
	require.Equal(t, n+3, s.N) // ended, settled, closed
}

// TestLargeAnswer: what the bus cannot carry is a failure, not a run that
// waits for ever.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	size := maxOutcome + 1
	b := start(t, setup{workers: healers(worker(run.Debugger, func(context.Context, Job) (run.Answer, error) {
		return run.Answer{Debug: &run.DebugAnswer{Reason: strings.Repeat("x", size)}}, nil
	}))})
	s := b.finish(b.submit("outcome"))
	require.Equal(t, run.Failed, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "the limit is")
}

// TestLargeError: a failure keeps its category, whatever its text quotes.
func TestLargeError(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(worker(run.Debugger, func(context.Context, Job) (run.Answer, error) {
		return run.Answer{}, failure.New(failure.PatchApply, "op", errors.New(strings.Repeat("é", maxOutcome)))
	}))})
	s := b.finish(b.submit("error"))
	require.Equal(t, run.NeedsHumanReview, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "patch_apply")
}

// TestLargeEvent: an answer that is quoted in the next ask may make an event
// that is larger than itself.
func TestLargeEvent(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(worker(run.Test, func(_ context.Context, j Job) (run.Answer, error) {
		a := answers()[run.Test](j.Ask)
		for range 8310 {
			a.Test.Results[0].Verdict.Failed = append(a.Test.Results[0].Verdict.Failed, strings.Repeat("p", 60))
		}
		return a, nil
	}))})
	s := b.finish(b.submit("event"))
	require.Equal(t, run.Failed, s.Ended.State)
	require.Contains(t, s.Ended.Reason, "leads to an event")
}

// TestStopWhileIdle: an idle worker stops at once and leaves nothing behind.
func TestStopWhileIdle(t *testing.T) {
	t.Parallel()
	b := start(t, setup{noConductor: true})
	closed := false
	w := worker(run.Test, answer(run.Test))
	w.Close = func() error { closed = true; return errTest }
	r := b.work(w)
	began := time.Now()
	require.ErrorIs(t, r.halt(), errTest)
	require.True(t, closed)
	require.Less(t, time.Since(began), time.Second)
}

// TestIdleWorkerWakesUp: the pull of an idle worker is renewed, so an ask that
// comes after many quiet seconds is taken at once.
func TestIdleWorkerWakesUp(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 1)
	b := start(t, setup{
		tune:    func(t *tuning) { t.pullExpiry, t.pullBeat = time.Second, 500*time.Millisecond },
		workers: []Worker{worker(run.Snapshot, stuck(got))},
	})
	select {
	case <-time.After(2500 * time.Millisecond): // the quiet is what is tested
	case <-got:
		require.Fail(t, "an ask out of nothing")
	}
	began := time.Now()
	b.submit("k")
	recv(t, got)
	require.Less(t, time.Since(began), tuned().pullExpiry/2)
}

func TestOutcomeOfErrors(t *testing.T) {
	t.Parallel()
	o := outcomeOf(Worker{Name: run.Snapshot}, run.Answer{}, &BadInput{errors.New("no such folder")})
	require.True(t, o.Failure.BadInput)
	require.Equal(t, "no such folder", o.Failure.Message)
}
