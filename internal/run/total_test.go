package run_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

// TestNothingIsTakenForGranted takes one thing after the other out of every
// state of a few lives, as a log of an older or a broken version might: no
// function of the core may panic.
func TestNothingIsTakenForGranted(t *testing.T) {
	t.Parallel()
	for _, s := range states(t) {
		for _, hole := range holes(reflect.ValueOf(s)) {
			broken := s
			hole(reflect.ValueOf(&broken).Elem())
			askEverything(t, broken)
		}
	}
}

// askEverything calls every function of the core on s.
func askEverything(t *testing.T, s run.State) {
	t.Helper()
	require.NotPanics(t, func() {
		for _, c := range run.Decide(s) {
			next, err := run.Fold(s, run.Event{N: s.N + 1, Decider: 1, Command: c})
			if err == nil {
				run.Decide(next)
			}
		}
		s.Timers()
		run.Summarise(s)
		for _, f := range everyFact(s) {
			s.Awaits(f)
			after := run.FoldFact(s, f)
			run.Decide(after)
			after.Timers()
			run.Summarise(after)
		}
	})
}

// everyFact lists a fact of every kind about every pending ask.
func everyFact(s run.State) []run.Fact {
	at := runtest.Epoch.Add(time.Minute)
	facts := []run.Fact{{At: at}, {At: at, Order: &run.Order{}}}
	for _, k := range []run.OrderKind{run.OrderCancel, run.OrderPark, run.OrderResume} {
		facts = append(facts, run.Fact{At: at, By: run.ByOperator, Order: &run.Order{Kind: k}})
	}
	for _, name := range []string{run.TimerClosing, run.TimerDeadline, run.TimerRetry, run.TimerWriter} {
		facts = append(facts, run.Fact{At: at, By: run.ByClock, Timer: name})
	}
	for n, ask := range s.Pending {
		by := run.By(ask.Worker)
		facts = append(facts,
			run.Fact{At: at, By: by, Ask: n}, run.Fact{At: at, By: by, Ask: n, Failure: &run.Failure{}},
			run.Fact{At: at, By: by, Ask: n, Failure: &run.Failure{Category: "timeout", RetryAfter: math.Inf(1), Quota: math.NaN()}})
		for _, a := range everyAnswer() {
			facts = append(facts, run.Fact{At: at, By: by, Ask: n, Answer: a})
		}
	}
	return facts
}

// everyAnswer lists answers of every type: empty ones, and ones that say as
// much as they can without meaning anything.
func everyAnswer() []*run.Answer {
	answers := []*run.Answer{{}}
	v := reflect.TypeFor[run.Answer]()
	for i := range v.NumField() {
		a := reflect.New(v).Elem()
		a.Field(i).Set(reflect.New(v.Field(i).Type.Elem()))
		answers = append(answers, a.Addr().Interface().(*run.Answer))
	}
	return append(answers,
		&run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("x")}},
		&run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictPassed, "", 0)}}}},
		&run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, "", 1)}}}},
		&run.Answer{Debug: &run.DebugAnswer{Proposals: []run.Proposal{{}}}},
		&run.Answer{Validate: &run.ValidateAnswer{Accepted: []run.Candidate{{}}}},
		&run.Answer{Validate: &run.ValidateAnswer{Rejected: []run.Rejection{{}}}},
		&run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{{}, {Tree: &run.Tree{}}}}},
		&run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove}},
		&run.Answer{Deliver: &run.DeliverAnswer{Delivered: run.DeliverNone}},
	)
}

// holes lists one function for every field of v, at any depth of structs and
// pointers, that empties it.
func holes(v reflect.Value) []func(reflect.Value) {
	var out []func(reflect.Value)
	for i := range v.NumField() {
		out = append(out, func(root reflect.Value) { root.Field(i).SetZero() })
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() && f.Elem().Kind() == reflect.Struct {
			for _, deeper := range holes(f.Elem()) {
				out = append(out, func(root reflect.Value) {
					fresh := reflect.New(f.Type().Elem())
					fresh.Elem().Set(f.Elem())
					deeper(fresh.Elem())
					root.Field(i).Set(fresh)
				})
			}
		}
		if f.Type() == reflect.TypeFor[[]run.Attempt]() && f.Len() > 0 {
			for _, deeper := range holes(f.Index(f.Len() - 1)) {
				out = append(out, func(root reflect.Value) {
					fresh := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
					reflect.Copy(fresh, f)
					deeper(fresh.Index(f.Len() - 1))
					root.Field(i).Set(fresh)
				})
			}
		}
		if f.Type() == reflect.TypeFor[run.Task]() {
			for _, deeper := range holes(f) {
				out = append(out, func(root reflect.Value) { deeper(root.Field(i)) })
			}
		}
	}
	return out
}

// states are the different ones of the runs of some scenarios.
func states(t *testing.T) []run.State {
	t.Helper()
	var out []run.State
	seen := map[string]bool{}
	for _, name := range []string{"deliver", "review", "model-failures", "stop", "end", "infrastructure"} {
		for _, r := range scenarioRuns(t, name) {
			s := run.State{ID: r.ID}
			for _, e := range r.Log {
				var err error
				s, err = run.Fold(s, e)
				require.NoError(t, err)
				if key := text(s); !seen[key] {
					seen[key] = true
					out = append(out, s)
				}
			}
		}
	}
	require.Greater(t, len(out), 100)
	return out
}

// TestAFoldedStateIsFree tells that Decide needs a run that was opened.
func TestAFoldedStateIsFree(t *testing.T) {
	t.Parallel()
	require.Empty(t, run.Decide(run.State{}))
	require.Empty(t, run.State{}.Timers())
	require.False(t, run.State{}.Awaits(run.Fact{Timer: run.TimerDeadline}))
	require.Equal(t, run.State{}, run.FoldFact(run.State{}, run.Fact{Timer: run.TimerDeadline, At: runtest.Epoch}))
}
