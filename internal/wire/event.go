package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"nexuscore.dev/nexus/internal/run"
)

// eventBody is the JSON body of an event; the subject says which command it
// holds.
type eventBody struct {
	Decider    int             `json:"decider"`
	Fact       *run.Fact       `json:"fact,omitempty"`
	Opened     *run.Opened     `json:"opened,omitempty"`
	Ask        *run.Ask        `json:"ask,omitempty"`
	Cancelling *run.Cancelling `json:"cancelling,omitempty"`
	Ended      *run.Ended      `json:"ended,omitempty"`
	Settled    *run.Settled    `json:"settled,omitempty"`
}

// ErrMalformed is wrapped by every error about a body that cannot be read.
var ErrMalformed = errors.New("wire: malformed message")

// ErrNewer says that a newer version wrote the message: what it means is not
// known here.
var ErrNewer = errors.New("wire: written by a newer nexus")

// Known fails with ErrNewer when the body of an event names a decider that is
// newer than this program's. A body that cannot be read is left to DecodeEvent.
func Known(body []byte) error {
	var b struct {
		Decider int `json:"decider"`
	}
	if err := json.Unmarshal(body, &b); err == nil && b.Decider > run.Decider {
		return fmt.Errorf("%w (decider %d, this one knows %d)", ErrNewer, b.Decider, run.Decider)
	}
	return nil
}

// EncodeEvent is the body of an event.
func EncodeEvent(e run.Event) ([]byte, error) {
	b := eventBody{Decider: e.Decider, Fact: e.Fact}
	switch c := e.Command.(type) {
	case run.Opened:
		b.Opened = &c
	case run.Ask:
		b.Ask = &c
	case run.Cancelling:
		b.Cancelling = &c
	case run.Ended:
		b.Ended = &c
	case run.Settled:
		b.Settled = &c
	case run.Result, run.Due, run.Closed:
	default:
		return nil, fmt.Errorf("wire: event %d holds no command", e.N)
	}
	return json.Marshal(b)
}

// DecodeEvent reads an event back from its address and body.
func DecodeEvent(a Address, body []byte) (run.Event, error) {
	var b eventBody
	if err := json.Unmarshal(body, &b); err != nil {
		return run.Event{}, fmt.Errorf("%w: %s: %w", ErrMalformed, a.Name, err)
	}
	if b.Decider < 1 || b.bodies() > 1 {
		return run.Event{}, fmt.Errorf("%w: %s: not the body of one event", ErrMalformed, a.Name)
	}
	e := run.Event{N: a.N, Decider: b.Decider, Fact: b.Fact}
	switch {
	case b.Opened != nil:
		e.Command = *b.Opened
	case b.Ask != nil:
		e.Command = *b.Ask
	case b.Cancelling != nil:
		e.Command = *b.Cancelling
	case b.Ended != nil:
		e.Command = *b.Ended
	case b.Settled != nil:
		e.Command = *b.Settled
	default:
		e.Command = bare(a.Name)
	}
	if ask, ok := e.Command.(run.Ask); ok && kind(string(ask.Worker)) {
		return run.Event{}, fmt.Errorf("%w: %q is no worker", ErrMalformed, ask.Worker)
	}
	if e.Command == nil || e.Command.Name() != a.Name {
		return run.Event{}, fmt.Errorf("%w: no body for %q", ErrMalformed, a.Name)
	}
	return e, nil
}

func (b eventBody) bodies() int {
	return count(b.Opened != nil, b.Ask != nil, b.Cancelling != nil, b.Ended != nil, b.Settled != nil)
}

func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

// kind reports whether name is that of an event which is no ask.
func kind(name string) bool {
	for _, c := range []run.Command{run.Opened{}, run.Cancelling{}, run.Ended{}, run.Settled{}} {
		if c.Name() == name {
			return true
		}
	}
	return bare(name) != nil
}

// bare returns the command that has no body, or nil.
func bare(name string) run.Command {
	for _, c := range []run.Command{run.Result{}, run.Due{}, run.Closed{}} {
		if c.Name() == name {
			return c
		}
	}
	return nil
}
