package bus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// names are the events of a log.
func names(l Log) []string {
	var out []string
	for _, e := range l.Events {
		out = append(out, e.Command.Name())
	}
	return out
}

// approvedLog is the log of a run that healers take to its end.
var approvedLog = []string{
	"opened", "snapshot", "test", "debugger", "validate", "apply", "test", "guardian", "policy", "deliver",
	"ended", "settled", "closed",
}

// TestTwoConductors: several conductors on one bus have no double effect.
func TestTwoConductors(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()}) // with the real AckWait: nothing waits for it
	for range 2 {
		b.conduct(b.connect(roleCore))
	}
	began := time.Now()
	var ids []string
	for i := range 12 {
		ids = append(ids, b.submit(fmt.Sprint("k", i)))
	}
	for _, id := range ids {
		require.Equal(t, run.Approved, b.finish(id).Ended.State)
		require.Equal(t, approvedLog, names(b.log(id)))
	}
	require.Less(t, time.Since(began), tuned().ackWait)
}

// TestAppendConflicts: the log takes an event once, and whoever is told
// otherwise must read it again.
func TestAppendConflicts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	task, err := accept("local", wire.Heal{Dir: "/p"})
	require.NoError(t, err)
	id := wire.RunID("local", "key", "k")
	body, err := wire.EncodeEvent(run.Event{N: 1, Decider: 1, Command: run.Opened{Task: task, At: time.Now()}})
	require.NoError(t, err)
	r := record{run: id, n: 1, name: "opened", home: home, body: body}
	seq, err := b.core.append(ctx, r)
	require.NoError(t, err)
	_, err = b.core.append(ctx, r)
	require.ErrorIs(t, err, errConflict, "the same event again: a Duplicate acknowledgement")
	r.body = append(body[:len(body)-1:len(body)-1], ' ', '}')
	_, err = b.core.append(ctx, r)
	require.ErrorIs(t, err, errConflict, "another event in its place")
	r.n, r.name, r.last = 2, "closed", seq
	_, err = b.core.append(ctx, r)
	require.NoError(t, err)
	_, err = b.core.append(ctx, record{run: id, n: 3, name: "closed", body: make([]byte, b.core.nc.MaxPayload())})
	require.ErrorAs(t, err, new(*largeError))
}

// TestAcknowledgementIsLost: an event was stored and the conductor does not
// know it.
func TestAcknowledgementIsLost(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(), noConductor: true, tune: quick})
	c := b.connect(roleCore)
	other := b.connect(roleCore)
	c.tune.hook = func(subject string, stored bool) {
		addr, err := wire.ParseEvent(subject)
		if err != nil || stored || addr.N%2 == 0 {
			return
		}
		// Another conductor, at the same fact at the same time, is faster.
		con, err := NewConductor(other, ConductorConfig{Intake: anytime(accept)})
		if err == nil && addr.N > 1 {
			_ = con.Recover(context.Background(), addr.Run)
		}
	}
	b.conduct(c)
	b.conduct(other)
	id := b.submit("k")
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
	require.Equal(t, approvedLog, names(b.log(id)))
}

// TestConductorDies breaks the connection of a conductor before and after
// each of its publishes; the next one completes the run exactly.
func TestConductorDies(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored=%v", stored), func(t *testing.T) {
			t.Parallel()
			b := start(t, setup{workers: healers(), noConductor: true, tune: func(t *tuning) { quick(t); t.ackWait = 100 * time.Millisecond }})
			for k := 1; b.diesAt(k, stored); k++ {
				require.Less(t, k, 40)
			}
		})
	}
}

// diesAt drives a run whose first conductor dies at its k-th publish, and
// reports whether there was one.
func (b *bench) diesAt(k int, stored bool) bool {
	b.tb.Helper()
	var n atomic.Int32
	c := b.connect(roleCore)
	c.tune.hook = func(_ string, s bool) {
		if s == stored && int(n.Add(1)) == k {
			c.nc.Close()
		}
	}
	dying := b.conduct(c)
	id := b.submit(fmt.Sprint(k))
	closed := make(chan run.State, 1)
	go func() { closed <- b.finish(id) }()
	select {
	case <-c.lost:
		require.Error(b.tb, dying.wait())
		next := b.conduct(b.connect(roleCore))
		require.Equal(b.tb, run.Approved, recv(b.tb, closed).Ended.State, k)
		require.NoError(b.tb, next.halt())
	case s := <-closed:
		require.Equal(b.tb, run.Approved, s.Ended.State)
		_ = dying.halt() // it may be dying right now
	}
	require.Equal(b.tb, approvedLog, names(b.log(id)), k)
	return int(n.Load()) >= k
}

// TestConductorStops: an orderly stop gives back what was fetched, so the
// next conductor need not wait for AckWait.
func TestConductorStops(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(), noConductor: true})
	began := time.Now()
	var ids []string
	for i := range 6 {
		c := b.conduct(b.connect(roleCore))
		for j := range 4 {
			ids = append(ids, b.submit(fmt.Sprint(i, j)))
		}
		require.NoError(t, c.halt())
	}
	b.conduct(b.core)
	for _, id := range ids {
		require.Equal(t, run.Approved, b.finish(id).Ended.State)
		require.Equal(t, approvedLog, names(b.log(id)))
	}
	require.Less(t, time.Since(began), tuned().ackWait)
}

