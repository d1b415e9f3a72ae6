package testrun

import (
	"bufio"
	"crypto/subtle"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"nexuscore.dev/nexus/internal/run"
)

const (
	// maxRecord bounds the whole record, maxLine one line of it.
	maxRecord = 64 << 20
	maxLine   = 4 << 20
)

// line is one message of runner.py.
type line struct {
	Nonce     string      `json:"n"`
	Kind      string      `json:"k"`
	ID        string      `json:"id"`
	IDs       []string    `json:"ids"`
	Outcome   run.Outcome `json:"o"`
	Exit      int         `json:"exit"`
	Outcomes  int         `json:"outcomes"`
	Collected int         `json:"collected"`
	Why       string      `json:"why"`
}

// record is what came through the private descriptor.
type record struct {
	outcomes  map[string]run.Outcome
	collected []string
	declared  []string
	running   string
	canary    run.Outcome
	done      *line
	fatal     string
	tampered  []string
	signs     []string
}

// parseRecord reads to the end of r, whatever comes. A record that reaches the
// limit of its length was cut, and has no end.
func parseRecord(r io.Reader, nonce string) record {
	rec := record{outcomes: map[string]run.Outcome{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			rec.tamper("a line of the record is not JSON")
			continue
		}
		if subtle.ConstantTimeCompare([]byte(l.Nonce), []byte(nonce)) != 1 {
			rec.tamper("a line of the record has a wrong nonce")
			continue
		}
		rec.take(l)
	}
	if lines.Err() != nil {
		rec.tamper("a line of the record is longer than its limit")
	}
	return rec
}

func (rec *record) tamper(why string) {
	if !slices.Contains(rec.tampered, why) {
		rec.tampered = append(rec.tampered, why)
	}
}

func (rec *record) take(l line) {
	if rec.done != nil {
		rec.tamper("the record goes on after its end")
		return
	}
	switch l.Kind {
	case "collected":
		rec.collected = append(rec.collected, l.IDs...)
	case "declared":
		rec.declared = append(rec.declared, l.IDs...)
	case "start":
		rec.running = l.ID
	case "outcome":
		rec.outcomes[l.ID] = l.Outcome
		rec.running = ""
	case "canary":
		rec.canary = l.Outcome
	case "sign":
		rec.signs = append(rec.signs, l.Why)
	case "fatal":
		rec.fatal = l.Why
	case "done":
		rec.done = &l
	default:
		rec.tamper("the record holds an unknown message")
	}
}

// into completes the evidence of the sandbox with the record.
func (rec record) into(e *run.Evidence) {
	e.Outcomes = maps.Clone(rec.outcomes)
	e.Collected, e.Declared, e.Tampered, e.Signs = rec.collected, rec.declared, rec.tampered, rec.signs
	e.Canary = rec.canary == run.OutcomeFailed
	if rec.fatal != "" {
		e.Infrastructure = rec.fatal
	}
	if (e.Timeout || e.Limit != "") && rec.running != "" {
		// The test that was running is the one that did not come back.
		if _, reported := e.Outcomes[rec.running]; !reported && slices.Contains(rec.collected, rec.running) {
			e.Outcomes[rec.running] = run.OutcomeError
		}
	}
	if rec.done == nil {
		return
	}
	e.Completed = e.Signal == "" && !e.Timeout && e.Limit == ""
	if rec.done.Exit != e.Exit && e.Completed {
		e.Tampered = append(e.Tampered, "the exit status is not the one in the record")
	}
	if rec.done.Outcomes != len(rec.outcomes) || rec.done.Collected != len(rec.collected) {
		e.Tampered = append(e.Tampered, "the record does not add up")
	}
}
