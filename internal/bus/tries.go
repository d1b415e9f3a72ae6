package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/wire"
)

// An ask that kills its worker each time would be delivered for ever. The
// server's own count of deliveries is no guard against that: it also counts
// work given back by a shutdown, and an owner that dies within a moment of a
// delivery takes the count with it. So a worker that gets an ask which
// somebody may have had in hand before writes down that it begins, and takes
// that back when it stops in an orderly way. The first try costs nothing.

func triedSubject(j Job) string { return wire.TriedSubject(string(j.Ask.Worker), j.Run, j.N) }

// tried is the number of tries of an ask; the newest counts.
type tried struct {
	Tries int `json:"tries"`
}

// begin writes down one more try of an ask and returns its number, or
// reports that all of them are spent.
func (b *Bus) begin(ctx context.Context, j Job) (try int, spent bool, err error) {
	s, err := b.stream(ctx, streamAdvisories)
	if err != nil {
		return 0, false, err
	}
	var t tried
	msg, err := s.GetLastMsgForSubject(ctx, triedSubject(j))
	if err == nil {
		err = json.Unmarshal(msg.Data, &t)
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, false, fmt.Errorf("bus: tries of %s/%d: %w", j.Run, j.N, err)
	}
	if t.Tries >= b.tune.maxTries {
		return t.Tries, true, nil
	}
	return t.Tries + 1, false, b.putTries(ctx, j, t.Tries+1)
}

func (b *Bus) putTries(ctx context.Context, j Job, n int) error {
	body, err := json.Marshal(tried{n})
	if err != nil {
		return err
	}
	fault.Point("bus.tried")
	if _, err := b.publish(ctx, &nats.Msg{Subject: triedSubject(j), Data: body}); err != nil {
		return fmt.Errorf("bus: tries of %s/%d: %w", j.Run, j.N, err)
	}
	return nil
}
