package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// maxOutcome is the largest outcome; what is larger belongs into an artifact.
const maxOutcome = 512 << 10

// BadInput marks an error as the task's own fault: the run ends as ERROR with
// its text.
type BadInput struct{ Err error }

// Error implements error.
func (e *BadInput) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BadInput) Unwrap() error { return e.Err }

func outcomeOf(w Worker, ans run.Answer, err error) wire.Outcome {
	if err == nil {
		return wire.Outcome{Answer: &ans}
	}
	f := failure.Convert(err, string(w.Name))
	out := &run.Failure{
		Category: string(f.Category), Op: f.Op, Message: run.CutText(err.Error(), maxMessage), Status: f.Status,
		RetryAfter: f.RetryAfter.Seconds(), Exhausted: f.Exhausted, Quota: f.QuotaReset.Seconds(),
	}
	var bad *BadInput
	out.BadInput = errors.As(err, &bad)
	var counted interface{ ModelCalls() int }
	if errors.As(err, &counted) {
		out.Calls = counted.ModelCalls()
	}
	return wire.Outcome{Failure: out}
}

// maxMessage is the most bytes of an error in an outcome: its category must
// arrive whatever its text quotes.
const maxMessage = 16 << 10

// publishOutcome states a fact about ask n of a run. The message id makes a
// repeated statement one.
func (b *Bus) publishOutcome(ctx context.Context, by, id string, n int, o wire.Outcome) error {
	body, err := wire.EncodeOutcome(o)
	if err != nil {
		return err
	}
	if len(body) > maxOutcome && o.Order != nil {
		return fmt.Errorf("bus: the order has %d bytes, the limit is %d", len(body), maxOutcome)
	}
	if len(body) > maxOutcome {
		f := &run.Failure{Category: string(failure.Unexpected), Op: by, Message: fmt.Sprintf("the answer has %d bytes, the limit is %d", len(body), maxOutcome)}
		if body, err = wire.EncodeOutcome(wire.Outcome{Failure: f}); err != nil {
			return err
		}
	}
	key := by + "/" + id + "/" + strconv.Itoa(n)
	msg := &nats.Msg{Subject: wire.OutcomeSubject(by, id, n), Data: body}
	msg.Header = nats.Header(wire.Envelope(by, key, "outcome."+by, id, time.Now()))
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if n > 0 {
		opts = append(opts, jetstream.WithMsgID(key))
	}
	fault.Point("bus.outcome." + by)
	_, err = b.publish(ctx, msg, opts...)
	fault.Point("bus.outcome.stored." + by)
	if err != nil {
		return fmt.Errorf("bus: outcome %s: %w", msg.Subject, err)
	}
	return nil
}
