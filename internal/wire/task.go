package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/schemas"
)

// KindHeal is the kind of a task that asks to heal a folder.
const KindHeal = "heal"

// Heal is the body of a heal task, as schemas/heal.json describes it.
type Heal struct {
	Dir     string      `json:"dir"`
	Home    string      `json:"home,omitempty"`
	Test    string      `json:"test,omitempty"`
	Targets []string    `json:"targets,omitempty"`
	Sources []string    `json:"sources,omitempty"`
	Deliver string      `json:"deliver,omitempty"`
	InPlace bool        `json:"in_place,omitempty"`
	Report  bool        `json:"report,omitempty"`
	Policy  string      `json:"policy,omitempty"`
	Limits  *HealLimits `json:"limits,omitempty"`
	Child   *run.Child  `json:"child,omitempty"`
	Driver  *run.Driver `json:"driver,omitempty"`
}

// HealLimits are the limits that a task may set; nil keeps the default.
type HealLimits struct {
	DebugAttempts *int     `json:"debug_attempts,omitempty"`
	ASTFails      *int     `json:"ast_fails,omitempty"`
	ReviewRounds  *int     `json:"review_rounds,omitempty"`
	ModelCalls    *int     `json:"model_calls,omitempty"`
	Seconds       *float64 `json:"seconds,omitempty"`
	Events        *int     `json:"events,omitempty"`
	DelayScale    *float64 `json:"delay_scale,omitempty"`
}

// HealOf is the body of a task that asks for the same as t does. The process
// that waited for t is left out.
func HealOf(t run.Task) Heal {
	l := t.Limits
	h := Heal{
		Dir: t.Dir, Home: t.Home, Test: t.Test, Targets: t.Targets, Deliver: string(t.Deliver), InPlace: t.InPlace,
		Report: t.Report, Policy: t.Policy, Child: t.Child, Limits: &HealLimits{
			DebugAttempts: &l.DebugAttempts, ASTFails: &l.ASTFails, ReviewRounds: &l.ReviewRounds,
			ModelCalls: l.ModelCalls, Seconds: &l.Seconds, Events: &l.Events, DelayScale: &l.DelayScale,
		},
	}
	for _, s := range t.Sources {
		h.Sources = append(h.Sources, string(s))
	}
	return h
}

// Over returns base with the limits that h sets.
func (h *HealLimits) Over(base run.Limits) run.Limits {
	if h == nil {
		return base
	}
	set(&base.DebugAttempts, h.DebugAttempts)
	set(&base.ASTFails, h.ASTFails)
	set(&base.ReviewRounds, h.ReviewRounds)
	set(&base.Seconds, h.Seconds)
	set(&base.Events, h.Events)
	set(&base.DelayScale, h.DelayScale)
	if h.ModelCalls != nil {
		base.ModelCalls = h.ModelCalls
	}
	return base
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// Tasks decodes tasks. It is safe for concurrent use.
type Tasks struct{ heal *jsonschema.Schema }

// NewTasks compiles the schemas.
func NewTasks() (*Tasks, error) {
	s, err := schemas.Compile(schemas.Heal)
	if err != nil {
		return nil, err
	}
	return &Tasks{heal: s}, nil
}

// Received is a decoded task and what identifies it.
type Received struct {
	Heal Heal
	// Key is the Idempotency-Key, else the CloudEvents source and id, else
	// empty: then the message's own time and sequence identify the task.
	Key []string
}

// Decode reads a task in CloudEvents binary or structured mode, or as plain
// JSON. A field that the schema does not know is refused: it may be the option
// of a newer client that keeps a folder from being written. The attributes of
// an event are free. Every error wraps ErrMalformed.
func (t *Tasks) Decode(h Header, kind string, body []byte) (Received, error) {
	var r Received
	if kind != KindHeal {
		return r, fmt.Errorf("%w: unknown kind of task %q, known: %s", ErrMalformed, kind, KindHeal)
	}
	source, id := h.Get("ce-source"), h.Get("ce-id")
	if media, _, err := mime.ParseMediaType(h.Get("content-type")); err == nil && media == structuredType {
		ev, err := unwrap(body)
		if err != nil {
			return r, fmt.Errorf("%w: structured CloudEvent: %w", ErrMalformed, err)
		}
		source, id, body = ev.Source, ev.ID, ev.Data
	}
	doc, err := check(t.heal, body)
	if err != nil {
		return r, err
	}
	if err := into(&r.Heal, doc); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch key := h.Get("idempotency-key"); {
	case key != "":
		r.Key = []string{"key", key}
	case source != "" && id != "":
		r.Key = []string{"event", source, id}
	}
	return r, nil
}

const structuredType = "application/cloudevents+json"

type structured struct {
	Version string          `json:"specversion"`
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Data    json.RawMessage `json:"data"`
	Base64  []byte          `json:"data_base64"`
}

// TaskBody is the task in a message whose headers are not known: the data of
// an event in structured mode, else the message itself.
func TaskBody(message []byte) []byte {
	if ev, err := unwrap(message); err == nil {
		return ev.Data
	}
	return message
}

// unwrap reads a CloudEvent in the JSON format.
func unwrap(body []byte) (structured, error) {
	var ev structured
	if err := json.Unmarshal(body, &ev); err != nil {
		return ev, err
	}
	if ev.Base64 != nil && ev.Data == nil {
		ev.Data = ev.Base64
	}
	switch {
	case ev.Version != "1.0":
		return ev, fmt.Errorf("specversion must be 1.0, not %q", ev.Version)
	case ev.ID == "" || ev.Source == "":
		return ev, errors.New("id and source must not be empty")
	case ev.Data == nil:
		return ev, errors.New("missing data")
	}
	return ev, nil
}

// check reads body and holds it against the schema.
func check(s *jsonschema.Schema, body []byte) (any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: not JSON: %w", ErrMalformed, err)
	}
	if err := s.Validate(doc); err != nil {
		var v *jsonschema.ValidationError
		if errors.As(err, &v) {
			if unknown := unknownFields(s, v); len(unknown) > 0 {
				return nil, fmt.Errorf("%w: %s", ErrMalformed, strings.Join(unknown, "; "))
			}
			return nil, fmt.Errorf("%w: %s", ErrMalformed, oneLine(v))
		}
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return doc, nil
}

// into decodes a document that a schema accepted: package json alone would
// refuse 3.0 where the schema wants an integer.
func into(dst, doc any) error {
	body, err := json.Marshal(canonical(doc))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, dst)
}

func canonical(doc any) any {
	switch v := doc.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = canonical(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = canonical(e)
		}
		return out
	case json.Number:
		return whole(v)
	}
	return doc
}

// whole writes an integer without fraction and exponent.
func whole(n json.Number) json.Number {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	return json.Number(strconv.FormatInt(int64(f), 10))
}

// oneLine keeps the leaves of a validation error, which say what is wrong.
func oneLine(v *jsonschema.ValidationError) string {
	lines := strings.Split(v.Error(), "\n")
	if len(lines) > 1 {
		lines = lines[1:]
	}
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "- ")
	}
	return strings.Join(lines, "; ")
}
