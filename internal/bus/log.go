package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	// Imported is true for the run of another bus.
	Imported bool
}

// State folds the log.
func (l Log) State() (run.State, error) { return run.FoldAll(l.Run, l.Events) }

// known fails with wire.ErrNewer when a newer version has decided about the
// run: whoever goes on with it must know that version.
func (l Log) known() error {
	for _, e := range l.Events {
		if e.Decider > run.Decider {
			return fmt.Errorf("%w (event %d by decider %d, this one is %d)", wire.ErrNewer, e.N, e.Decider, run.Decider)
		}
	}
	return nil
}

// ReadLog reads all events of a run. An unreadable event is an error: a log
// with a hole must never be taken for a shorter one.
func (b *Bus) ReadLog(ctx context.Context, id string) (Log, error) {
	l := Log{Run: id}
	err := b.each(ctx, streamRuns, wire.RunFilter(id), func(msg *jetstream.RawStreamMsg) error {
		e, err := decodeEvent(msg.Subject, msg.Data)
		if err != nil {
			return fmt.Errorf("sequence %d: %w", msg.Sequence, err)
		}
		if e.N != len(l.Events)+1 {
			return fmt.Errorf("event %d follows event %d", e.N, len(l.Events))
		}
		l.Events = append(l.Events, e)
		l.Last = msg.Sequence
		return nil
	})
	if err != nil {
		return l, fmt.Errorf("bus: log of %s: %w", id, err)
	}
	return l, nil
}

// currentLog reads a run's log as it is now. A replica that lags behind is not
// believed.
func (b *Bus) currentLog(ctx context.Context, id string) (Log, error) {
	for {
		l, err := b.ReadLog(ctx, id)
		if err != nil {
			return l, err
		}
		last, err := b.lastOf(ctx, id)
		if err != nil || l.Last >= last {
			return l, err
		}
	}
}

// lastOf returns the stream sequence of a run's last event, 0 for none. It
// asks the leader of the stream, which unlike a replica never lags behind.
func (b *Bus) lastOf(ctx context.Context, id string) (uint64, error) {
	req, err := json.Marshal(map[string]string{"last_by_subj": wire.RunFilter(id)})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	msg, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+streamRuns, req)
	if err != nil {
		return 0, fmt.Errorf("bus: last event of %s: %w", id, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Seq uint64 `json:"seq"`
		} `json:"message"`
	}
	if err := json.Unmarshal(msg.Data, &got); err != nil {
		return 0, fmt.Errorf("bus: last event of %s: %w", id, err)
	}
	switch {
	case got.Error == nil:
		return got.Message.Seq, nil
	case got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return 0, nil
	}
	return 0, fmt.Errorf("bus: last event of %s: %w", id, got.Error)
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

// record is an event on its way into the log whose last event has the stream
// sequence last.
type record struct {
	run  string
	last uint64
	n    int
	name string
	home string
	body []byte
}

// largeError says that an event is larger than the server takes.
type largeError struct{ size, limit int }

// Error implements error.
func (e *largeError) Error() string {
	return fmt.Sprintf("this leads to an event of %d bytes, the limit is %d", e.size, e.limit)
}

// headRoom is kept for the headers of a message.
const headRoom = 4 << 10

// append stores r and returns its sequence, or errConflict. A publish whose
// acknowledgement is lost is a conflict too: only a read tells whether it was
// stored.
func (b *Bus) append(ctx context.Context, r record) (uint64, error) {
	if limit := int(b.nc.MaxPayload()) - headRoom; len(r.body) > limit {
		return 0, &largeError{len(r.body), limit}
	}
	key := r.run + "/" + strconv.Itoa(r.n)
	head := wire.Envelope("conductor", key, "run."+r.name, r.run, time.Now())
	head[wire.HomeHeader] = []string{r.home}
	sum := sha256.Sum256(r.body)
	msg := &nats.Msg{Subject: wire.EventSubject(r.run, r.name, r.n), Header: nats.Header(head), Data: r.body}
	fault.Point("bus.append." + r.name)
	ack, err := b.publish(ctx, msg,
		jetstream.WithExpectLastSequenceForSubject(r.last, wire.RunFilter(r.run)),
		jetstream.WithMsgID(key+"/"+hex.EncodeToString(sum[:8])),
		jetstream.WithRetryAttempts(0))
	fault.Point("bus.appended." + r.name)
	switch {
	case err == nil && ack.Duplicate, isCode(err, codeWrongLast, codeWrongLastConstant):
		return 0, errConflict
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, nats.ErrTimeout):
		return 0, errConflict
	case err != nil:
		return 0, fmt.Errorf("bus: append %s of %s: %w", r.name, r.run, err)
	}
	return ack.Sequence, nil
}

func isCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// Runs lists the ids of all runs and whether each is closed. What lacks its
// first event is no run, but what is left of one that was removed.
func (b *Bus) Runs(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	s, err := b.stream(ctx, streamRuns)
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
				if _, open := out[addr.Run]; name == (run.Opened{}).Name() || open {
					out[addr.Run] = name == run.Closed{}.Name()
				}
			}
		}
	}
	return out, nil
}

// FindRun completes an id from its first characters. It fails with *IDError.
func (b *Bus) FindRun(ctx context.Context, prefix string) (string, error) {
	all, err := b.Runs(ctx)
	if err != nil {
		return "", err
	}
	others, err := b.Imported(ctx)
	if err != nil {
		return "", err
	}
	for _, id := range others {
		all[id] = true
	}
	return CompleteID(all, prefix)
}

// IDError says that the beginning of an id does not name one run.
type IDError struct {
	Prefix string
	// Runs is how many ids begin so.
	Runs int
}

// Error implements error.
func (e *IDError) Error() string {
	if e.Runs == 0 {
		return fmt.Sprintf("no run %q; see 'nexus run ls'", e.Prefix)
	}
	return fmt.Sprintf("%q names %d runs; give more characters", e.Prefix, e.Runs)
}

// CompleteID returns the one run whose id begins with prefix, or *IDError.
func CompleteID(runs map[string]bool, prefix string) (string, error) {
	found, n := "", 0
	for id := range runs {
		if strings.HasPrefix(id, prefix) {
			found = id
			n++
		}
	}
	if n != 1 {
		return "", &IDError{prefix, n}
	}
	return found, nil
}
