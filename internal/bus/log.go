package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Log is a run's log as it was read.
type Log struct {
	Run    string
	Events []run.Event
	// Last is the stream sequence of the last event, 0 for an empty log.
	Last uint64
}

// State folds the log.
func (l Log) State() (run.State, error) { return run.FoldAll(l.Run, l.Events) }

// readBatch is the most events of one read; a log is shorter.
const readBatch = 1000

// ReadLog reads all events of a run. An unreadable event is an error: a log
// with a hole must never be taken for a shorter one.
func (b *Bus) ReadLog(ctx context.Context, id string) (Log, error) {
	l := Log{Run: id}
	msgs, err := jetstreamext.GetBatch(ctx, b.js, streamRuns, readBatch, jetstreamext.GetBatchSubject(wire.RunFilter(id)))
	if err != nil {
		return l, fmt.Errorf("bus: log of %s: %w", id, err)
	}
	for msg, err := range msgs {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			return l, nil
		}
		if err != nil {
			return l, fmt.Errorf("bus: log of %s: %w", id, err)
		}
		e, err := decodeEvent(msg.Subject, msg.Data)
		if err != nil {
			return l, fmt.Errorf("bus: log of %s: sequence %d: %w", id, msg.Sequence, err)
		}
		if e.N != len(l.Events)+1 {
			return l, fmt.Errorf("bus: log of %s: event %d follows event %d", id, e.N, len(l.Events))
		}
		l.Events = append(l.Events, e)
		l.Last = msg.Sequence
	}
	return l, nil
}

func decodeEvent(subject string, body []byte) (run.Event, error) {
	addr, err := wire.ParseEvent(subject)
	if err != nil {
		return run.Event{}, err
	}
	return wire.DecodeEvent(addr, body)
}

// errConflict says that somebody else appended to the log first.
var errConflict = errors.New("bus: the log has moved on")

// Codes of the server for a failed compare-and-set.
const (
	codeWrongLast         = 10071
	codeWrongLastConstant = 10164
)

// append adds e to the log whose last event has the sequence last, or
// returns errConflict. A publish whose acknowledgement is lost is a conflict
// too: only a read tells whether it was stored.
func (b *Bus) append(ctx context.Context, id string, last uint64, e run.Event, home string) (uint64, error) {
	body, err := wire.EncodeEvent(e)
	if err != nil {
		return 0, err
	}
	name := e.Command.Name()
	head := wire.Envelope("conductor", id+"/"+strconv.Itoa(e.N), "run."+name, id, time.Now())
	head[wire.HomeHeader] = []string{home}
	sum := sha256.Sum256(body)
	msg := &nats.Msg{Subject: wire.EventSubject(id, name, e.N), Header: nats.Header(head), Data: body}
	fault.Point("bus.append." + name)
	ack, err := b.js.PublishMsg(ctx, msg,
		jetstream.WithExpectLastSequenceForSubject(last, wire.RunFilter(id)),
		jetstream.WithMsgID(id+"/"+strconv.Itoa(e.N)+"/"+hex.EncodeToString(sum[:8])),
		jetstream.WithRetryAttempts(0))
	fault.Point("bus.appended." + name)
	switch {
	case err == nil && ack.Duplicate, isCode(err, codeWrongLast, codeWrongLastConstant):
		return 0, errConflict
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, nats.ErrTimeout):
		return 0, errConflict
	case err != nil:
		return 0, fmt.Errorf("bus: append %s of %s: %w", name, id, err)
	}
	return ack.Sequence, nil
}

func isCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// Runs lists the ids of all runs and whether each is closed.
func (b *Bus) Runs(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	s, err := b.js.Stream(ctx, streamRuns)
	if err != nil {
		return nil, fmt.Errorf("bus: runs: %w", err)
	}
	for _, name := range []string{run.Opened{}.Name(), run.Closed{}.Name()} {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(wire.NameFilter(name)))
		if err != nil {
			return nil, fmt.Errorf("bus: runs: %w", err)
		}
		for subject := range info.State.Subjects {
			if addr, err := wire.ParseEvent(subject); err == nil {
				out[addr.Run] = out[addr.Run] || name == run.Closed{}.Name()
			}
		}
	}
	return out, nil
}

// FindRun completes an id from its first characters.
func (b *Bus) FindRun(ctx context.Context, prefix string) (string, error) {
	all, err := b.Runs(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for id := range all {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no run %q; see 'nexus run ls'", prefix)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%q names %d runs; give more characters", prefix, len(found))
}
