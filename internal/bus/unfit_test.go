package bus

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// newer makes the wait for a newer version short.
func newer(t *tuning) { quick(t); t.maxNewer, t.newerRest = 2, 10*time.Millisecond }

// future writes a run whose second event is the work of a later version.
func (b *bench) future(body string) string {
	b.tb.Helper()
	ctx := b.tb.Context()
	task, err := accept("local", wire.Heal{Dir: "/p"})
	require.NoError(b.tb, err)
	id := wire.RunID("local", "key", body)
	opened, err := wire.EncodeEvent(run.Event{N: 1, Decider: run.Decider, Command: run.Opened{Task: task, At: time.Now()}})
	require.NoError(b.tb, err)
	seq, err := b.core.append(ctx, record{run: id, n: 1, name: "opened", home: home, body: opened})
	require.NoError(b.tb, err)
	_, err = b.core.append(ctx, record{run: id, last: seq, n: 2, name: "snapshot", home: home, body: []byte(body)})
	require.NoError(b.tb, err)
	return id
}

// TestAskOfANewerVersion: an ask that a later version wrote is handed back for
// a worker which knows it, a bounded number of times, and then buried.
func TestAskOfANewerVersion(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"readable":   `{"decider":99,"ask":{"worker":"snapshot","snapshot":{"dir":"/p"}}}`,
		"new fields": `{"decider":99,"ask":{"worker":"snapshot","snapshot":{"dir":"/p"}},"weather":"fine"}`,
		"unreadable": `{"decider":99,"wish":{"for":"snapshot"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var handled atomic.Int32
			b := start(t, setup{noConductor: true, tune: newer, workers: []Worker{worker(run.Snapshot, func(context.Context, Job) (run.Answer, error) {
				handled.Add(1)
				return run.Answer{}, errTest
			})}})
			id := b.future(body)
			l := b.letter(name, func(l Letter) bool { return l.Run == id })
			require.Equal(t, "poison", l.Category)
			require.Contains(t, l.Reason, "newer nexus (decider 99, this one knows 1)")
			require.Contains(t, l.Reason, "2 deliveries")
			require.Zero(t, handled.Load(), "what it means is not known here")
			cons, err := b.core.js.Consumer(t.Context(), streamRuns, "worker-snapshot-"+home)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				info, err := cons.Info(context.Background())
				return err == nil && info.Delivered.Consumer == uint64(3) && info.NumAckPending == 0
			}, patience, 5*time.Millisecond, "handed back twice, then ended")
		})
	}
}

// TestMalformedIsNotNewer: what no version ever wrote is buried at once.
func TestMalformedIsNotNewer(t *testing.T) {
	t.Parallel()
	b := start(t, setup{noConductor: true, workers: []Worker{worker(run.Snapshot, stuck(make(chan Job, 1)))}})
	id := b.future(`{"decider":1,"wish":{}}`)
	l := b.letter("", func(l Letter) bool { return l.Run == id })
	require.NotContains(t, l.Reason, "newer")
}

// TestConductorLeavesNewerRunsAlone: a run about which a later version has
// decided is not decided about here.
func TestConductorLeavesNewerRunsAlone(t *testing.T) {
	t.Parallel()
	b := start(t, setup{noConductor: true, tune: newer})
	id := b.future(`{"decider":99,"ask":{"worker":"snapshot","snapshot":{"dir":"/p"}}}`)
	before := b.log(id)
	b.conduct(b.core)
	require.NoError(t, b.core.Order(t.Context(), id, run.Order{Kind: run.OrderCancel, Reason: "x"}))
	l := b.letter("", func(l Letter) bool { return l.Run == id })
	require.Contains(t, l.Reason, "decider 99")
	require.Equal(t, before, b.log(id))
}

// TestOversizedOrder: an order that no event can hold is buried, and the run
// and everybody else go on.
func TestOversizedOrder(t *testing.T) {
	t.Parallel()
	next := make(chan struct{}, 2)
	b := start(t, setup{workers: healers(worker(run.Test, gated(next))), tune: quick})
	id := b.submit("k")
	b.until(id, func(_ run.Event, s run.State) bool { return s.N == 3 })
	long := strings.Repeat("x", 1<<20-200) // the largest message that the server takes
	require.ErrorContains(t, b.core.Order(t.Context(), id, run.Order{Kind: run.OrderCancel, Reason: long}), "the limit is")
	require.NoError(t, b.stranger().Publish(wire.OutcomeSubject("operator", id, 0), []byte(`{"order":{"kind":"cancel","reason":"`+long+`"}}`)))
	l := b.letter("", func(l Letter) bool { return l.Run == id })
	require.Equal(t, "poison", l.Category)
	require.Contains(t, l.Reason, "the limit is")
	next <- struct{}{}
	next <- struct{}{}
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
	require.Equal(t, approvedLog, names(b.log(id)))
}

// TestOversizedTask: the same for a task.
func TestOversizedTask(t *testing.T) {
	t.Parallel()
	b := start(t, setup{intake: func(tenant string, h wire.Heal) (run.Task, error) {
		task, err := accept(tenant, h)
		task.Test = strings.Repeat("x", 2<<20)
		return task, err
	}})
	id := b.submit("k")
	l := b.letter("", func(l Letter) bool { return l.Run == id })
	require.Contains(t, l.Reason, "the limit is")
	refusal, err := b.core.Refusal(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, refusal, "whoever waits for it hears of it")
}
