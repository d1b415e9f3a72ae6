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

// IsLost reports whether the connection is gone for good.
func (b *Bus) IsLost() bool { return b.nc.IsClosed() }

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

// orLost is ErrLost when the connection is gone for good, else err.
func (b *Bus) orLost(err error) error {
	if b.IsLost() {
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
	names := []string{streamRuns, streamTasks, streamOutcomes, streamTimers, streamDead, streamAdvisories, streamImported, streamReviews, streamArtifacts}
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
