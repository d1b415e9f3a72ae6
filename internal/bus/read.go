package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// One read brings at most so many messages and about so many bytes; a
// client's buffer holds several times that.
const (
	readBatch = 1000
	readBytes = 8 << 20
)

// numPending is how many more messages match a read.
const numPending = "Nats-Num-Pending"

// errCut says that a read brought less than the server announced.
var errCut = errors.New("bus: the read was cut short")

// each calls do with every message of a stream under a subject, in order. A
// read that times out ends like a complete one, and a full buffer drops
// messages, so what the server says is left is held against what came.
func (b *Bus) each(ctx context.Context, stream, subject string, do func(*jetstream.RawStreamMsg) error) error {
	return b.eachFrom(ctx, stream, subject, 1, do)
}

// eachFrom is each from a sequence of the stream on.
func (b *Bus) eachFrom(ctx context.Context, stream, subject string, from uint64, do func(*jetstream.RawStreamMsg) error) error {
	for from > 0 {
		next, err := b.readFrom(ctx, stream, subject, from, do)
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// readFrom reads one batch and returns where the next one begins, 0 when
// there is none.
func (b *Bus) readFrom(ctx context.Context, stream, subject string, from uint64, do func(*jetstream.RawStreamMsg) error) (uint64, error) {
	msgs, err := jetstreamext.GetBatch(ctx, b.js, stream, readBatch, jetstreamext.GetBatchSubject(subject),
		jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchMaxBytes(readBytes))
	if err != nil {
		return 0, fmt.Errorf("bus: read %s: %w", stream, err)
	}
	n, left := 0, 0
	for msg, err := range msgs {
		if n == 0 && errors.Is(err, jetstreamext.ErrNoMessages) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("bus: read %s: %w", stream, err)
		}
		now, err := strconv.Atoi(msg.Header.Get(numPending))
		if err != nil || (n > 0 && now != max(left-1, 0)) {
			return 0, fmt.Errorf("%w: %s at %d", errCut, stream, msg.Sequence)
		}
		if err := do(msg); err != nil {
			return 0, err
		}
		from, left, n = msg.Sequence+1, now, n+1
	}
	switch {
	case n == 0:
		return 0, fmt.Errorf("%w: %s at %d", errCut, stream, from)
	case left == 0:
		return 0, nil
	}
	return from, nil
}

// stream returns the handle of a stream; what it says about the stream is as
// old as the handle.
func (b *Bus) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if s, ok := b.streams.Load(name); ok {
		return s.(jetstream.Stream), nil //nolint:forcetypeassert // nothing else is stored
	}
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("bus: stream %s: %w", name, err)
	}
	b.streams.Store(name, s)
	return s, nil
}
