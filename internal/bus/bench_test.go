package bus

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// BenchmarkStep compares a step of a run, whose workers do nothing, with the
// smallest thing that a queue can do: publish, consume and double-ack one
// message on the same server. A step is an ask and its answer; opening and
// closing the run, its timers and whoever follows it are paid for by the
// steps. Rounds of both alternate, so that a busy machine slows both, and
// medians are compared.
func BenchmarkStep(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprintf("fsync=%v", !noSync), func(b *testing.B) {
			t := start(b, setup{sync: !noSync, workers: healers()})
			hop := t.hopper(b)
			n := 0
			heal := func() time.Duration {
				n++
				began := time.Now()
				id, err := t.core.Submit(b.Context(), "local", fmt.Sprint("k", n), wire.Heal{Dir: "/p"})
				require.NoError(b, err)
				s := t.finish(id)
				took := time.Since(began)
				require.Equal(b, run.Approved, s.Ended.State)
				return took / healSteps
			}
			for range 5 {
				heal()
				hop()
			}
			var steps, hops, ratios []time.Duration
			for b.Loop() {
				s, h := heal(), hop()
				steps, hops, ratios = append(steps, s), append(hops, h), append(ratios, 1000*s/h)
			}
			b.ReportMetric(float64(median(steps)), "ns/step")
			b.ReportMetric(float64(median(hops)), "ns/hop")
			b.ReportMetric(float64(median(ratios))/1000, "hops/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// healSteps counts the asks of a run that healers take to its end.
const healSteps = 9

// hopper returns a function that measures one hop, the mean of healSteps.
func (t *bench) hopper(tb testing.TB) func() time.Duration {
	ctx := context.Background()
	_, err := t.core.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "HOP", Subjects: []string{"hop"}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	require.NoError(tb, err)
	cons, err := t.core.js.CreateConsumer(ctx, "HOP", jetstream.ConsumerConfig{Durable: "hop", AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(tb, err)
	it, err := cons.Messages()
	require.NoError(tb, err)
	tb.Cleanup(it.Stop)
	body := make([]byte, 1024)
	return func() time.Duration {
		began := time.Now()
		for range healSteps {
			_, err := t.core.js.Publish(ctx, "hop", body)
			require.NoError(tb, err)
			msg, err := it.Next()
			require.NoError(tb, err)
			require.NoError(tb, msg.DoubleAck(ctx))
		}
		return time.Since(began) / healSteps
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
