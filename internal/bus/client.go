package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Submit publishes a task and returns the id that its run has or will have.
// The same key submitted twice is one run.
func (b *Bus) Submit(ctx context.Context, tenant, key string, h wire.Heal) (string, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("bus: submit: %w", err)
	}
	id := wire.RunID(tenant, "key", key)
	msg := &nats.Msg{Subject: wire.TaskSubject(tenant, wire.KindHeal), Data: body}
	msg.Header = nats.Header(wire.Envelope("client", key, "task."+wire.KindHeal, id, time.Now()))
	msg.Header.Set("Idempotency-Key", key)
	fault.Point("bus.submit")
	_, err = b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(tenant+"/"+key))
	fault.Point("bus.submitted")
	if err != nil {
		return "", fmt.Errorf("bus: submit: %w", err)
	}
	return id, nil
}

// Order tells a run something. The conductor records it unless the run has
// ended.
func (b *Bus) Order(ctx context.Context, id string, o run.Order) error {
	return b.publishOutcome(ctx, string(run.ByOperator), id, 0, wire.Outcome{Order: &o})
}

// ErrLost says that the owner of the bus is gone.
var ErrLost = errors.New("bus: the process that runs the bus has ended")

// Follow calls do with each event of a run, from the first on, with the
// state after it, until do answers false, ctx ends, or the bus is gone
// (ErrLost).
func (b *Bus) Follow(ctx context.Context, id string, do func(run.Event, run.State) bool) error {
	cons, err := b.js.OrderedConsumer(ctx, streamRuns, jetstream.OrderedConsumerConfig{FilterSubjects: []string{wire.RunFilter(id)}})
	if err != nil {
		return b.orLost(fmt.Errorf("bus: follow %s: %w", id, err))
	}
	s := run.State{ID: id}
	var failed error
	done := make(chan struct{})
	cc, err := cons.Consume(func(msg jetstream.Msg) {
		if failed != nil || ctx.Err() != nil {
			return
		}
		e, err := decodeEvent(msg.Subject(), msg.Data())
		if err == nil {
			s, err = run.Fold(s, e)
		}
		if err != nil {
			failed = fmt.Errorf("bus: follow %s: %w", id, err)
			close(done)
			return
		}
		if !do(e, s) {
			failed = errDone
			close(done)
		}
	}, jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat))
	if err != nil {
		return b.orLost(fmt.Errorf("bus: follow %s: %w", id, err))
	}
	defer func() { cc.Stop(); <-cc.Closed() }()
	select {
	case <-done:
		if errors.Is(failed, errDone) {
			return nil
		}
		return failed
	case <-b.lost:
		return ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errDone = errors.New("bus: followed to the end")

func (b *Bus) orLost(err error) error {
	select {
	case <-b.lost:
		return ErrLost
	default:
		return err
	}
}

// Refusal returns the dead letter of a task that was not let in, or nil.
func (b *Bus) Refusal(ctx context.Context, id string) (*Letter, error) {
	var found *Letter
	err := b.each(ctx, streamDead, wire.DeadSubject("*", id, 0), func(m *jetstream.RawStreamMsg) error {
		var l Letter
		if err := json.Unmarshal(m.Data, &l); err != nil {
			return fmt.Errorf("bus: dead letter %s: %w", m.Subject, err)
		}
		found = &l
		return nil
	})
	return found, err
}

// each calls do with every message of a stream under a subject, in order.
func (b *Bus) each(ctx context.Context, stream, subject string, do func(*jetstream.RawStreamMsg) error) error {
	for seq := uint64(1); ; {
		msgs, err := jetstreamext.GetBatch(ctx, b.js, stream, readBatch,
			jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchSeq(seq))
		if err != nil {
			return fmt.Errorf("bus: read %s: %w", stream, err)
		}
		n := 0
		for msg, err := range msgs {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("bus: read %s: %w", stream, err)
			}
			if err := do(msg); err != nil {
				return err
			}
			seq, n = msg.Sequence+1, n+1
		}
		if n < readBatch {
			return nil
		}
	}
}

// Usage says how full a stream is.
type Usage struct {
	Name     string
	Messages uint64
	Bytes    uint64
	MaxBytes int64
}

// Usages lists the streams of the system with their sizes.
func (b *Bus) Usages(ctx context.Context) ([]Usage, error) {
	var out []Usage
	names := []string{streamRuns, streamTasks, streamOutcomes, streamTimers, streamDead, streamAdvisories, "OBJ_" + bucketArtifacts}
	for _, name := range names {
		s, err := b.js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("bus: stream %s: %w", name, err)
		}
		info := s.CachedInfo()
		out = append(out, Usage{name, info.State.Msgs, info.State.Bytes, info.Config.MaxBytes})
	}
	return out, nil
}
