package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// The advisories of the server about asks that it delivers no more.
const (
	advisoryMaxDeliveries = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + streamRuns + ".*"
	advisoryTerminated    = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED." + streamRuns + ".*"
)

// advisory is what the server says about a message that it gave up on.
type advisory struct {
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	StreamSeq  uint64 `json:"stream_seq"`
	Deliveries int    `json:"deliveries"`
	Reason     string `json:"reason"`
}

func parseAdvisory(body []byte) (advisory, error) {
	var a advisory
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("%w: advisory: %w", wire.ErrMalformed, err)
	}
	if a.Stream == "" || a.StreamSeq == 0 {
		return a, fmt.Errorf("%w: advisory names no message", wire.ErrMalformed)
	}
	return a, nil
}

func (a advisory) text() string {
	if a.Reason != "" {
		return a.Reason
	}
	return fmt.Sprintf("%d workers were lost over this ask", a.Deliveries)
}

// worker is the name of the worker whose consumer gave up.
func (a advisory) worker() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(a.Consumer, workerPrefix), "-")
	return name
}

// sweep turns an advisory about a lost ask into a dead letter and a failure
// of its run, so that no run waits for ever.
func (b *Bus) sweep(ctx context.Context, msg jetstream.Msg) error {
	adv, err := parseAdvisory(msg.Data())
	if err != nil {
		return b.poison(ctx, msg, "", 0, err)
	}
	s, err := b.stream(ctx, adv.Stream)
	if err != nil {
		return fmt.Errorf("bus: sweep: %w", err)
	}
	lost, err := s.GetMsg(ctx, adv.StreamSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return msg.Ack() // its run was removed
	}
	if err != nil {
		return fmt.Errorf("bus: sweep: %w", err)
	}
	addr, err := wire.ParseEvent(lost.Subject)
	if err != nil {
		return b.poison(ctx, msg, "", 0, err)
	}
	if !strings.HasPrefix(adv.Reason, poisonReason) { // a worker has buried that one itself
		err := b.bury(ctx, Letter{
			Category: "lost", Reason: adv.text(), Run: addr.Run, Ask: addr.N, Worker: adv.worker(),
			Subject: lost.Subject, Stream: adv.Stream, Sequence: adv.StreamSeq, At: time.Now().UTC(), Payload: lost.Data,
		})
		if err != nil {
			return err
		}
	}
	fail := wire.Outcome{Failure: &run.Failure{Category: "unexpected", Op: "sweeper", Message: adv.text()}}
	if err := b.publishOutcome(ctx, string(run.BySweeper), addr.Run, addr.N, fail); err != nil {
		return err
	}
	return msg.Ack()
}
