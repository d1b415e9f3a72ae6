package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Place is where a message is kept that may name runs and artifacts.
type Place string

// The places of a Trace.
const (
	InRuns     Place = "runs"
	InImported Place = "imported"
	InOutcomes Place = "outcomes"
	InTasks    Place = "tasks"
	InDead     Place = "dead"
	InNotes    Place = "notes"
)

// Trace is a stored message that may name artifacts.
type Trace struct {
	Place Place
	// Run is the run that the message is about, or would open; empty when it
	// is about none.
	Run string
	// At is when the message was stored.
	At time.Time
	// Body is the message; that of a dead letter is followed by its payload.
	// It is good until the next trace only.
	Body []byte
}

// Traces calls do with every message of these places; none means all.
func (b *Bus) Traces(ctx context.Context, do func(Trace) error, places ...Place) error {
	tasks, err := wire.NewTasks()
	if err != nil {
		return err
	}
	event := func(m *jetstream.RawStreamMsg) Trace {
		addr, _ := wire.ParseEvent(wire.OwnSubject(m.Subject)) // what is no event belongs to no run
		return Trace{Run: addr.Run}
	}
	for _, from := range []struct {
		stream string
		place  Place
		read   func(*jetstream.RawStreamMsg) Trace
	}{
		{streamRuns, InRuns, event},
		{streamImported, InImported, event},
		{streamOutcomes, InOutcomes, func(m *jetstream.RawStreamMsg) Trace {
			addr, _ := wire.ParseOutcome(m.Subject)
			return Trace{Run: addr.Run}
		}},
		{streamTasks, InTasks, func(m *jetstream.RawStreamMsg) Trace { return taskTrace(tasks, m) }},
		{streamDead, InDead, func(m *jetstream.RawStreamMsg) Trace {
			l := readLetter(m)
			return Trace{Run: l.Run, Body: append(append([]byte{}, m.Data...), l.Payload...)}
		}},
		{streamReviews, InNotes, func(m *jetstream.RawStreamMsg) Trace {
			return Trace{Run: m.Subject[min(len(reviewSubject("")), len(m.Subject)):]}
		}},
	} {
		if len(places) > 0 && !slices.Contains(places, from.place) {
			continue
		}
		err := b.each(ctx, from.stream, ">", func(m *jetstream.RawStreamMsg) error {
			t := from.read(m)
			t.Place, t.At = from.place, m.Time
			if t.Body == nil {
				t.Body = m.Data
			}
			return do(t)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// taskTrace names the run that a queued task will open. A task that nobody can
// read opens none.
func taskTrace(tasks *wire.Tasks, m *jetstream.RawStreamMsg) Trace {
	tenant, kind, err := wire.ParseTask(m.Subject)
	if err != nil {
		return Trace{}
	}
	got, err := tasks.Decode(wire.Header(m.Header), kind, m.Data)
	if err != nil {
		return Trace{}
	}
	return Trace{Run: taskRun(tenant, got.Key, m.Time, m.Sequence)}
}

// taskRun is the id of the run that a task opens: by its key, else by when and
// where its message was stored.
func taskRun(tenant string, key []string, at time.Time, sequence uint64) string {
	if len(key) == 0 {
		key = []string{"sequence", at.UTC().Format(time.RFC3339Nano), strconv.FormatUint(sequence, 10)}
	}
	return wire.RunID(tenant, key...)
}

// RemoveRun removes a run from the log, and its timers. A run that loses its
// first event is none any more, so that goes first: a crash leaves a whole run
// or remnants, which removing it again takes away. Only the owner of a state
// folder may call it, while nothing works on the bus.
func (b *Bus) RemoveRun(ctx context.Context, id string) error {
	fault.Point("bus.remove.run")
	if err := b.purge(ctx, streamRuns, id, wire.NameOf(id, run.Opened{}.Name())); err != nil {
		return err
	}
	fault.Point("bus.remove.rest")
	if err := b.purge(ctx, streamRuns, id, wire.RunFilter(id)); err != nil {
		return err
	}
	fault.Point("bus.removed.run")
	return b.purge(ctx, streamTimers, id, wire.LaterSubject(id, "*"))
}

// RemoveImported is RemoveRun for a run from elsewhere, which is one as long as
// it has its last event.
func (b *Bus) RemoveImported(ctx context.Context, id string) error {
	fault.Point("bus.remove.imported")
	if err := b.purge(ctx, streamImported, id, wire.ImportedSubject(wire.NameOf(id, run.Closed{}.Name()))); err != nil {
		return err
	}
	fault.Point("bus.remove.imported.rest")
	return b.purge(ctx, streamImported, id, wire.ImportedFilter(id))
}

// RemoveNote removes what people noted about a run.
func (b *Bus) RemoveNote(ctx context.Context, id string) error {
	fault.Point("bus.remove.note")
	return b.purge(ctx, streamReviews, id, reviewSubject(id))
}

func (b *Bus) purge(ctx context.Context, stream, id, subject string) error {
	if !wire.ValidRun(id) { // it would be another filter
		return fmt.Errorf("bus: remove %q: no run", id)
	}
	s, err := b.stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return fmt.Errorf("bus: remove %s: %w", id, err)
	}
	return nil
}

// ClosedBefore counts the runs that were closed before a time.
func (b *Bus) ClosedBefore(ctx context.Context, at time.Time) (n int, err error) {
	err = b.each(ctx, streamRuns, wire.NameFilter(run.Closed{}.Name()), func(m *jetstream.RawStreamMsg) error {
		if m.Time.Before(at) {
			n++
		}
		return nil
	})
	return n, err
}

// Stored is an artifact in the store.
type Stored struct {
	// Size is the number of its bytes.
	Size int64
	// place is where its chunks lie.
	place string
}

// List returns all artifacts by name, and the places of chunks that nothing
// describes: what a crash left of a blob that was put or removed.
func (a *Artifacts) List(ctx context.Context) (all map[string]Stored, loose []string, err error) {
	all = map[string]Stored{}
	described := map[string]bool{}
	err = a.bus.each(ctx, streamArtifacts, metaSpace, func(m *jetstream.RawStreamMsg) error {
		info, err := readInfo(m.Data)
		if err != nil {
			return fmt.Errorf("bus: artifacts: %s: %w", m.Subject, err)
		}
		described[info.NUID] = true
		if !info.Deleted {
			all[info.Name] = Stored{int64(info.Size), info.NUID} //nolint:gosec // no blob is that large
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := a.bus.stream(ctx, streamArtifacts)
	if err != nil {
		return nil, nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(chunkSubject("*")))
	if err != nil {
		return nil, nil, fmt.Errorf("bus: artifacts: %w", err)
	}
	for subject := range info.State.Subjects {
		if id := subject[len(chunkSubject("")):]; !described[id] {
			loose = append(loose, id)
		}
	}
	return all, loose, nil
}

// Remove takes a blob away, its description first, so that a crash leaves no
// blob that cannot be read. Only the owner of a state folder may call it, while
// nothing works on the bus.
func (a *Artifacts) Remove(ctx context.Context, name string, s Stored) error {
	fault.Point("bus.artifact.remove")
	a.cache.drop(name)
	stream, err := a.bus.stream(ctx, streamArtifacts)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(metaSubject(name)))
	}
	if err != nil {
		return fmt.Errorf("bus: remove artifact %s: %w", name, err)
	}
	fault.Point("bus.artifact.undescribed")
	return a.RemoveLoose(ctx, s.place)
}

// RemoveLoose removes chunks that nothing describes.
func (a *Artifacts) RemoveLoose(ctx context.Context, place string) error {
	fault.Point("bus.artifact.loose")
	if err := a.purge(ctx, place); err != nil {
		return fmt.Errorf("bus: remove chunks %s: %w", place, err)
	}
	return nil
}

// Gone reports whether an error of Get means that the blob cannot be had, now
// or later.
func Gone(err error) bool { return errors.Is(err, ErrNoArtifact) || errors.Is(err, ErrDamaged) }
