package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// same reports whether two letters are about the same message.
func (l Letter) same(o Letter) bool {
	if l.Sequence != 0 || o.Sequence != 0 {
		return l.Stream == o.Stream && l.Sequence == o.Sequence
	}
	return l.Run == o.Run && l.Ask == o.Ask && l.Reason == o.Reason
}

// maxBury bounds how often somebody else's letter may come in between.
const maxBury = 10

// bury stores a letter once; burying it again changes nothing. Several
// letters may share a subject: a stranger's message can name any ask.
func (b *Bus) bury(ctx context.Context, l Letter) error {
	id, n := l.Run, uint64(max(l.Ask, 0))
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
	last := uint64(0)
	for range maxBury {
		fault.Point("bus.bury")
		_, err = b.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithRetryAttempts(0))
		fault.Point("bus.buried")
		if err == nil {
			b.log.Warn().Str("subject", msg.Subject).Str("reason", l.Reason).Msg("dead letter")
			return nil
		}
		if !isCode(err, codeWrongLast, codeWrongLastConstant) {
			break
		}
		var there bool
		if there, last, err = b.buried(ctx, msg.Subject, l); there || err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("bus: dead letter %s: %w", msg.Subject, err)
	}
	return nil
}

// buried looks for a letter under a subject and returns the sequence of the
// last one there.
func (b *Bus) buried(ctx context.Context, subject string, l Letter) (there bool, last uint64, err error) {
	err = b.letters(ctx, subject, func(o Letter, seq uint64) {
		there, last = there || l.same(o), seq
	})
	return there, last, err
}

// poisonReason begins the reason with which a poisonous message is refused.
const poisonReason = "poison: "

// poison buries a message that nobody can handle, stops its delivery and
// returns errSettled.
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
	if err := msg.TermWithReason(poisonReason + oneLine(cause.Error())); err != nil {
		return fmt.Errorf("bus: poison: %w", err)
	}
	return errSettled
}

// oneLine fits a text into the payload of an acknowledgement.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 500)]
}

// DeadLetters lists the letters, oldest first.
func (b *Bus) DeadLetters(ctx context.Context) ([]Letter, error) {
	var out []Letter
	err := b.letters(ctx, wire.DeadSpace, func(l Letter, _ uint64) { out = append(out, l) })
	return out, err
}

// Refusal returns the dead letter of a task that was not let in, or nil.
func (b *Bus) Refusal(ctx context.Context, id string) (*Letter, error) {
	var found *Letter
	err := b.letters(ctx, wire.DeadSubject("*", id, 0), func(l Letter, _ uint64) { found = &l })
	return found, err
}

func (b *Bus) letters(ctx context.Context, subject string, do func(l Letter, seq uint64)) error {
	return b.each(ctx, streamDead, subject, func(m *jetstream.RawStreamMsg) error {
		var l Letter
		if err := json.Unmarshal(m.Data, &l); err != nil {
			return fmt.Errorf("bus: dead letter %s: %w", m.Subject, err)
		}
		do(l, m.Sequence)
		return nil
	})
}
