package run_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

func arg(d *datadriven.TestData, key, other string) string {
	if a, ok := d.Arg(key); ok {
		return strings.Join(a.Vals, ",")
	}
	return other
}

func number(t *testing.T, d *datadriven.TestData, key string, into *int) {
	t.Helper()
	d.MaybeScanArgs(t, key, into)
}

// task is the task that "open" describes.
func task(t *testing.T, d *datadriven.TestData) run.Task {
	t.Helper()
	task := runtest.Task()
	if a, ok := d.Arg("sources"); ok {
		task.Sources = nil
		for _, s := range a.Vals {
			task.Sources = append(task.Sources, run.Source(s))
		}
	}
	task.Deliver = run.DeliverMode(arg(d, "deliver", string(run.DeliverApply)))
	task.InPlace, task.Report = d.HasArg("in-place"), d.HasArg("report")
	number(t, d, "attempts", &task.Limits.DebugAttempts)
	number(t, d, "ast-fails", &task.Limits.ASTFails)
	number(t, d, "reviews", &task.Limits.ReviewRounds)
	number(t, d, "events", &task.Limits.Events)
	if d.HasArg("calls") {
		n := 0
		number(t, d, "calls", &n)
		task.Limits.ModelCalls = &n
	}
	task.Child = child(d)
	require.NoError(t, task.Validate())
	return task
}

// child is the decision that "open" names.
func child(d *datadriven.TestData) *run.Child {
	c := &run.Child{Parent: "parent", By: "a person", Base: arg(d, "base", "tree-origin"), Hint: arg(d, "retry", "")}
	text := &run.Ref{SHA256: "text-by-a-person", Size: 10}
	switch {
	case d.HasArg("approve"):
		c.Decision, c.Text, c.Candidate = run.DecideApprove, text, runtest.Candidate(1, arg(d, "approve", "")).Hash
	case d.HasArg("patch"):
		c.Decision, c.Patch = run.DecidePatch, "by a person"
	case d.HasArg("retry"):
		c.Decision = run.DecideRetry
	default:
		return nil
	}
	return c
}

func failed(t *testing.T, d *datadriven.TestData) *run.Failure {
	t.Helper()
	f := &run.Failure{
		Category: d.CmdArgs[0].Key, Message: d.Input,
		Exhausted: d.HasArg("exhausted"), BadInput: d.HasArg("bad-input"),
	}
	if f.Message == "" {
		f.Message = "it broke"
	}
	number(t, d, "status", &f.Status)
	number(t, d, "calls", &f.Calls)
	for key, into := range map[string]*float64{"after": &f.RetryAfter, "quota": &f.Quota} {
		if v := arg(d, key, ""); v != "" {
			s, err := strconv.ParseFloat(v, 64)
			require.NoError(t, err)
			*into = s
		}
	}
	return f
}

// answer is what the worker that the command is named after says to ask.
func answer(t *testing.T, d *datadriven.TestData, ask run.Ask) *run.Answer {
	t.Helper()
	switch run.Worker(d.Cmd) {
	case run.Snapshot:
		return &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree(arg(d, "tree", "origin"))}}
	case run.Test:
		return &run.Answer{Test: tested(t, d, ask)}
	case run.Debugger:
		return &run.Answer{Debug: proposed(t, d, ask)}
	case run.Validate:
		return &run.Answer{Validate: gated(d)}
	case run.Apply:
		return &run.Answer{Apply: applied(d, ask)}
	case run.Guardian, run.Policy:
		return &run.Answer{Review: reviewed(d, ask)}
	case run.Deliver:
		return &run.Answer{Deliver: delivered(d, ask)}
	case run.Rollback:
		a := &run.RollbackAnswer{Before: arg(d, "before", "tree-origin"), After: arg(d, "after", "tree-origin")}
		if c, ok := d.Arg("kept"); ok {
			a.Conflicts = c.Vals
		}
		return &run.Answer{Rollback: a}
	case run.Report:
		return &run.Answer{Report: &run.ReportAnswer{Path: "review_report.md"}}
	}
	t.Fatalf("no such command: %s", d.Cmd)
	return nil
}