// TestPanickingMessage: what makes the conductor panic is buried.
func TestPanickingMessage(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(), intake: func(tenant string, h wire.Heal) (run.Task, error) {
		if h.Dir == "/boom" {
			panic("boom")
		}
		return accept(tenant, h)
	}})
	_, err := b.core.Submit(t.Context(), "local", "boom", wire.Heal{Dir: "/boom"})
	require.NoError(t, err)
	require.Contains(t, b.letter("panic", func(l Letter) bool { return l.Category == "poison" }).Reason, "boom")
	require.Equal(t, run.Approved, b.finish(b.submit("next")).Ended.State)
}

// TestUncleanEnd copies the state folder while workers have asks in hand and
// messages wait everywhere, which is what a kill leaves behind. On the copy
// everything goes on at once.
func TestUncleanEnd(t *testing.T) {
	t.Parallel()
	got := make(chan Job, 10)
	b := start(t, setup{sync: true, workers: healers(worker(run.Debugger, stuck(got)))})
	first, second := b.submit("first"), b.submit("second")
	recv(t, got)
	b.until(first, func(_ run.Event, s run.State) bool { return s.Baseline != nil })
	b.until(second, func(_ run.Event, s run.State) bool { return s.Baseline != nil })
	// The server writes what was delivered down ten times a second.
	require.Eventually(t, func() bool {
		cons, err := b.core.js.Consumer(context.Background(), streamRuns, "worker-debugger-"+home)
		return err == nil && cons.CachedInfo().NumAckPending == 1
	}, patience, 10*time.Millisecond)
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(copied, "jetstream"), os.DirFS(filepath.Join(b.set.dir, "jetstream"))))

	c := start(t, setup{dir: copied, sync: true, noConductor: true, workers: except(run.Debugger)})
	c.conduct(c.core)
	began := time.Now()
	again := make(chan Job, 10)
	w := worker(run.Debugger, func(_ context.Context, j Job) (run.Answer, error) {
		again <- j
		return answers()[run.Debugger](j.Ask), nil
	})
	w.Slots = 2
	c.work(w)
	recv(t, again)
	recv(t, again)
	took := time.Since(began)
	t.Logf("asks in hand again after %s", took)
	require.Less(t, took, tuned().ackWait/3) // some 0.1 s on an idle machine
	for _, id := range []string{first, second} {
		require.Equal(t, run.Approved, c.finish(id).Ended.State)
		require.Equal(t, approvedLog, names(c.log(id)))
	}
}

// TestGhostTask: a message on TASKS whose run was opened and whose
// acknowledgement got lost completes what the log lacks.
func TestGhostTask(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers(), noConductor: true, tune: quick})
	task, err := accept("local", wire.Heal{Dir: "/p"})
	require.NoError(t, err)
	id := wire.RunID("local", "key", "k")
	body, err := wire.EncodeEvent(run.Event{N: 1, Decider: run.Decider, Command: run.Opened{Task: task, At: time.Now().UTC()}})
	require.NoError(t, err)
	_, err = b.core.append(ctx, record{run: id, n: 1, name: "opened", home: home, body: body})
	require.NoError(t, err)
	b.conduct(b.core)
	require.Equal(t, id, b.submit("k"))
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
	require.Equal(t, approvedLog, names(b.log(id)))
}

// TestLogWithAHole: a log from which an event is missing is an error, not a
// shorter log.
func TestLogWithAHole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	id := wire.RunID("local", "key", "k")
	for _, n := range []int{1, 3} {
		msg := &nats.Msg{Subject: wire.EventSubject(id, "closed", n), Data: []byte(`{"decider":1}`)}
		_, err := b.core.js.PublishMsg(ctx, msg)
		require.NoError(t, err)
	}
	_, err := b.core.ReadLog(ctx, id)
	require.ErrorContains(t, err, "event 3 follows event 1")
}

// TestLongLog reads more than one batch, and notices a read that is cut.
func TestLongLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	pad := make([]byte, 40<<10)
	for i := range 400 { // 16 MiB, twice what one read brings
		_, err := b.core.js.PublishAsync(fmt.Sprint("nexus.run.result.x.", i), pad)
		require.NoError(t, err)
	}
	select {
	case <-b.core.js.PublishAsyncComplete():
	case <-time.After(patience):
		require.Fail(t, "not stored")
	}
	n, bytes := 0, 0
	count := func(m *jetstream.RawStreamMsg) error { n++; bytes += len(m.Data); return nil }
	require.NoError(t, b.core.each(ctx, streamRuns, "nexus.run.result.x.*", count))
	require.Equal(t, 400, n)
	require.Equal(t, 400*len(pad), bytes)
	require.NoError(t, b.core.each(ctx, streamRuns, "nexus.run.result.y.*", count))

	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	require.Error(t, b.core.each(short, streamRuns, "nexus.run.result.x.*", count), "no answer is not an empty log")
	short, cancel = context.WithCancel(ctx)
	n = 0
	err := b.core.each(short, streamRuns, "nexus.run.result.x.*", func(*jetstream.RawStreamMsg) error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	require.Error(t, err)
}
