package wire_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
	"nexuscore.dev/nexus/internal/wire"
)

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// everyEvent is one event of each kind.
func everyEvent() []run.Event {
	at := runtest.Epoch
	commands := []run.Command{
		run.Opened{Task: runtest.Task(), At: at},
		run.Result{},
		run.Due{},
		run.Cancelling{Reason: "why"},
		run.Ended{
			State: run.Failed, Reason: "why", Dead: &run.DeadLetter{Category: "sandbox", Worker: run.Test, Ask: 7, Reason: "why"},
			Rollback: &run.RollbackInput{Dir: "/a", Home: "h", InPlace: true},
		},
		run.Settled{State: run.Approved, Proven: true, Before: "a", After: "b", Conflicts: []string{"c"}},
		run.Closed{},
	}
	review, tree := &run.ReviewInput{Candidate: runtest.Candidate(0, "fix")}, runtest.Tree("origin")
	for _, a := range []run.Ask{
		{Worker: run.Snapshot, Snapshot: &run.SnapshotInput{Dir: "/a"}},
		{Worker: run.Test, Test: &run.TestInput{Dir: "/a", Base: tree, Baseline: &run.Ref{SHA256: "x", Size: 1}}},
		{Worker: run.Debugger, Again: 2, Last: "timeout: slow", Debug: &run.DebugInput{Attempt: 1, Source: run.SourceModel, Seconds: 0.1}},
		{Worker: run.Validate, Validate: &run.ValidateInput{Proposals: []run.Proposal{{Format: "auto"}}}},
		{Worker: run.Apply, Apply: &run.ApplyInput{InPlace: true}},
		{Worker: run.Guardian, Review: review},
		{Worker: run.Policy, Review: review},
		{Worker: run.Deliver, Deliver: &run.DeliverInput{Mode: run.DeliverPatch}},
		{Worker: run.Rollback, Rollback: &run.RollbackInput{Origin: &tree}},
		{Worker: run.Report, Report: &run.ReportInput{InProject: true}},
	} {
		commands = append(commands, a)
	}
	var out []run.Event
	for i, c := range commands {
		e := run.Event{N: i + 1, Decider: run.Decider, Command: c}
		if i%2 == 1 {
			e.Fact = &run.Fact{By: run.ByClock, At: at.Add(1234567 * time.Nanosecond), Timer: run.TimerRetry}
		}
		out = append(out, e)
	}
	return out
}

func TestEveryEventSurvivesTheWire(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range everyEvent() {
		name := e.Command.Name()
		seen[name] = true
		body, err := wire.EncodeEvent(e)
		require.NoError(t, err)
		a, err := wire.ParseEvent(wire.EventSubject(runID, name, e.N))
		require.NoError(t, err)
		got, err := wire.DecodeEvent(a, body)
		require.NoError(t, err, name)
		require.Equal(t, e, got, name)
	}
	require.Equal(t, sorted(names), sorted(seen), "a kind of event is not tested")
}

func TestAnEventNeedsACommand(t *testing.T) {
	t.Parallel()
	_, err := wire.EncodeEvent(run.Event{N: 1})
	require.Error(t, err)
}

func TestEventsThatNobodyWrote(t *testing.T) {
	t.Parallel()
	for body, name := range map[string]string{
		``:                                       "due",
		`null`:                                   "due",
		`[]`:                                     "due",
		`{}`:                                     "due",
		`{"decider":0}`:                          "due",
		`{"decider":1}`:                          "opened",
		`{"decider":1,"fact":7}`:                 "due",
		`{"decider":1,"ended":{}}`:               "settled",
		`{"decider":1,"ended":{},"settled":{}}`:  "ended",
		`{"decider":1,"ask":{"worker":"test"}}`:  "apply",
		`{"decider":1,"ask":{"worker":""}}`:      "opened",
		`{"decider":1,"ask":{"worker":"ended"}}`: "ended",
		`{"decider":1,"ask":{"worker":"opened"}}`: "opened",
		`{"decider":1,"ask":{"worker":"due"}}`:    "due",
	} {
		_, err := wire.DecodeEvent(wire.Address{Name: name, Run: runID, N: 3}, []byte(body))
		require.ErrorIs(t, err, wire.ErrMalformed, "%s as %s", body, name)
	}
	e, err := wire.DecodeEvent(wire.Address{Name: "librarian", Run: runID, N: 3},
		[]byte(`{"decider":9,"ask":{"worker":"librarian","new":1},"later":true}`))
	require.NoError(t, err, "a worker of a later version")
	require.Equal(t, run.Ask{Worker: "librarian"}, e.Command)
}

func TestTheEnvelope(t *testing.T) {
	t.Parallel()
	h := wire.Envelope("conductor", "abc/1", "opened", runID, runtest.Epoch.In(time.FixedZone("east", 3600)))
	for name, want := range map[string]string{
		"CE-SpecVersion": "1.0", "ce-id": "abc/1", "ce-source": "/nexus/conductor", "ce-type": "dev.nexuscore.opened",
		"ce-subject": runID, "ce-time": "2026-03-01T09:00:00Z", "Content-Type": "application/json", "absent": "",
	} {
		require.Equal(t, want, h.Get(name), name)
	}
}

// FuzzEvent: a decoder never panics, and what it accepts is written again as
// it reads.
func FuzzEvent(f *testing.F) {
	for _, e := range everyEvent() {
		body, err := wire.EncodeEvent(e)
		require.NoError(f, err)
		f.Add(e.Command.Name(), body)
	}
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		a, err := wire.ParseEvent(wire.EventSubject(runID, name, 5))
		if err != nil {
			return
		}
		e, err := wire.DecodeEvent(a, body)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		require.Equal(t, name, e.Command.Name())
		first, err := wire.EncodeEvent(e)
		if err != nil {
			return // a year that JSON cannot hold
		}
		again, err := wire.DecodeEvent(a, first)
		require.NoError(t, err, "%s", first)
		second, err := wire.EncodeEvent(again)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