// tested reads verdicts: "kind:red" for the project, NAME=kind:red for
// candidates, and "tree=NAME" for a verdict on another tree.
func tested(t *testing.T, d *datadriven.TestData, ask run.Ask) *run.TestAnswer {
	t.Helper()
	verdict := func(word, tree string) run.Verdict {
		kind, n, _ := strings.Cut(word, ":")
		red := 0
		if n != "" {
			var err error
			red, err = strconv.Atoi(n)
			require.NoError(t, err)
		}
		return runtest.Verdict(run.VerdictKind(kind), arg(d, "tree", tree), red)
	}
	if ask.Test == nil || ask.Test.Baseline == nil {
		return &run.TestAnswer{Results: []run.TestResult{{Verdict: verdict(d.CmdArgs[0].Key, "tree-origin")}}}
	}
	out := &run.TestAnswer{}
	for _, a := range d.CmdArgs {
		i := slices.IndexFunc(ask.Test.Candidates, func(c run.Candidate) bool { return c.Note == a.Key })
		if i < 0 {
			continue
		}
		c := ask.Test.Candidates[i]
		out.Results = append(out.Results, run.TestResult{
			Rank: c.Rank, Candidate: c.Hash, Verdict: verdict(a.Vals[0], c.Tree.Hash),
		})
	}
	return out
}

// proposed reads the texts that a source says; the input is its reason.
func proposed(t *testing.T, d *datadriven.TestData, ask run.Ask) *run.DebugAnswer {
	t.Helper()
	out := &run.DebugAnswer{Reason: d.Input}
	if ask.Debug != nil && ask.Debug.Source == run.SourceModel {
		out.Calls = 1
	}
	number(t, d, "calls", &out.Calls)
	if a, ok := d.Arg("says"); ok {
		for _, text := range a.Vals {
			out.Proposals = append(out.Proposals, run.Proposal{Text: run.Ref{SHA256: text, Size: 9}, Format: "auto", Finish: "stop"})
		}
	}
	return out
}

// gated reads accept=(NAME,…) and refuse=(gate:status,…) with the feedback as
// input.
func gated(d *datadriven.TestData) *run.ValidateAnswer {
	out := &run.ValidateAnswer{}
	if a, ok := d.Arg("accept"); ok {
		for i, name := range a.Vals {
			out.Accepted = append(out.Accepted, runtest.Candidate(i, name))
		}
	}
	if a, ok := d.Arg("refuse"); ok {
		for i, word := range a.Vals {
			gate, status, _ := strings.Cut(word, ":")
			out.Rejected = append(out.Rejected, run.Rejection{
				Rank: i, Gate: gate, Reason: gate, Feedback: d.Input, Status: run.AttemptStatus(status),
			})
		}
	}
	return out
}

func applied(d *datadriven.TestData, ask run.Ask) *run.ApplyAnswer {
	out := &run.ApplyAnswer{}
	if a, ok := d.Arg("drift"); ok {
		out.Drift = a.Vals
	}
	if ask.Apply == nil || d.HasArg("drift") || d.HasArg("nothing") {
		return out
	}
	for _, c := range ask.Apply.Candidates {
		if tree := runtest.Tree(c.Note); !d.HasArg("treeless") {
			c.Tree = &tree
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}

func reviewed(d *datadriven.TestData, ask run.Ask) *run.ReviewAnswer {
	out := &run.ReviewAnswer{Word: run.ReviewWord(d.CmdArgs[0].Key)}
	if ask.Review != nil {
		c := ask.Review.Candidate
		out.Candidate, out.Tree = c.Hash, arg(d, "tree", c.Tree.Hash)
	}
	if d.Input != "" {
		out.Reasons = strings.Split(d.Input, "\n")
	}
	return out
}

func delivered(d *datadriven.TestData, ask run.Ask) *run.DeliverAnswer {
	out := &run.DeliverAnswer{Before: "tree-origin", After: "tree-origin"}
	if a, ok := d.Arg("drift"); ok {
		out.Drift = a.Vals
	}
	if a, ok := d.Arg("moved"); ok {
		out.Moved = a.Vals
	}
	if ask.Deliver == nil {
		return out
	}
	out.Delivered = ask.Deliver.Mode
	if c := ask.Deliver.Candidate; c != nil {
		out.Candidate = c.Hash
		if ask.Deliver.InPlace {
			out.Before = c.Tree.Hash
		}
		if out.Delivered == run.DeliverApply {
			out.After = c.Tree.Hash
		}
	}
	out.Before, out.After = arg(d, "before", out.Before), arg(d, "after", out.After)
	out.Candidate = arg(d, "candidate", out.Candidate)
	return out
}
