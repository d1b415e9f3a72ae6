package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/wire"
)

// Letter is a dead letter: a message that cannot be handled, with the reason.
type Letter struct {
	Category string    `json:"category"`
	Reason   string    `json:"reason"`
	Run      string    `json:"run,omitempty"`
	Ask      int       `json:"ask,omitempty"`
	Worker   string    `json:"worker,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Stream   string    `json:"stream,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	At       time.Time `json:"at"`
	// Payload is the message as it came, cut to maxPayload bytes.
	Payload []byte `json:"payload,omitempty"`
}

// maxPayload bounds the copy of a message inside its dead letter.
const maxPayload = 32 << 10

// noRun is the run of a letter that belongs to none.
const noRun = "none"

// bury stores a letter once: its subject is its identity, so burying again
// changes nothing.
func (b *Bus) bury(ctx context.Context, l Letter) error {
	id, n := l.Run, uint64(l.Ask)
	if id == "" {
		id, n = noRun, l.Sequence
	}
	if len(l.Payload) > maxPayload {
		l.Payload = l.Payload[:maxPayload]
	}
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("bus: dead letter: %w", err)
	}
	msg := &nats.Msg{Subject: wire.DeadSubject(l.Category, id, n), Data: body}
	msg.Header = nats.Header(wire.Envelope("dead", msg.Subject, "dead."+l.Category, id, l.At))
	fault.Point("bus.bury")
	_, err = b.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	fault.Point("bus.buried")
	if err != nil && !isCode(err, codeWrongLast, codeWrongLastConstant) {
		return fmt.Errorf("bus: dead letter %s: %w", msg.Subject, err)
	}
	b.log.Warn().Str("subject", msg.Subject).Str("reason", l.Reason).Msg("dead letter")
	return nil
}

// poison buries a message that nobody can read and stops its delivery.
func (b *Bus) poison(ctx context.Context, msg jetstream.Msg, id string, ask int, cause error) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bus: poison: %w", err)
	}
	err = b.bury(ctx, Letter{
		Category: "poison", Reason: cause.Error(), Run: id, Ask: ask, Subject: msg.Subject(),
		Stream: meta.Stream, Sequence: meta.Sequence.Stream, At: time.Now().UTC(), Payload: msg.Data(),
	})
	if err != nil {
		return err
	}
	if err := msg.TermWithReason("poison"); err != nil {
		return fmt.Errorf("bus: poison: %w", err)
	}
	return nil
}

// DeadLetters lists the letters, oldest first.
func (b *Bus) DeadLetters(ctx context.Context) ([]Letter, error) {
	var out []Letter
	err := b.each(ctx, streamDead, wire.DeadSpace, func(m *jetstream.RawStreamMsg) error {
		var l Letter
		if err := json.Unmarshal(m.Data, &l); err != nil {
			return fmt.Errorf("bus: dead letter %s: %w", m.Subject, err)
		}
		out = append(out, l)
		return nil
	})
	return out, err
}
