package run

import "slices"

// foldAnswer records the answer to a. The ask decides which answer it is.
func foldAnswer(s State, f Fact, a Ask) State {
	ans := f.Answer
	switch {
	case a.Snapshot != nil:
		s.Origin, s.Base, s.Stale = &ans.Snapshot.Tree, ans.Snapshot.Tree, false
	case a.Test != nil && a.Test.Baseline == nil:
		return foldBaseline(s, *ans.Test)
	case a.Test != nil:
		return foldTested(s, *ans.Test)
	case a.Debug != nil:
		return foldProposed(s, *ans.Debug, a.Debug.Limit)
	case a.Validate != nil:
		return foldValidated(s, *ans.Validate)
	case a.Apply != nil:
		return foldApplied(s, *ans.Apply)
	case a.Review != nil && a.Worker == Guardian:
		s.Review = ans.Review
		if ans.Review.Word == WordReject {
			s.Rounds++
		}
	case a.Review != nil:
		s.Ruling = ans.Review
	case a.Deliver != nil:
		return foldDelivered(s, *ans.Deliver)
	case a.Rollback != nil:
		s.RolledBack = ans.Rollback
	case a.Report != nil:
		s.Report, s.Closing = ans.Report, true
	}
	return s
}

// maxMoves is how often a run proves its fix again because the project has
// changed meanwhile.
const maxMoves = 2

// foldDelivered records a delivery. When the project changed beside the
// candidate, the run goes back to the snapshot and keeps the candidate: it is
// delivered once it is proved on what is there now.
func foldDelivered(s State, d DeliverAnswer) State {
	if len(d.Drift) > 0 || len(d.Moved) == 0 || s.Moves >= maxMoves {
		s.Deliver = &d
		return s
	}
	c, _ := s.Winner()
	s.Moves++
	s.Stale = true
	s.Baseline, s.BaselineRetried, s.Review, s.Ruling = nil, false, nil, nil
	if c == nil {
		return s // there was nothing to do
	}
	return s.edit(func(a *Attempt) {
		a.Validated = &ValidateAnswer{Accepted: []Candidate{*c}}
		a.Applied, a.Tested, a.Retried, a.Status, a.Err, a.Reproved = nil, nil, false, "", "", true
	})
}

func foldBaseline(s State, t TestAnswer) State {
	if len(t.Results) == 0 {
		t.Results = []TestResult{{Verdict: Verdict{Kind: VerdictUntrusted, Reason: "the test stage reported nothing"}}}
	}
	v := t.Results[0].Verdict
	if v.Kind == VerdictPassed && (s.Origin == nil || v.Tree != s.Origin.Hash) {
		v = Verdict{Kind: VerdictUntrusted, Reason: "the verdict names another tree than the project's", Tree: v.Tree}
	}
	if v.Kind == VerdictInfrastructure && !s.BaselineRetried {
		s.BaselineRetried = true
		return s
	}
	s.Baseline, s.Evidence, s.Protected, s.Plan = &v, v, t.Protected, t.Plan
	return s
}

func foldProposed(s State, d DebugAnswer, limit int) State {
	s.Calls += max(d.Calls, 0)
	s.PromptTokens += max(d.PromptTokens, 0)
	s.AnswerTokens += max(d.AnswerTokens, 0)
	if limit = max(limit, 0); len(d.Proposals) > limit {
		d.Proposals = d.Proposals[:limit]
	}
	return s.edit(func(a *Attempt) {
		a.Proposed, a.Failure = &d, nil
		if len(d.Proposals) == 0 {
			a.finish(StatusNoFixedCode, d.Reason)
		} else if status, old := repeated(s.Attempts[:len(s.Attempts)-1], d.Proposals); old {
			a.Repeated = true
			a.finish(status, "the source repeated an earlier answer")
		}
	})
}

// repeated reports whether every proposal was made before. The status is that
// of the gate that refused the first of them then.
func repeated(before []Attempt, proposals []Proposal) (AttemptStatus, bool) {
	said := map[string]AttemptStatus{}
	for _, a := range before {
		if a.Proposed != nil {
			for _, p := range a.Proposed.Proposals {
				said[p.Text.SHA256] = a.Status
			}
		}
	}
	for _, p := range proposals {
		if _, ok := said[p.Text.SHA256]; !ok {
			return "", false
		}
	}
	return refusal(said[proposals[0].Text.SHA256], StatusNoFixedCode), true
}

// refusal is st where a gate may have said it, else other.
func refusal(st, other AttemptStatus) AttemptStatus {
	if st == StatusNoFixedCode || st == StatusASTFail || st == StatusGateFail {
		return st
	}
	return other
}

func foldValidated(s State, v ValidateAnswer) State {
	return s.edit(func(a *Attempt) {
		a.Validated = &v
		if len(v.Accepted) > 0 {
			return
		}
		r := v.Rejected[0]
		a.Repeated = r.Gate == GateRepeat || (r.Gate == GateEmpty && r.Reason == ReasonNoOp && a.N > 1)
		a.finish(refusal(r.Status, StatusGateFail), r.Reason)
	})
}

