package run_test

import (
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

// right is an answer of the type that the ask's worker owes. An honest worker
// speaks of what it was asked about; what it found out is drawn.
func (l *life) right(ask run.Ask) *run.Answer {
	switch {
	case ask.Snapshot != nil:
		return &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree(l.lie("origin", ""))}}
	case ask.Test != nil:
		return &run.Answer{Test: l.tested(*ask.Test)}
	case ask.Debug != nil:
		return &run.Answer{Debug: l.proposed(ask)}
	case ask.Validate != nil:
		return &run.Answer{Validate: l.gated(*ask.Validate)}
	case ask.Apply != nil:
		return &run.Answer{Apply: l.applied(*ask.Apply)}
	case ask.Review != nil:
		return &run.Answer{Review: l.reviewed(*ask.Review)}
	case ask.Deliver != nil:
		return &run.Answer{Deliver: l.delivered(*ask.Deliver)}
	case ask.Rollback != nil:
		return &run.Answer{Rollback: &run.RollbackAnswer{Before: l.lie("b", ""), After: l.lie("tree-origin", "")}}
	}
	return &run.Answer{Report: &run.ReportAnswer{Path: "review_report.md"}}
}

// lie is truth, or now and then another word of a worker that is not honest.
func (l *life) lie(truth string, others ...string) string {
	if l.honest || !l.chance("lie", 4) {
		return truth
	}
	return one(l, "lie", append(others, "lie")...)
}

func (l *life) verdict(tree string, green int) run.Verdict {
	kind := one(l, "red", run.VerdictFailed, run.VerdictFailed, run.VerdictTimeout, run.VerdictLimit)
	switch k := l.pick("verdict", 100); {
	case k < green:
		kind = run.VerdictPassed
	case k > 90:
		kind = one(l, "no verdict", run.VerdictUntrusted, run.VerdictInfrastructure, run.VerdictInfrastructure, "")
	}
	return runtest.Verdict(kind, l.lie(tree, "", "tree-origin"), l.pick("red", 3))
}

func (l *life) tested(in run.TestInput) *run.TestAnswer {
	out := &run.TestAnswer{Protected: &run.Ref{SHA256: "protected"}}
	if in.Baseline == nil {
		if !l.chance("empty", 2) {
			out.Results = []run.TestResult{{Verdict: l.verdict(in.Base.Hash, 8)}}
		}
		return out
	}
	for _, c := range in.Candidates {
		tree := ""
		if c.Tree != nil {
			tree = c.Tree.Hash
		}
		if !l.chance("unreported", 5) {
			out.Results = append(out.Results, run.TestResult{
				Rank: c.Rank, Candidate: l.lie(c.Hash, ""), Verdict: l.verdict(tree, 35),
			})
		}
	}
	return out
}

func (l *life) proposed(ask run.Ask) *run.DebugAnswer {
	out := &run.DebugAnswer{Calls: l.calls(ask), PromptTokens: 10, AnswerTokens: 5}
	if !l.honest && l.chance("negative", 5) {
		out.Calls = -3
	}
	n := 1 + l.pick("proposals", min(3, ask.Debug.Limit))
	if l.chance("none", 8) {
		n = 0
	} else if !l.honest && l.chance("many", 10) {
		n = l.pick("too many", 30)
	}
	for range n {
		text := l.name("text")
		if l.chance("repeat", 10) {
			text = "text1"
		}
		out.Proposals = append(out.Proposals, run.Proposal{Text: run.Ref{SHA256: text, Size: 9}, Format: "auto", Finish: "stop"})
	}
	return out
}

func (l *life) gated(in run.ValidateInput) *run.ValidateAnswer {
	out := &run.ValidateAnswer{}
	statuses := []run.AttemptStatus{run.StatusASTFail, run.StatusASTFail, run.StatusGateFail, run.StatusNoFixedCode}
	if !l.honest {
		statuses = append(statuses, "", run.StatusPytestPass, run.StatusSandboxError, "odd")
	}
	gates := []string{"prose", "syntax", "tamper", "tamper", run.GateRepeat, run.GateEmpty}
	for i := range in.Proposals {
		if l.chance("accept", 60) {
			out.Accepted = append(out.Accepted, runtest.Candidate(i, l.name("cand")))
			continue
		}
		out.Rejected = append(out.Rejected, run.Rejection{
			Rank: i, Gate: one(l, "gate", gates...), Reason: "why", Feedback: "do better",
			Status: one(l, "status", statuses...),
		})
	}
	return out
}

func (l *life) applied(in run.ApplyInput) *run.ApplyAnswer {
	out := &run.ApplyAnswer{}
	if l.chance("drift", 3) {
		out.Drift = []string{"calc.py"}
		return out
	}
	for _, c := range in.Candidates {
		tree := runtest.Tree(c.Note)
		c.Tree = &tree
		if !l.honest && l.chance("no tree", 10) {
			c.Tree = nil
		}
		c.Hash = l.lie(c.Hash, "")
		out.Candidates = append(out.Candidates, c)
	}
	if l.chance("refused", 5) {
		out.Candidates, out.Refused = nil, []run.Rejection{{
			Gate: "paths", Reason: "unsafe", Feedback: "elsewhere", Status: one(l, "refusal", run.StatusGateFail, "odd", ""),
		}}
	}
	if l.chance("none applied", 3) {
		out.Candidates = nil
	}
	return out
}

func (l *life) reviewed(in run.ReviewInput) *run.ReviewAnswer {
	out := &run.ReviewAnswer{Word: run.WordApprove, Candidate: l.lie(in.Candidate.Hash, "")}
	if l.chance("object", 30) {
		out.Word = one(l, "word", run.WordReject, run.WordReject, run.WordHuman)
	}
	if in.Candidate.Tree != nil {
		out.Tree = l.lie(in.Candidate.Tree.Hash, "")
	}
	out.Word = run.ReviewWord(l.lie(string(out.Word), "", "maybe"))
	if out.Word != run.WordApprove {
		out.Reasons = []string{l.name("reason")}
	}
	return out
}

func (l *life) delivered(in run.DeliverInput) *run.DeliverAnswer {
	out := &run.DeliverAnswer{Delivered: in.Mode, Before: in.Origin.Hash, After: in.Origin.Hash}
	if l.chance("drift", 10) {
		out.Drift = []string{"calc.py"}
	}
	if l.chance("moved", 20) {
		out.Moved = []string{"other.py"}
	}
	if in.Candidate != nil {
		out.Candidate = l.lie(in.Candidate.Hash, "")
		if in.InPlace {
			out.Before = in.Candidate.Tree.Hash
		}
		if in.Mode == run.DeliverApply {
			out.After = in.Candidate.Tree.Hash
		}
	}
	out.Before, out.After = l.lie(out.Before, ""), l.lie(out.After, "", in.Origin.Hash)
	out.Delivered = run.DeliverMode(l.lie(string(out.Delivered), "", "apply", "none"))
	return out
}
