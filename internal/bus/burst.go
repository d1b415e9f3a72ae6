package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/wire"
)

// A failure that nothing classifies ends its run as a dead letter. One is a
// run's own misfortune; several in a short time mean that something is broken
// which every run meets, and a person hears of it. They are counted in the dead
// letters, so a restart forgets none.
const (
	burstSize = 5
	burstTime = 10 * time.Minute
)

// Burst says that runs failed in a way that nothing classifies, one after the
// other. There is at most one for each burstTime.
type Burst struct {
	// Count is how many did within Seconds before At.
	Count   int       `json:"count"`
	Seconds int       `json:"seconds"`
	At      time.Time `json:"at"`
	// Run is the newest of them, and Reason its failure.
	Run    string `json:"run"`
	Reason string `json:"reason"`
}

var burstSubject = wire.BurstSubject(string(failure.Unexpected))

// burst publishes a Burst when the letter that was just stored makes one. The
// letter is what matters, so a failure of this is only logged.
func (b *Bus) burst(ctx context.Context, newest Letter) {
	if newest.Category != string(failure.Unexpected) {
		return
	}
	if err := b.publishBurst(ctx, newest); err != nil {
		b.log.Warn().Err(err).Msg("a burst of failures was not told")
	}
}

func (b *Bus) publishBurst(ctx context.Context, newest Letter) error {
	out := Burst{Seconds: int(burstTime.Seconds()), At: newest.At, Run: newest.Run, Reason: newest.Reason}
	since := newest.At.Add(-burstTime)
	err := b.letters(ctx, wire.DeadFilter(newest.Category), func(l Letter) {
		if l.At.After(since) {
			out.Count++
		}
	})
	if err != nil || out.Count < burstSize {
		return err
	}
	last, sequence, err := b.lastBurst(ctx)
	if err != nil || last.At.After(since) {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: burstSubject, Data: body}
	msg.Header = nats.Header(wire.Envelope("burst", msg.Subject, "burst."+newest.Category, newest.Run, out.At))
	_, err = b.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(sequence), jetstream.WithRetryAttempts(0))
	if isCode(err, codeWrongLast, codeWrongLastConstant) {
		return nil // another conductor has told it
	}
	return err
}

// LastBurst is the newest burst of the last days, with a zero At when there
// was none.
func (b *Bus) LastBurst(ctx context.Context) (Burst, error) {
	last, _, err := b.lastBurst(ctx)
	return last, err
}

func (b *Bus) lastBurst(ctx context.Context) (last Burst, sequence uint64, err error) {
	s, err := b.stream(ctx, streamAdvisories)
	if err != nil {
		return last, 0, err
	}
	msg, err := s.GetLastMsgForSubject(ctx, burstSubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return last, 0, nil
	}
	if err == nil {
		sequence, err = msg.Sequence, json.Unmarshal(msg.Data, &last)
	}
	if err != nil {
		return last, 0, fmt.Errorf("bus: burst of failures: %w", err)
	}
	return last, sequence, nil
}

// Bursts calls do with each burst that comes, until ctx ends.
func (b *Bus) Bursts(ctx context.Context, do func(Burst)) {
	hints, stop := b.hear(burstSubject)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-hints:
			var next Burst
			if json.Unmarshal(msg.Data, &next) == nil {
				do(next)
			}
		}
	}
}