// foldApplied keeps the candidates that have a tree: only those can be tested.
func foldApplied(s State, ans ApplyAnswer) State {
	var kept []Candidate
	for _, c := range ans.Candidates {
		if c.Tree != nil {
			kept = append(kept, c)
		}
	}
	ans.Candidates = kept
	return s.edit(func(a *Attempt) {
		a.Applied = &ans
		if len(ans.Drift) == 0 && len(kept) == 0 {
			why := "nothing was applied"
			if len(ans.Refused) > 0 {
				why = ans.Refused[0].Reason
			}
			a.finish(StatusGateFail, why)
		}
	})
}

// passedGates reports whether a candidate of the attempt could be tested.
func (a *Attempt) passedGates() bool {
	refused := a.Applied != nil && len(a.Applied.Candidates) == 0 && len(a.Applied.Refused) > 0
	return a.Validated != nil && len(a.Validated.Accepted) > 0 && !refused
}

// Gates whose refusal means that a source has nothing new to say.
const (
	GateRepeat = "repeat"
	GateEmpty  = "empty"
)

// ReasonNoOp is GateEmpty's reason for an answer that changes nothing.
const ReasonNoOp = "no_op"

func foldTested(s State, t TestAnswer) State {
	a := s.Last()
	if a == nil {
		return s
	}
	kind, v := summary(a, t)
	if kind == VerdictInfrastructure && !a.Retried {
		return s.edit(func(a *Attempt) { a.Retried = true })
	}
	s = s.edit(func(a *Attempt) {
		a.Tested = &t
		switch kind {
		case VerdictPassed:
			a.finish(StatusPytestPass, "")
		case VerdictInfrastructure, VerdictUntrusted:
			a.finish(StatusSandboxError, v.Reason)
		case VerdictFailed, VerdictTimeout, VerdictLimit:
			a.finish(StatusPytestFail, v.Reason)
		}
	})
	if healable(kind) {
		if c, v := nextBase(s.Last()); c != nil {
			s.Base, s.Evidence = *c.Tree, *v
		}
	}
	return s
}

// healable reports whether the verdict is a test failure, which can be worked with.
func healable(k VerdictKind) bool {
	return k == VerdictFailed || k == VerdictTimeout || k == VerdictLimit
}

// summary is the verdict that counts for the attempt: a green one, else the
// first that can be worked with, else untrusted before infrastructure.
func summary(a *Attempt, t TestAnswer) (VerdictKind, Verdict) {
	tried := Attempt{Applied: a.Applied, Tested: &t}
	if _, v := tried.winner(); v != nil {
		return VerdictPassed, *v
	}
	found := Verdict{Kind: VerdictInfrastructure, Reason: "the test stage reported nothing"}
	if len(t.Results) > 0 {
		found = Verdict{Kind: VerdictUntrusted, Reason: "the verdicts name none of the candidates"}
	}
	if a.Applied == nil {
		return found.Kind, found
	}
	known := false
	for i := range a.Applied.Candidates {
		v := tried.verdictOf(&a.Applied.Candidates[i])
		switch {
		case v == nil:
		case healable(v.Kind):
			return v.Kind, *v
		case v.Kind == VerdictPassed:
			known = true
			found = Verdict{Kind: VerdictUntrusted, Reason: "a verdict names another tree than its candidate"}
		case !known || v.Kind == VerdictUntrusted:
			known = true
			found = *v
		}
	}
	if found.Kind != VerdictUntrusted {
		found.Kind = VerdictInfrastructure
	}
	return found.Kind, found
}

// nextBase picks the failed candidate that the next attempt builds on.
func nextBase(a *Attempt) (*Candidate, *Verdict) {
	var best *Candidate
	var worst *Verdict
	for i := range a.Applied.Candidates {
		c := &a.Applied.Candidates[i]
		v := a.verdictOf(c)
		if v == nil || c.Tree == nil || !healable(v.Kind) {
			continue
		}
		if best == nil || slices.Compare(harm(c, v), harm(best, worst)) < 0 {
			best, worst = c, v
		}
	}
	return best, worst
}

// harm orders failed candidates: tests that came to an end first, then no
// newly red test, then fewest red, then lowest rank. A test that is gone
// counts as newly red: nothing says that it would pass.
func harm(c *Candidate, v *Verdict) []int {
	cut, broke := 0, 0
	if v.Kind != VerdictFailed {
		cut = 1
	}
	if v.Counts.Broken+v.Counts.New+v.Counts.Missing > 0 {
		broke = 1
	}
	return []int{cut, broke, v.Counts.Failed + v.Counts.Missing, c.Rank}
}

// verdictOf is the verdict on c; of several that disagree a red one counts.
func (a *Attempt) verdictOf(c *Candidate) *Verdict {
	var found *Verdict
	for i := range a.Tested.Results {
		r := &a.Tested.Results[i]
		if r.Rank == c.Rank && r.Candidate == c.Hash && (found == nil || r.Verdict.Kind != VerdictPassed) {
			found = &r.Verdict
		}
	}
	return found
}

func (a *Attempt) finish(st AttemptStatus, why string) {
	a.Status, a.Err = st, cutText(why, maxErr)
}

// maxErr is the most characters of an attempt's err.
const maxErr = 200
