package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"nexuscore.dev/nexus/internal/run"
)

// Outcome is the body of an outcome, as schemas/outcome.json describes it:
// exactly one field is set.
type Outcome struct {
	Answer  *run.Answer  `json:"answer,omitempty"`
	Failure *run.Failure `json:"failure,omitempty"`
	Order   *run.Order   `json:"order,omitempty"`
}

var errOneOf = errors.New("an outcome holds exactly one of answer, failure and order")

// EncodeOutcome is the body of an outcome.
func EncodeOutcome(o Outcome) ([]byte, error) {
	if count(o.Answer != nil, o.Failure != nil, o.Order != nil) != 1 {
		return nil, fmt.Errorf("wire: %w", errOneOf)
	}
	return json.Marshal(o)
}

// DecodeOutcome reads an outcome's body. Every error wraps ErrMalformed. It
// accepts what schemas/outcome.json accepts, as long as numbers that count
// are written without a fraction.
func DecodeOutcome(body []byte) (Outcome, error) {
	o, err := decodeOutcome(body)
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: outcome: %w", ErrMalformed, err)
	}
	return o, nil
}

func decodeOutcome(body []byte) (o Outcome, err error) {
	top, err := object(body)
	if err != nil {
		return o, err
	}
	answer, a := top["answer"]
	failure, f := top["failure"]
	order, p := top["order"]
	if count(a, f, p) != 1 {
		return o, errOneOf
	}
	switch {
	case a:
		o.Answer, err = decodeAnswer(answer)
	case f:
		o.Failure, err = decodeFailure(failure)
	default:
		o.Order, err = decodeOrder(order)
	}
	return o, err
}

// object reads a JSON object whose keys are taken as they are written:
// package json alone would take "Answer" for answer.
func object(body []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("not an object")
	}
	return m, nil
}

// exactly decodes a body into dst without the keys that are spelt in another
// way than ours; those are unknown fields.
func exactly(body []byte, dst any) (map[string]json.RawMessage, error) {
	m, err := object(body)
	if err != nil {
		return nil, err
	}
	odd := 0
	for k := range m {
		if !fieldPattern.MatchString(k) {
			delete(m, k)
			odd++
		}
	}
	if odd > 0 {
		if body, err = json.Marshal(m); err != nil {
			return nil, err
		}
	}
	return m, json.Unmarshal(body, dst)
}

func decodeAnswer(body []byte) (*run.Answer, error) {
	m, err := object(body)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	if len(m) != 1 {
		return nil, fmt.Errorf("answer: holds the answer of one worker, not of %d", len(m))
	}
	var a run.Answer
	if _, err := exactly(body, &a); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return &a, nil
}

func decodeFailure(body []byte) (*run.Failure, error) {
	var f run.Failure
	m, err := exactly(body, &f)
	if err != nil {
		return nil, fmt.Errorf("failure: %w", err)
	}
	for _, name := range []string{"category", "message"} {
		if _, ok := m[name]; !ok {
			return nil, fmt.Errorf("failure: missing %s", name)
		}
	}
	for name, v := range m {
		if string(v) == "null" && slices.Contains(failureFields, name) {
			return nil, fmt.Errorf("failure: %s must not be null", name)
		}
	}
	switch {
	case f.Category == "":
		return nil, errors.New("failure: category must not be empty")
	case f.RetryAfter < 0 || f.Quota < 0 || f.Status < 0 || f.Calls < 0:
		return nil, errors.New("failure: retry_after, quota, status and calls must not be negative")
	}
	return &f, nil
}

var failureFields = []string{
	"category", "op", "message", "retry_after", "quota", "exhausted", "status", "bad_input", "calls",
}

func decodeOrder(body []byte) (*run.Order, error) {
	var o run.Order
	m, err := exactly(body, &o)
	if err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	if !slices.Contains([]run.OrderKind{run.OrderCancel, run.OrderPark, run.OrderResume}, o.Kind) {
		return nil, fmt.Errorf("order: kind must be cancel, park or resume, not %q", o.Kind)
	}
	if string(m["reason"]) == "null" {
		return nil, errors.New("order: reason must not be null")
	}
	o.Driver = nil
	if driver, ok := m["driver"]; ok {
		if o.Driver, err = decodeDriver(driver); err != nil {
			return nil, fmt.Errorf("order: driver: %w", err)
		}
	}
	return &o, nil
}

func decodeDriver(body []byte) (*run.Driver, error) {
	var d run.Driver
	m, err := exactly(body, &d)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"pid", "start", "host"} {
		if v, ok := m[name]; !ok || string(v) == "null" {
			return nil, fmt.Errorf("missing %s", name)
		}
	}
	if d.PID < 1 {
		return nil, fmt.Errorf("pid must be at least 1, not %d", d.PID)
	}
	return &d, nil
}
