package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Errors of a requeue.
var (
	// ErrNoLetter says that there is no dead letter with that number.
	ErrNoLetter = errors.New("bus: no such dead letter")
	// ErrNoTask says that a letter is about a message that is no task and
	// belongs to no run: there is nothing to do again.
	ErrNoTask = errors.New("bus: the letter is about no task and no run, so there is nothing to do again")
	// ErrCut says that a letter holds only the beginning of its message.
	ErrCut = errors.New("bus: the letter holds only the beginning of its message")
)

// DeadLetters lists the letters, oldest first.
func (b *Bus) DeadLetters(ctx context.Context) ([]Letter, error) {
	var out []Letter
	err := b.letters(ctx, wire.DeadSpace, func(l Letter) { out = append(out, l) })
	return out, err
}

// Refusal returns the dead letter of a task that was not let in, or nil.
func (b *Bus) Refusal(ctx context.Context, id string) (*Letter, error) {
	var found *Letter
	err := b.letters(ctx, wire.DeadSubject("*", id, 0), func(l Letter) { found = &l })
	return found, err
}

func (b *Bus) letters(ctx context.Context, subject string, do func(l Letter)) error {
	return b.each(ctx, streamDead, subject, func(m *jetstream.RawStreamMsg) error {
		do(readLetter(m))
		return nil
	})
}

// readLetter never fails: a letter that cannot be read must not hide the
// others, so it is shown as what it is.
func readLetter(m *jetstream.RawStreamMsg) Letter {
	var l Letter
	if err := json.Unmarshal(m.Data, &l); err != nil {
		l = Letter{
			Category: "unreadable", Reason: "the letter itself cannot be read: " + err.Error(), Subject: m.Subject,
			At: m.Time, Payload: m.Data,
		}
	}
	l.ID = m.Sequence
	return l
}

// DeadLetter returns one letter, or ErrNoLetter.
func (b *Bus) DeadLetter(ctx context.Context, id uint64) (Letter, error) {
	s, err := b.stream(ctx, streamDead)
	if err != nil {
		return Letter{}, fmt.Errorf("bus: dead letter: %w", err)
	}
	m, err := s.GetMsg(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return Letter{}, fmt.Errorf("%w: %d", ErrNoLetter, id)
	case err != nil:
		return Letter{}, fmt.Errorf("bus: dead letter %d: %w", id, err)
	}
	return readLetter(m), nil
}

// DropLetter removes a letter for good. Dropping it twice is ErrNoLetter.
func (b *Bus) DropLetter(ctx context.Context, id uint64) error {
	if _, err := b.DeadLetter(ctx, id); err != nil {
		return err
	}
	s, err := b.stream(ctx, streamDead)
	if err != nil {
		return fmt.Errorf("bus: drop: %w", err)
	}
	if err := s.DeleteMsg(ctx, id); err != nil {
		return fmt.Errorf("bus: drop dead letter %d: %w", id, err)
	}
	return nil
}

// LetterTask is the tenant and the body of the task that a letter is about:
// the message itself, or the task of the run that ended with the letter. It
// fails with ErrNoTask or ErrCut.
func (b *Bus) LetterTask(ctx context.Context, l Letter) (tenant string, body []byte, err error) {
	if tenant, _, err := wire.ParseTask(l.Subject); err == nil {
		if l.Cut {
			return tenant, nil, ErrCut
		}
		return tenant, wire.TaskBody(l.Payload), nil
	}
	if !wire.ValidRun(l.Run) {
		return "", nil, ErrNoTask
	}
	log, err := b.ReadLog(ctx, l.Run)
	if errors.Is(err, wire.ErrMalformed) {
		return "", nil, fmt.Errorf("%w: %w", ErrNoTask, err) // its task cannot be read
	}
	if err != nil {
		return "", nil, err
	}
	if len(log.Events) == 0 {
		return "", nil, ErrNoTask
	}
	opened, ok := log.Events[0].Command.(run.Opened)
	if !ok {
		return "", nil, ErrNoTask
	}
	body, err = json.Marshal(wire.HealOf(opened.Task))
	return opened.Task.Tenant, body, err
}

// Requeue publishes a heal task in the place of a dead letter and removes the
// letter. It returns the id of the new run. A body that no conductor would
// read is refused and leaves the letter where it is. A crash between the two
// steps leaves the letter; requeueing it again with the same body is the same
// run.
func (b *Bus) Requeue(ctx context.Context, l Letter, tenant string, body []byte) (string, error) {
	tasks, err := wire.NewTasks()
	if err != nil {
		return "", err
	}
	if _, err := tasks.Decode(wire.Header{}, wire.KindHeal, body); err != nil {
		return "", fmt.Errorf("bus: requeue: %w", err)
	}
	key := l.key(body)
	id := wire.RunID(tenant, "key", key)
	msg := &nats.Msg{Subject: wire.TaskSubject(tenant, wire.KindHeal), Data: body}
	msg.Header = nats.Header(wire.Envelope("client", key, "task."+wire.KindHeal, id, time.Now()))
	msg.Header.Set("Idempotency-Key", key)
	if _, err := b.publish(ctx, msg, jetstream.WithMsgID(tenant+"/"+key)); err != nil {
		return "", fmt.Errorf("bus: requeue: %w", err)
	}
	if err := b.DropLetter(ctx, l.ID); err != nil && !errors.Is(err, ErrNoLetter) {
		return id, err
	}
	return id, nil
}

// key identifies the task that comes of a letter with that body. It is derived,
// not drawn, so that a repeated requeue is the same run.
func (l Letter) key(body []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%d/%s", l.ID, l.At.UnixNano(), body))
	return "dead/" + hex.EncodeToString(sum[:])
}
