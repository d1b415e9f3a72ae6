package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/wire"
)

// Review is what people noted about a run, most often one that waits for a
// person. What they decided for is a run of its own, which names this one as
// its parent.
type Review struct {
	Run string `json:"run"`
	// Assignee is who looks at it.
	Assignee string `json:"assignee,omitempty"`
	// Rejected is true when nothing more is to be done; By said so, at At, for
	// Reason.
	Rejected bool `json:"rejected,omitempty"`
	// Undone is true when By took the delivery of an approved run back.
	Undone bool      `json:"undone,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// revision is what the note is changed by compare-and-set with, 0 for a
	// new one.
	revision uint64
}

// ErrMoved says that somebody else noted something meanwhile.
var ErrMoved = errors.New("bus: somebody else changed the review meanwhile: look at it again")

func (b *Bus) provisionReviews(ctx context.Context, replicas int) error {
	_, err := b.js.KeyValue(ctx, bucketReviews)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucketReviews, Storage: jetstream.FileStorage, Replicas: replicas, MaxBytes: maxReviews, History: 8,
		})
	}
	return err
}

func reviewSubject(id string) string { return "$KV." + bucketReviews + "." + id }

// Review reads what was noted about a run; nothing is an empty Review.
func (b *Bus) Review(ctx context.Context, id string) (Review, error) {
	if !wire.ValidRun(id) {
		return Review{}, fmt.Errorf("bus: review of %q: no run", id)
	}
	kv, err := b.js.KeyValue(ctx, bucketReviews)
	if err != nil {
		return Review{}, fmt.Errorf("bus: reviews: %w", err)
	}
	e, err := kv.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Review{Run: id}, nil
	}
	if err != nil {
		return Review{}, fmt.Errorf("bus: review of %s: %w", id, err)
	}
	var r Review
	if err := json.Unmarshal(e.Value(), &r); err != nil {
		return Review{}, fmt.Errorf("bus: review of %s: %w", id, err)
	}
	r.Run, r.revision = id, e.Revision()
	return r, nil
}

// Note stores a review that was read before, changed. It fails with ErrMoved
// when somebody else was faster.
func (b *Bus) Note(ctx context.Context, r Review) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("bus: review of %s: %w", r.Run, err)
	}
	kv, err := b.js.KeyValue(ctx, bucketReviews)
	if err != nil {
		return fmt.Errorf("bus: reviews: %w", err)
	}
	if r.revision == 0 {
		_, err = kv.Create(ctx, r.Run, body)
	} else {
		_, err = kv.Update(ctx, r.Run, body, r.revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || isCode(err, codeWrongLast, codeWrongLastConstant) {
		return ErrMoved
	}
	if err != nil {
		return fmt.Errorf("bus: review of %s: %w", r.Run, err)
	}
	return nil
}
