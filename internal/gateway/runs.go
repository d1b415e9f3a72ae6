package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// view is a run as this API shows it.
type view struct {
	run.Summary
	// Terminal is true when State is one that a run ends with.
	Terminal bool       `json:"terminal"`
	Closed   bool       `json:"closed"`
	Opened   time.Time  `json:"opened_at"`
	Updated  time.Time  `json:"updated_at"`
	Settled  *time.Time `json:"settled_at"`
	Links    links      `json:"links"`
}

func viewOf(s run.State) view {
	v := view{
		Summary: run.Summarise(s), Terminal: s.Ended != nil, Closed: s.Closed,
		Opened: s.OpenedAt, Updated: s.At, Links: linksOf(s.ID),
	}
	if s.Settled != nil {
		v.Settled = &s.SettledAt
	}
	return v
}

// maxDiff is the largest diff that is part of an answer.
const maxDiff = 1 << 20

// show is viewOf with the diff, which is an artifact.
func (s *Server) show(ctx context.Context, st run.State) (view, error) {
	v := viewOf(st)
	c, _ := st.Winner()
	if c == nil || c.Diff.SHA256 == "" || c.Diff.Size > maxDiff {
		return v, nil
	}
	text, err := s.cfg.Bus.Artifacts().Get(ctx, c.Diff.SHA256)
	if err != nil {
		return v, busError(err)
	}
	v.Diff = string(text)
	return v, nil
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.times.bus)
	defer cancel()
	st, err := s.find(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := s.show(ctx, st)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, v)
}

// read folds the log of a run; N = 0 means that there is none.
func (s *Server) read(ctx context.Context, id string) (run.State, error) {
	l, err := s.cfg.Bus.ReadLog(ctx, id)
	if err != nil && !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrSubject) {
		return run.State{}, busError(err)
	}
	var st run.State
	if err == nil {
		st, err = l.State()
	}
	if err != nil {
		p := refuse(http.StatusInternalServerError, nameDamaged, "the log of run %s is damaged", id)
		p.cause = err
		return st, p
	}
	return st, nil
}

// idPattern is a run's id or its first characters.
var idPattern = regexp.MustCompile(`^[a-z2-7]{1,26}$`)

// find reads the run that an id, or its unique beginning, names.
func (s *Server) find(ctx context.Context, id string) (run.State, error) {
	if !idPattern.MatchString(id) {
		return run.State{}, refuse(http.StatusNotFound, nameNotFound, "%q is not the id of a run", id)
	}
	if !wire.ValidRun(id) {
		var err error
		if id, err = s.complete(ctx, id); err != nil {
			return run.State{}, err
		}
	}
	st, err := s.word(ctx, id)
	var p *problem
	switch {
	case errors.As(err, &p) && p.Type == problems+nameRefused:
		return st, refuse(http.StatusNotFound, nameRefused, "there is no run %s: %s", id, p.Detail)
	case err != nil:
		return st, err
	case st.N == 0:
		return st, refuse(http.StatusNotFound, nameNotFound, "there is no run %s, or its task is still queued", id)
	}
	return st, nil
}

func (s *Server) complete(ctx context.Context, prefix string) (string, error) {
	all, err := s.cfg.Bus.Runs(ctx)
	if err != nil {
		return "", busError(err)
	}
	id, err := bus.CompleteID(all, prefix)
	var wrong *bus.IDError
	switch {
	case err == nil:
		return id, nil
	case errors.As(err, &wrong) && wrong.Runs > 1:
		return "", refuse(http.StatusNotFound, nameNotFound, "%s begins the ids of %d runs; give more characters", prefix, wrong.Runs)
	}
	return "", refuse(http.StatusNotFound, nameNotFound, "there is no run %s", prefix)
}

// cancelRun orders a run to stop. Its folder is restored before it settles.
func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	reason, err := readReason(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.times.bus)
	defer cancel()
	st, err := s.find(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	order := run.Order{Kind: run.OrderCancel, Reason: reason}
	switch {
	case st.Ended != nil:
		return refuse(http.StatusConflict, nameEnded, "run %s has ended already: %s", st.ID, st.Ended.State)
	case st.Awaits(run.Fact{By: run.ByOperator, Order: &order}):
		if err := s.cfg.Bus.Order(ctx, st.ID, order); err != nil {
			return busError(err)
		}
	}
	return accept(w, st.ID, run.Summarise(st).State)
}

// maxReason is the most characters of a reason for cancelling.
const maxReason = 500

// readReason reads the optional body {"reason": "…"}.
func readReason(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := readBody(w, r)
	if err != nil {
		return "", err
	}
	const def = "cancelled over HTTP"
	if len(body) == 0 {
		return def, nil
	}
	if media, err := mediaType(r.Header); err != nil || media != mediaJSON {
		return "", refuse(http.StatusUnsupportedMediaType, nameMedia, "the content type must be %s", mediaJSON)
	}
	var in struct {
		Reason string `json:"reason"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || dec.More() {
		return "", refuse(http.StatusBadRequest, nameMalformed, `the body must be empty or {"reason": "…"}`)
	}
	if len(in.Reason) > maxReason {
		return "", refuse(http.StatusBadRequest, nameMalformed, "the reason is longer than %d bytes", maxReason)
	}
	if in.Reason == "" {
		return def, nil
	}
	return in.Reason, nil
}
