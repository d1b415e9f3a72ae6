package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"nexuscore.dev/nexus/internal/run"
)

// entry is one event of a run's log as the stream shows it.
type entry struct {
	N     int       `json:"n"`
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	// By stated the fact that led to the event; Ask is the ask it answers.
	By  run.By `json:"by,omitempty"`
	Ask int    `json:"ask,omitempty"`
	// Again counts the redeliveries of an ask.
	Again   int          `json:"again,omitempty"`
	State   run.Terminal `json:"state"`
	Step    string       `json:"step"`
	Attempt int          `json:"attempt"`
	Reason  string       `json:"reason,omitempty"`
}

func entryOf(e run.Event, s run.State) entry {
	sum := run.Summarise(s)
	out := entry{N: e.N, Event: e.Command.Name(), At: s.At, State: sum.State, Step: sum.Step, Attempt: len(sum.Tries)}
	if f := e.Fact; f != nil {
		out.By, out.Ask = f.By, f.Ask
		switch {
		case f.Failure != nil:
			out.Reason = f.Failure.Category + ": " + f.Failure.Message
		case f.Order != nil:
			out.Reason = string(f.Order.Kind) + ": " + f.Order.Reason
		}
	}
	switch c := e.Command.(type) {
	case run.Ask:
		out.Again = c.Again
	case run.Ended:
		out.Reason = c.Reason
	case run.Cancelling:
		out.Reason = c.Reason
	default:
	}
	return out
}

// step is an event with the state after it.
type step struct {
	event run.Event
	state run.State
}

// streamEvents sends the log of a run from its first event, or from the one
// after Last-Event-ID, until the run is closed; the last event is the result.
// A client that comes back after that is told to stay away: 204.
func (s *Server) streamEvents(stopping <-chan struct{}) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		seen, err := lastSeen(r)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		st, err := s.lookUp(ctx, r.PathValue("id"))
		if err != nil {
			return err
		}
		if st.Closed && seen >= st.N {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
		default:
			return refuse(http.StatusServiceUnavailable, nameBusy, "%d event streams are open, which is the limit", cap(s.streams))
		}
		out, err := s.begin(w)
		if err != nil || r.Method == http.MethodHead {
			return err
		}
		steps, failed := s.follow(ctx, st.ID)
		defer func() {
			cancel()
			for range failed { // until the follower has ended
			}
		}()
		return s.pump(ctx, out, seen, steps, failed, stopping)
	}
}

// lookUp finds a run within the time of one request.
func (s *Server) lookUp(ctx context.Context, id string) (run.State, error) {
	ctx, cancel := context.WithTimeout(ctx, s.times.bus)
	defer cancel()
	return s.find(ctx, id)
}

// lastSeen is the number of the last event that the client has.
func lastSeen(r *http.Request) (int, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, refuse(http.StatusBadRequest, nameMalformed, "Last-Event-ID must be the number of an event, not %q", text)
	}
	return n, nil
}

// follow reads the log of a run until it is closed or ctx ends. failed gets
// one error, nil at the end of the log, and is closed.
func (s *Server) follow(ctx context.Context, id string) (steps <-chan step, failed <-chan error) {
	out, end := make(chan step), make(chan error, 1)
	go func() {
		defer close(end)
		end <- s.cfg.Bus.Follow(ctx, id, func(e run.Event, st run.State) bool {
			select {
			case out <- step{e, st}:
				return !st.Closed
			case <-ctx.Done():
				return false
			}
		})
	}()
	return out, end
}

// pump writes what happens, and a comment when nothing does: so a client that
// is gone is noticed.
func (s *Server) pump(ctx context.Context, out *stream, seen int, steps <-chan step, failed <-chan error, stopping <-chan struct{}) error {
	beat := time.NewTicker(s.times.beat)
	defer beat.Stop()
	for {
		var err error
		select {
		case st := <-steps:
			if st.event.N > seen {
				err = out.send(st.event.N, "event", entryOf(st.event, st.state))
			}
			if st.state.Closed && err == nil {
				return s.result(ctx, out, st.state)
			}
		case <-beat.C:
			err = out.comment()
		case err := <-failed:
			return err
		case <-stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *Server) result(ctx context.Context, out *stream, st run.State) error {
	ctx, cancel := context.WithTimeout(ctx, s.times.bus)
	defer cancel()
	v, err := s.show(ctx, st)
	if err != nil {
		return err
	}
	return out.send(st.N, "result", v)
}

// stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	write time.Duration
}

// begin starts the answer. Its writes have deadlines of their own, for the
// server's is meant for short answers.
func (s *Server) begin(w http.ResponseWriter) (*stream, error) {
	out := &stream{w, http.NewResponseController(w), s.times.write}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return out, out.flush("")
}

func (s *stream) send(id int, kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.flush(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, kind, data))
}

func (s *stream) comment() error { return s.flush(": waiting\n\n") }

// flush writes text to the connection within the time of one write.
func (s *stream) flush(text string) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.write)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}
