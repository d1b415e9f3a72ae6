package gateway

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// stateQueued is the state of a task that no conductor has taken yet.
const stateQueued run.Terminal = "QUEUED"

// accepted is the answer to a task.
type accepted struct {
	Run   string       `json:"run"`
	State run.Terminal `json:"state"`
	Links links        `json:"links"`
}

type links struct {
	Self   string `json:"self"`
	Events string `json:"events"`
	Cancel string `json:"cancel"`
}

func linksOf(id string) links {
	self := "/v1/runs/" + id
	return links{Self: self, Events: self + "/events", Cancel: self + "/cancel"}
}

func accept(w http.ResponseWriter, id string, state run.Terminal) error {
	w.Header().Set("Location", linksOf(id).Self)
	return sendJSON(w, http.StatusAccepted, accepted{Run: id, State: state, Links: linksOf(id)})
}

// postTask takes a task: it is read, held against the roots, submitted once
// for its key, and answered as soon as the conductor has said its word.
func (s *Server) postTask(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	got, err := decodeTask(s.tasks, r.Header, body)
	if err != nil {
		return err
	}
	if err := s.allowed(got.Heal.Dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.times.bus)
	defer cancel()
	key, given := keyOf(s.cfg.Tenant, got)
	if given {
		state, err := s.known(ctx, key, got.Heal)
		if err != nil {
			return err
		}
		if state != "" {
			return accept(w, wire.RunID(s.cfg.Tenant, "key", key), state)
		}
	}
	id, err := s.cfg.Bus.Submit(ctx, s.cfg.Tenant, key, got.Heal)
	switch {
	case errors.Is(err, bus.ErrFull):
		return refuse(http.StatusServiceUnavailable, nameFull, "the log of the runs is nearly full; no new task is taken")
	case err != nil:
		return busError(err)
	}
	state, err := s.await(ctx, id)
	if err != nil {
		return err
	}
	return accept(w, id, state)
}

// known returns the state of the run that the key stands for, or "" when the
// key is new. A key stands for one task: another one under it is refused, and
// a refused one stays refused.
func (s *Server) known(ctx context.Context, key string, h wire.Heal) (run.Terminal, error) {
	id := wire.RunID(s.cfg.Tenant, "key", key)
	st, err := s.word(ctx, id)
	if err != nil || st.N == 0 {
		return "", err
	}
	if !sameTask(st.Task, h) {
		return "", refuse(http.StatusConflict, nameReused, "this key already stands for another task, that of run %s", id)
	}
	return run.Summarise(st).State, nil
}

// sameTask compares what a task says for itself, without what rules add.
func sameTask(t run.Task, h wire.Heal) bool {
	return t.Dir == filepath.Clean(h.Dir) && t.Test == h.Test && t.InPlace == h.InPlace && t.Report == h.Report &&
		slices.Equal(t.Targets, h.Targets)
}

// word returns the run as far as the conductor has brought it, N = 0 when it
// has not said anything yet, or its refusal as an error.
func (s *Server) word(ctx context.Context, id string) (run.State, error) {
	st, err := s.read(ctx, id)
	if err != nil || st.N > 0 {
		return st, err
	}
	letter, err := s.cfg.Bus.Refusal(ctx, id)
	if err != nil {
		return st, busError(err)
	}
	if letter != nil {
		return st, refuse(http.StatusUnprocessableEntity, nameRefused, "the task is refused: %s", letter.Reason)
	}
	return st, nil
}

// askAgain is how often a submitted task is looked for.
const askAgain = 10 * time.Millisecond

// await waits for the conductor's word, and gives it up as queued after a
// while: the task is safe on the bus, even if that should be gone by now.
func (s *Server) await(ctx context.Context, id string) (run.Terminal, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AdmitWait)
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		st, err := s.word(ctx, id)
		switch {
		case ctx.Err() != nil:
			return stateQueued, nil
		case err != nil && !isBus(err):
			return "", err
		case err != nil:
			s.cfg.Log.Warn().Err(errors.Unwrap(err)).Str("run", id).Msg("submitted, but not seen")
		case st.N > 0:
			return run.Summarise(st).State, nil
		}
		select {
		case <-ctx.Done():
			return stateQueued, nil
		case <-tick.C:
		}
	}
}
