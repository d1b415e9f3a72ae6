package wire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
	"nexuscore.dev/nexus/internal/wire"
)

// -golden writes the logs of this version that testdata/golden lacks. A log
// that was released is never written again: every later version must read it.
var writeGolden = flag.Bool("golden", false, "write the golden logs that are missing")

// logged is one line of a golden log.
type logged struct {
	Subject string          `json:"subject"`
	Body    json.RawMessage `json:"body"`
}

// TestGoldenLogs reads every log ever released: it folds to a closed run, it
// is written again as it was read, and replaying it leads to the same
// commands, or to differing decisions of another version.
func TestGoldenLogs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		id, log := readGolden(t, file)
		s, err := run.FoldAll(id, log)
		require.NoError(t, err, file)
		require.True(t, s.Closed, file)
		require.NotNil(t, s.Settled, file)
		diffs, err := run.Verify(id, log)
		require.NoError(t, err, file)
		for _, d := range diffs {
			require.False(t, d.Corrupt(), "%s: %s", file, d)
		}
	}
}

// readGolden reads a log and checks that this version writes what it reads in
// the same bytes.
func readGolden(t *testing.T, file string) (string, []run.Event) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	id, log := "", []run.Event(nil)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l logged
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		a, err := wire.ParseEvent(l.Subject)
		require.NoError(t, err)
		e, err := wire.DecodeEvent(a, l.Body)
		require.NoError(t, err, "%s: %s", file, l.Subject)
		if e.Decider == run.Decider {
			again, err := wire.EncodeEvent(e)
			require.NoError(t, err)
			require.Equal(t, string(l.Body), string(again), "%s: %s", file, l.Subject)
		}
		id, log = a.Run, append(log, e)
	}
	require.NoError(t, lines.Err())
	return id, log
}

// TestLivesOfThisVersion plays the lives that the golden logs tell. What is
// in memory and what was read back from the wire must decide alike.
func TestLivesOfThisVersion(t *testing.T) {
	t.Parallel()
	for name, life := range lives() {
		r := runtest.New(wire.RunID("golden", name))
		require.NoError(t, r.Open(life.task), name)
		for !r.State.Closed {
			life.next(t, r)
		}
		text := encoded(t, r)
		file := filepath.Join("testdata", "golden", "v1-"+name+".jsonl")
		if _, err := os.Stat(file); os.IsNotExist(err) && *writeGolden {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		_, log := readGolden(t, file)
		require.Len(t, log, len(r.Log), name)
		for i := range log {
			want, err := wire.EncodeEvent(r.Log[i])
			require.NoError(t, err)
			got, err := wire.EncodeEvent(log[i])
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), "%s: event %d", name, i+1)
		}
	}
}

