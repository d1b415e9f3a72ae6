package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// RawEvent is an event as it is stored.
type RawEvent struct {
	N    int
	Name string
	Body []byte
}

// Errors of a run that comes from elsewhere.
var (
	// ErrRunKnown says that this bus has the run in its own log.
	ErrRunKnown = errors.New("bus: this bus knows the run already")
	// ErrRunOpen says that a run is not closed: only its own bus can go on
	// with it.
	ErrRunOpen = errors.New("bus: the run is not closed")
)

// RawLog reads the events of a run, own or imported, as they are stored. A
// run without events is an error.
func (b *Bus) RawLog(ctx context.Context, id string) ([]RawEvent, error) {
	for _, from := range []struct{ stream, filter string }{
		{streamRuns, wire.RunFilter(id)}, {streamImported, wire.ImportedFilter(id)},
	} {
		out, err := b.rawLog(ctx, from.stream, from.filter)
		if err != nil || len(out) > 0 {
			return out, err
		}
	}
	return nil, fmt.Errorf("bus: no run %s", id)
}

func (b *Bus) rawLog(ctx context.Context, stream, filter string) ([]RawEvent, error) {
	var out []RawEvent
	err := b.each(ctx, stream, filter, func(m *jetstream.RawStreamMsg) error {
		addr, err := wire.ParseEvent(wire.OwnSubject(m.Subject))
		if err != nil {
			return err
		}
		out = append(out, RawEvent{N: addr.N, Name: addr.Name, Body: bytes.Clone(m.Data)})
		return nil
	})
	return out, err
}

// decodeLog folds events from elsewhere: they must be a whole, closed run.
func decodeLog(id string, events []RawEvent) (Log, error) {
	l := Log{Run: id, Imported: true}
	for i, e := range events {
		if e.N != i+1 {
			return l, fmt.Errorf("bus: import %s: event %d follows event %d", id, e.N, i)
		}
		ev, err := decodeEvent(wire.EventSubject(id, e.Name, e.N), e.Body)
		if err != nil {
			return l, fmt.Errorf("bus: import %s: event %d: %w", id, e.N, err)
		}
		l.Events = append(l.Events, ev)
	}
	return l, nil
}

// CheckLog says why a run from elsewhere cannot be imported, or nil: its
// events are a whole, closed run that this bus did not make itself.
func (b *Bus) CheckLog(ctx context.Context, id string, events []RawEvent) error {
	l, err := decodeLog(id, events)
	if err != nil {
		return err
	}
	s, err := l.State()
	switch {
	case err != nil:
		return fmt.Errorf("bus: import %s: %w", id, err)
	case !s.Closed:
		return fmt.Errorf("%w: %s", ErrRunOpen, id)
	}
	own, err := b.rawLog(ctx, streamRuns, wire.RunFilter(id))
	if err != nil {
		return err
	}
	if len(own) > 0 {
		return fmt.Errorf("%w: %s", ErrRunKnown, id)
	}
	return nil
}

// ImportLog stores a closed run that another bus made, outside of the log on
// which workers act. Importing it again completes what a crash left.
func (b *Bus) ImportLog(ctx context.Context, id string, events []RawEvent) error {
	if err := b.CheckLog(ctx, id, events); err != nil {
		return err
	}
	there, err := b.rawLog(ctx, streamImported, wire.ImportedFilter(id))
	if err != nil {
		return err
	}
	for i, e := range events {
		switch {
		case i < len(there) && !bytes.Equal(there[i].Body, e.Body):
			return fmt.Errorf("%w: another history of %s was imported before", ErrRunKnown, id)
		case i < len(there):
			continue
		}
		msg := &nats.Msg{Subject: wire.ImportedSubject(wire.EventSubject(id, e.Name, e.N)), Data: e.Body}
		_, err := b.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
		if err != nil {
			return fmt.Errorf("bus: import %s: event %d: %w", id, e.N, err)
		}
	}
	return nil
}

// Imported lists the runs that came from elsewhere.
func (b *Bus) Imported(ctx context.Context) ([]string, error) {
	s, err := b.stream(ctx, streamImported)
	if err != nil {
		return nil, fmt.Errorf("bus: imported runs: %w", err)
	}
	filter := wire.ImportedSubject(wire.NameFilter(run.Closed{}.Name()))
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("bus: imported runs: %w", err)
	}
	var out []string
	for subject := range info.State.Subjects {
		if addr, err := wire.ParseEvent(wire.OwnSubject(subject)); err == nil {
			out = append(out, addr.Run)
		}
	}
	return out, nil
}

// AnyLog reads the log of a run, own or imported.
func (b *Bus) AnyLog(ctx context.Context, id string) (Log, error) {
	l, err := b.ReadLog(ctx, id)
	if err != nil || len(l.Events) > 0 {
		return l, err
	}
	events, err := b.rawLog(ctx, streamImported, wire.ImportedFilter(id))
	if err != nil {
		return l, err
	}
	return decodeLog(id, events)
}
