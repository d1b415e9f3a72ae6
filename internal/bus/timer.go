package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// firedTTL is how long a fired timer waits for a conductor; owners arm the
// timers of open runs again when they start.
const firedTTL = "24h"

// arm sets a timer of a run; the same name replaces it. The time is written
// by hand because the client's own option cuts it to seconds.
func (b *Bus) arm(ctx context.Context, id string, t run.Timer) error {
	msg := &nats.Msg{Subject: wire.LaterSubject(id, t.Name), Header: nats.Header{
		jetstream.ScheduleHeader:       {"@at " + t.At.UTC().Format(time.RFC3339Nano)},
		jetstream.ScheduleTargetHeader: {wire.TimerSubject(id, t.Name)},
		jetstream.ScheduleTTLHeader:    {firedTTL},
	}}
	fault.Point("bus.timer.arm")
	_, err := b.publish(ctx, msg)
	fault.Point("bus.timer.armed")
	return err
}

// disarm removes the timers of a closed run. A timer that fires all the same
// is harmless.
func (b *Bus) disarm(ctx context.Context, id string) error {
	s, err := b.stream(ctx, streamTimers)
	if err != nil {
		return fmt.Errorf("bus: timers of %s: %w", id, err)
	}
	fault.Point("bus.timer.disarm")
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(wire.LaterSubject(id, "*"))); err != nil {
		return fmt.Errorf("bus: timers of %s: %w", id, err)
	}
	return nil
}