func encoded(t *testing.T, r *runtest.Run) string {
	t.Helper()
	var b strings.Builder
	for _, e := range r.Log {
		body, err := wire.EncodeEvent(e)
		require.NoError(t, err)
		line, err := json.Marshal(logged{wire.EventSubject(r.ID, e.Command.Name(), e.N), body})
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// life is a task and what happens to it: facts about the asks of a worker, in
// order. When they are used up the worker does its work.
type life struct {
	task   run.Task
	events map[run.Worker][]run.Fact
}

func (l life) next(t *testing.T, r *runtest.Run) {
	t.Helper()
	n, ask := r.Pending()
	if r.State.Parked {
		require.NoError(t, r.Tell(run.Fact{By: run.ByOperator, Order: &run.Order{Kind: run.OrderResume}}))
		return
	}
	if n == 0 {
		timers := r.State.Timers()
		require.NotEmpty(t, timers)
		_, err := r.Fire(timers[len(timers)-1].Name)
		require.NoError(t, err)
		return
	}
	f := run.Fact{Answer: work(ask)}
	if left := l.events[ask.Worker]; len(left) > 0 {
		f, l.events[ask.Worker] = left[0], left[1:]
	}
	if f.Order == nil && f.By == "" {
		f.By = run.By(ask.Worker)
	}
	if f.Order == nil {
		f.Ask = n
	}
	require.True(t, r.State.Awaits(f))
	require.NoError(t, r.Tell(f))
}

// lives are the logs of version 1.
func lives() map[string]life {
	task := func(change func(*run.Task)) run.Task {
		t := runtest.Task()
		if change != nil {
			change(&t)
		}
		return t
	}
	fail := func(f run.Failure) run.Fact { return run.Fact{Failure: &f} }
	order := func(k run.OrderKind) run.Fact {
		return run.Fact{By: run.ByOperator, Order: &run.Order{Kind: k, Reason: "a word"}}
	}
	reject := run.Fact{Answer: &run.Answer{Review: &run.ReviewAnswer{Word: run.WordReject, Reasons: []string{"It hides the failure."}}}}
	calls := 7
	return map[string]life{
		"approved": {task: task(func(t *run.Task) { t.Limits.ModelCalls, t.Report = &calls, true })},
		"sent-back": {task: task(func(t *run.Task) {
			t.Deliver, t.Targets, t.Limits.DebugAttempts = run.DeliverPatch, []string{"calc.py"}, 5
		}), events: map[run.Worker][]run.Fact{
			run.Debugger: {
				fail(run.Failure{Category: "rate_limit", Op: "llm: ask", Message: "slow down", RetryAfter: 2, Status: 429, Calls: 1}),
				fail(run.Failure{Category: "connection", Message: "reset", Status: 500}),
			},
			run.Validate: {{Answer: &run.Answer{Validate: &run.ValidateAnswer{Rejected: []run.Rejection{{
				Gate: "prose", Reason: "a sentence", Feedback: "Code only.", Status: run.StatusASTFail, Hash: "x",
			}}}}}},
			run.Apply: {{Answer: &run.Answer{Apply: &run.ApplyAnswer{Refused: []run.Rejection{{
				Gate: "paths", Reason: "unsafe", Feedback: "It has several names.", Status: run.StatusGateFail, Hash: "y",
			}}}}}},
			run.Guardian: {reject},
		}},
		"cancelled-in-place": {task: task(func(t *run.Task) {
			t.InPlace, t.Driver = true, &run.Driver{PID: 7, Start: 8, Host: "here"}
		}), events: map[run.Worker][]run.Fact{
			run.Debugger: {order(run.OrderPark)},
			run.Deliver:  {order(run.OrderCancel), fail(run.Failure{Category: "patch_apply", Message: "no"})},
			run.Rollback: {fail(run.Failure{Category: "sandbox", Message: "busy"}), {Answer: &run.Answer{Rollback: &run.RollbackAnswer{
				Before: "tree-x", After: "tree-y", Restored: []string{"calc.py"}, Conflicts: []string{"other.py"},
				Foreign: []string{"mine.txt"}, Counts: run.RollbackCounts{Restored: 1, Conflicts: 1, Foreign: 1},
			}}}},
		}},
		"error": {task: task(nil), events: map[run.Worker][]run.Fact{
			run.Test:     {fail(run.Failure{Category: "unexpected", Message: "panic"})},
			run.Rollback: {{By: run.BySweeper, Failure: &run.Failure{Category: "unexpected", Message: "lost"}}},
			run.Report:   {fail(run.Failure{Category: "timeout", Message: "slow"})},
		}},
		"nothing-to-do": {task: task(func(t *run.Task) { t.Sources = []run.Source{run.SourceEngine} }), events: map[run.Worker][]run.Fact{
			run.Test: {{Answer: &run.Answer{Test: &run.TestAnswer{Results: []run.TestResult{{
				Verdict: runtest.Verdict(run.VerdictPassed, "tree-origin", 0),
			}}}}}},
		}},
	}
}

// work is the honest answer of a worker that succeeds.
func work(ask run.Ask) *run.Answer {
	switch {
	case ask.Snapshot != nil:
		return &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}
	case ask.Test != nil && ask.Test.Baseline == nil:
		return &run.Answer{Test: &run.TestAnswer{
			Results: []run.TestResult{{Verdict: runtest.Verdict(run.VerdictFailed, ask.Test.Base.Hash, 2)}}, Protected: &run.Ref{SHA256: "protected", Size: 16},
		}}
	case ask.Test != nil:
		c := ask.Test.Candidates[0]
		return &run.Answer{Test: &run.TestAnswer{
			Results: []run.TestResult{{Candidate: c.Hash, Verdict: runtest.Verdict(run.VerdictPassed, c.Tree.Hash, 0)}},
		}}
	case ask.Debug != nil:
		text := run.Ref{SHA256: "text-" + string(rune('a'+ask.Debug.Attempt)), Size: 3}
		return &run.Answer{Debug: &run.DebugAnswer{
			Proposals: []run.Proposal{{Text: text, Format: "auto", Finish: "stop"}}, Calls: 1, PromptTokens: 900, AnswerTokens: 30,
		}}
	case ask.Validate != nil:
		return &run.Answer{Validate: &run.ValidateAnswer{
			Accepted: []run.Candidate{runtest.Candidate(0, ask.Validate.Proposals[0].Text.SHA256)}, Rejected: []run.Rejection{},
		}}
	case ask.Apply != nil:
		c, tree := ask.Apply.Candidates[0], runtest.Tree("fix")
		c.Tree, c.Tolerances = &tree, []string{"whitespace"}
		return &run.Answer{Apply: &run.ApplyAnswer{Candidates: []run.Candidate{c}}}
	case ask.Review != nil:
		c := ask.Review.Candidate
		return &run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove, Candidate: c.Hash, Tree: c.Tree.Hash, Rules: "1"}}
	case ask.Deliver != nil:
		return &run.Answer{Deliver: deliver(*ask.Deliver)}
	case ask.Rollback != nil:
		return &run.Answer{Rollback: &run.RollbackAnswer{Before: "tree-origin", After: "tree-origin"}}
	}
	return &run.Answer{Report: &run.ReportAnswer{Report: run.Ref{SHA256: "report", Size: 5}, Path: "review_report.md"}}
}

func deliver(in run.DeliverInput) *run.DeliverAnswer {
	d := &run.DeliverAnswer{Delivered: in.Mode, Before: in.Origin.Hash, After: in.Origin.Hash}
	if in.Candidate != nil {
		d.Candidate = in.Candidate.Hash
		if in.Mode == run.DeliverApply {
			d.After = in.Candidate.Tree.Hash
		}
	}
	return d
}
