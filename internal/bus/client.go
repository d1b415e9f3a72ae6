package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Submit publishes a task and returns the id that its run has or will have.
// The same key submitted twice is one run. It fails with ErrFull when the log
// has no room for further runs.
func (b *Bus) Submit(ctx context.Context, tenant, key string, h wire.Heal) (string, error) {
	switch full, err := b.Full(ctx); {
	case err != nil:
		return "", b.orLost(fmt.Errorf("bus: submit: %w", err))
	case full:
		return "", ErrFull
	}
	body, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("bus: submit: %w", err)
	}
	id := wire.RunID(tenant, "key", key)
	msg := &nats.Msg{Subject: wire.TaskSubject(tenant, wire.KindHeal), Data: body}
	msg.Header = nats.Header(wire.Envelope("client", key, "task."+wire.KindHeal, id, time.Now()))
	msg.Header.Set("Idempotency-Key", key)
	fault.Point("bus.submit")
	_, err = b.publish(ctx, msg, jetstream.WithMsgID(tenant+"/"+key))
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

// Follow calls do with each event of a run once, from the first on, with the
// state after it, until do answers false, ctx ends, or the bus is gone
// (ErrLost).
func (b *Bus) Follow(ctx context.Context, id string, do func(run.Event, run.State) bool) error {
	err := b.follow(ctx, id, do)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return b.orLost(fmt.Errorf("bus: follow %s: %w", id, err))
}

// followIdle is how long the server keeps what it holds for a follower that
// is gone.
const followIdle = 30 * time.Second

func (b *Bus) follow(ctx context.Context, id string, do func(run.Event, run.State) bool) error {
	cons, err := b.js.OrderedConsumer(ctx, streamRuns, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{wire.RunFilter(id)}, InactiveThreshold: followIdle,
	})
	if err != nil {
		return err
	}
	it, err := cons.Messages(jetstream.PullExpiry(b.tune.pullExpiry), jetstream.PullHeartbeat(b.tune.pullBeat))
	if err != nil {
		return err
	}
	defer b.unfollow(cons)
	defer it.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, it.Stop)() // also cuts the making of a new consumer after a gap
	defer b.onLost(cancel)()
	for s := (run.State{ID: id}); ; {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		e, err := decodeEvent(msg.Subject(), msg.Data())
		if err != nil {
			return err
		}
		if e.N <= s.N {
			continue // seen before a gap made the client begin anew
		}
		if s, err = run.Fold(s, e); err != nil {
			return err
		}
		if !do(e, s) {
			return nil
		}
	}
}

// onLost calls do when the connection is gone, until the returned function is
// called.
func (b *Bus) onLost(do func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-b.lost:
			do()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// unfollow frees what the server holds for a follower.
func (b *Bus) unfollow(cons jetstream.Consumer) {
	name := cons.CachedInfo().Name
	if err := b.nc.Publish("$JS.API.CONSUMER.DELETE."+streamRuns+"."+name, nil); err != nil {
		b.log.Debug().Err(err).Str("consumer", name).Msg("unfollow")
	}
}

// orLost is ErrLost when the connection is gone for good, else err.
func (b *Bus) orLost(err error) error {
	if b.nc.IsClosed() {
		return ErrLost
	}
	return err
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
	names := []string{streamRuns, streamTasks, streamOutcomes, streamTimers, streamDead, streamAdvisories, streamImported, streamArtifacts}
	for _, name := range names {
		s, err := b.stream(ctx, name)
		if err != nil {
			return nil, err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("bus: stream %s: %w", name, err)
		}
		out = append(out, Usage{name, info.State.Msgs, info.State.Bytes, info.Config.MaxBytes})
	}
	return out, nil
}

// QueuedTasks is how many tasks no conductor has let in or refused yet.
func (b *Bus) QueuedTasks(ctx context.Context) (uint64, error) {
	s, err := b.js.Stream(ctx, streamTasks)
	if err != nil {
		return 0, fmt.Errorf("bus: stream %s: %w", streamTasks, err)
	}
	return s.CachedInfo().State.Msgs, nil
}
