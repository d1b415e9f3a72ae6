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
	// ID is the letter's number among the dead letters, from 1.
	ID       uint64    `json:"-"`
	Category string    `json:"category"`
	Reason   string    `json:"reason"`
	Run      string    `json:"run,omitempty"`
	Ask      int       `json:"ask,omitempty"`
	Worker   string    `json:"worker,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Stream   string    `json:"stream,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	At       time.Time `json:"at"`
	// Payload is the message as it came, cut to maxPayload bytes; Cut says
	// that it was.
	Payload []byte `json:"payload,omitempty"`
	Cut     bool   `json:"cut,omitempty"`
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
		l.Payload, l.Cut = l.Payload[:maxPayload], true
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
			b.burst(ctx, l)
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
	err = b.letters(ctx, subject, func(o Letter) {
		there, last = there || l.same(o), o.ID
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
