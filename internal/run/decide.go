package run

import (
	"fmt"
	"slices"
	"strings"
)

// Decide answers what must happen next. It is a function of s alone: the
// limits are part of the task, so a replay of the log always reaches the same
// commands. No command means that the run waits for an answer, an order or a
// timer. After the commands were appended Decide is asked again, until it
// answers none.
func Decide(s State) []Command {
	switch {
	case s.OpenedAt.IsZero() || s.Closed:
		return nil
	case s.Settled != nil:
		return closing(s)
	case s.Ended != nil:
		return settling(s)
	case delivered(s):
		return []Command{Ended{State: Approved, Reason: deliveredReason(s, *s.Deliver)}}
	case s.Stop != nil:
		return stopping(s)
	case len(s.Pending) > 0:
		return nil
	case s.N >= s.Task.Limits.Events-reserve:
		return end(s, NeedsHumanReview, fmt.Sprintf("the log has %d events, the limit is %d", s.N, s.Task.Limits.Events))
	case s.Parked:
		return nil
	case s.Failed != nil:
		return disposed(s)
	}
	return heal(s)
}

// reserve keeps room in the log for the end of a run.
const reserve = 20

// heal is the order of the work: snapshot, baseline, attempts, review,
// delivery.
func heal(s State) []Command {
	switch {
	case s.Origin == nil || s.Stale:
		return ask(Ask{Worker: Snapshot, Snapshot: &SnapshotInput{Dir: s.Task.Dir}})
	case s.moved() != "":
		return end(s, NeedsHumanReview, s.moved())
	case s.Baseline == nil:
		return ask(Ask{Worker: Test, Test: &TestInput{Dir: s.Task.Dir, Test: s.Task.Test, Base: *s.Origin, Seconds: s.Task.Limits.Seconds}})
	case s.Deliver != nil:
		return undelivered(s)
	}
	switch s.Baseline.Kind {
	case VerdictPassed:
		return ask(Ask{Worker: Deliver, Deliver: &DeliverInput{Dir: s.Task.Dir, Origin: *s.Origin, Mode: DeliverNone}})
	case VerdictUntrusted:
		return end(s, NeedsHumanReview, "the project's own test run cannot be believed: "+s.Baseline.Reason)
	case VerdictFailed, VerdictTimeout, VerdictLimit:
		return attempt(s)
	case VerdictInfrastructure:
	}
	return end(s, Failed, "the tests could not be run: "+s.Baseline.Reason)
}

// attempt moves the newest attempt on, or starts the next one.
func attempt(s State) []Command {
	a := s.Last()
	switch {
	case a == nil:
		return nextAttempt(s, "")
	case a.Status == StatusPytestPass:
		return review(s)
	case a.Status == StatusSandboxError:
		return distrusted(s, a)
	case a.Status != "":
		return nextAttempt(s, a.Feedback)
	case a.Proposed == nil:
		return ask(debug(s, a.N, a.Source, a.Feedback))
	case a.Validated == nil:
		in := &ValidateInput{
			Plan: s.Plan, Base: s.Base, Proposals: a.Proposed.Proposals,
			Targets: s.Task.Targets, Protected: s.Protected, Tried: s.Tried(),
		}
		if s.Base.Hash != s.Origin.Hash {
			in.Origin = s.Origin
		}
		return ask(Ask{Worker: Validate, Validate: in})
	case a.Applied == nil:
		return ask(Ask{Worker: Apply, Apply: &ApplyInput{
			Dir: s.Task.Dir, Origin: *s.Origin, Base: s.Base, Candidates: a.Validated.Accepted,
			Protected: s.Protected, InPlace: s.Task.InPlace,
		}})
	case len(a.Applied.Drift) > 0:
		return end(s, NeedsHumanReview, fmt.Sprintf("somebody else changed %v during the run", a.Applied.Drift))
	}
	base := s.Baseline.Evidence
	return ask(Ask{Worker: Test, Test: &TestInput{
		Dir: s.Task.Dir, Test: s.Task.Test, Base: *s.Origin, Baseline: &base, Plan: s.Plan, Candidates: a.Applied.Candidates,
		Seconds: s.Task.Limits.Seconds,
	}})
}

// distrusted ends a run whose test run proved nothing.
func distrusted(s State, a *Attempt) []Command {
	if a.Tested == nil {
		return end(s, NeedsHumanReview, "the test run left no verdict")
	}
	if kind, _ := summary(a, *a.Tested); kind == VerdictInfrastructure {
		return end(s, Failed, "the tests could not be run: "+a.Err)
	}
	return end(s, NeedsHumanReview, "the test run cannot be believed: "+a.Err)
}

// nextAttempt asks the first source that has something left to say.
func nextAttempt(s State, feedback string) []Command {
	n := len(s.Attempts) + 1
	if n > s.Task.Limits.DebugAttempts {
		return end(s, NeedsHumanReview, unclear(s)+fmt.Sprintf("no fix within %d attempts", s.Task.Limits.DebugAttempts))
	}
	why := ""
	for _, src := range s.Task.Sources {
		done := exhausted(s, src)
		if done == "" {
			return ask(debug(s, n, src, feedback))
		}
		why = fmt.Sprintf("%s (%s: %s)", why, src, done)
	}
	return end(s, NeedsHumanReview, unclear(s)+"no source has a further fix"+why)
}

// unclear tells what the tests of the project as it is said, where no red test
// says it: that is the likelier cause of a run without a fix.
func unclear(s State) string {
	if v := s.Baseline; v != nil && v.Reason != "" && (v.Weak || v.Kind != VerdictFailed) {
		return strings.TrimRight(v.Reason, ".") + "; "
	}
	return ""
}

// exhausted says why the source is done, or "".
func exhausted(s State, src Source) string {
	streak := 0
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if a.Source != src || a.Status == "" {
			continue
		}
		switch {
		case a.Repeated:
			return "it repeated itself"
		case a.Status == StatusNoFixedCode:
			return "it offered no code: " + a.Err
		case src == SourceEngine && a.Status != StatusPytestPass:
			return "its list of fixes was tried"
		case src == SourcePerson:
			return personTried(s, a)
		case a.Status == StatusASTFail:
			streak++
		case a.passedGates():
			streak = 0
		}
		if streak >= s.Task.Limits.ASTFails {
			return fmt.Sprintf("syntax limit %d reached", s.Task.Limits.ASTFails)
		}
	}
	if left := callsLeft(s); src == SourceModel && left != nil && *left <= 0 {
		return fmt.Sprintf("model calls spent (%d)", s.Calls)
	}
	return ""
}

// personTried says what became of a person's difference.
func personTried(s State, a *Attempt) string {
	if a.Status == StatusPytestPass && s.Review != nil {
		return "the guardian refuses it: " + sentence(s.Review.Reasons)
	}
	return fmt.Sprintf("it was tried: %s: %s", a.Status, a.Err)
}

func callsLeft(s State) *int {
	if s.Task.Limits.ModelCalls == nil {
		return nil
	}
	left := max(*s.Task.Limits.ModelCalls-s.Calls, 0)
	return &left
}

// maxProposals is the longest ranked list of one attempt.
const maxProposals = 20

func debug(s State, n int, src Source, feedback string) Ask {
	in := &DebugInput{
		Attempt: n, Source: src, Dir: s.Task.Dir, Test: s.Task.Test, Plan: s.Plan, Base: s.Base,
		Evidence: s.Evidence, Targets: s.Task.Targets, Protected: s.Protected,
		Feedback: feedback, Tried: s.Tried(), Limit: maxProposals, Calls: callsLeft(s),
		Seconds: secondsLeft(s), Rejected: refusals(s, n),
	}
	if s.Baseline != nil {
		in.Baseline = *s.Baseline
	}
	if s.Task.InPlace {
		in.Limit = 1
	}
	if c := s.Task.Child; c != nil {
		in.Hint = c.Hint
		if src == SourcePerson {
			in.Given, in.Patch = c.Text, c.Patch
		}
	}
	return Ask{Worker: Debugger, Debug: in}
}

func secondsLeft(s State) float64 { return max(s.deadline().Sub(s.At).Seconds(), 0) }

// refusals lists what the gates refused since a candidate last passed them,
// newest last. All of it goes into the next request, so that a source that is
// refused twice for one reason does not read the same request twice.
func refusals(s State, n int) []Rejection {
	var out []Rejection
	for i := min(n-1, len(s.Attempts)) - 1; i >= 0; i-- {
		a := &s.Attempts[i]
		if a.Validated == nil || a.passedGates() {
			break
		}
		rejected := slices.Clone(a.Validated.Rejected)
		if a.Applied != nil {
			rejected = append(rejected, a.Applied.Refused...)
		}
		out = append(rejected, out...)
	}
	return out[max(len(out)-maxProposals, 0):]
}

// review asks guardian, then policy, then deliver. Each must have seen the
// very candidate that the test stage found green.
func review(s State) []Command {
	c, v := s.Winner()
	if c == nil {
		return end(s, NeedsHumanReview, "the green verdict names no candidate")
	}
	in := &ReviewInput{
		Origin: *s.Origin, Candidate: *c, Verdict: *v, Baseline: *s.Baseline,
		Targets: s.Task.Targets, Protected: s.Protected, Policy: s.Task.Policy,
	}
	switch {
	case s.Review == nil:
		return ask(Ask{Worker: Guardian, Review: in})
	case !s.accepts(*s.Review, *c) && s.Review.Word == WordReject && s.Rounds <= s.Task.Limits.ReviewRounds:
		return nextAttempt(s, sentence(s.Review.Reasons))
	case !s.accepts(*s.Review, *c):
		return end(s, NeedsHumanReview, "guardian: "+objection(*s.Review))
	case s.Ruling == nil:
		return ask(Ask{Worker: Policy, Review: in})
	case !s.accepts(*s.Ruling, *c):
		return end(s, NeedsHumanReview, "policy: "+objection(*s.Ruling))
	}
	return ask(Ask{Worker: Deliver, Deliver: &DeliverInput{
		Dir: s.Task.Dir, Origin: *s.Origin, Candidate: c, Mode: s.Task.Deliver, InPlace: s.Task.InPlace,
	}})
}

// agrees reports whether r approves exactly c.
func agrees(r ReviewAnswer, c Candidate) bool {
	return r.Word == WordApprove && c.Tree != nil && c.Hash != "" && r.Candidate == c.Hash && r.Tree == c.Tree.Hash
}

// objection says why r approves nothing.
func objection(r ReviewAnswer) string {
	if r.Word == WordApprove {
		return "it approved another candidate than the one that was tested"
	}
	return sentence(r.Reasons)
}

func sentence(reasons []string) string {
	if len(reasons) == 0 {
		return "no reason given"
	}
	out := reasons[0]
	for _, r := range reasons[1:] {
		out += "; " + r
	}
	return out
}

// delivered reports whether the delivery was verified on the disk, for
// exactly what was approved.
func delivered(s State) bool {
	d := s.Deliver
	if d == nil || d.refused() || s.Origin == nil || s.Baseline == nil || d.Before == "" || d.After == "" {
		return false
	}
	if s.Baseline.Kind == VerdictPassed {
		return d.Delivered == DeliverNone && d.Candidate == "" && d.After == s.Origin.Hash
	}
	c, _ := s.Winner()
	if c == nil || s.Review == nil || s.Ruling == nil || !s.accepts(*s.Review, *c) || !s.accepts(*s.Ruling, *c) || s.moved() != "" {
		return false
	}
	if d.Delivered != s.Task.Deliver || d.Candidate != c.Hash {
		return false
	}
	return landed(s, *d, c.Tree.Hash)
}

// landed reports whether the folder holds what it must after a delivery: the
// fix, and nothing beside it that the tests have not seen; or, when it went
// elsewhere, the project as it was.
func landed(s State, d DeliverAnswer, fix string) bool {
	switch {
	case d.Delivered == DeliverApply:
		return d.After == fix
	case s.Task.InPlace:
		return d.After == s.Origin.Hash
	}
	return d.After == d.Before
}

func deliveredReason(s State, d DeliverAnswer) string {
	switch {
	case d.Delivered == DeliverApply && s.Moves > 0:
		return "the fix was applied and verified; other files changed during the run, and it was tested again with them"
	case d.Delivered == DeliverApply:
		return "the fix was applied and verified"
	case d.Delivered == DeliverPatch:
		return "the fix was written to a patch file"
	case d.Candidate != "":
		return "dry run: a fix was found and proved, nothing was written"
	}
	return "nothing to do: all tests pass"
}

func undelivered(s State) []Command {
	if d := s.Deliver; len(d.Drift) > 0 {
		return end(s, NeedsHumanReview, fmt.Sprintf("somebody else changed %v during the run; nothing was delivered", d.Drift))
	} else if len(d.Moved) > 0 {
		return end(s, NeedsHumanReview, fmt.Sprintf("the project changes faster than it can be tested (%v), so the fix "+
			"was not delivered: stop what writes there, or list it in .nexusignore, and heal again", d.Moved))
	}
	return end(s, NeedsHumanReview, "the delivery could not be verified")
}

// stopping ends a stopped run as soon as no worker may be writing.
func stopping(s State) []Command {
	if !s.writer() || s.Stop.Grace {
		return end(s, NeedsHumanReview, s.Stop.Reason)
	}
	if !s.Cancelling {
		return []Command{Cancelling{Reason: s.Stop.Reason}}
	}
	return nil
}

func end(s State, st Terminal, reason string) []Command {
	return []Command{ending(s, st, reason, nil)}
}

func ending(s State, st Terminal, reason string, dead *DeadLetter) Ended {
	return Ended{State: st, Reason: cutText(reason, maxMessage), Dead: dead, Rollback: &RollbackInput{
		Dir: s.Task.Dir, Home: s.Task.Home, Origin: s.Origin, InPlace: s.Task.InPlace,
	}}
}

func ask(a Ask) []Command { return []Command{a} }

// settling waits for the rollback, or gives up with the reason.
func settling(s State) []Command {
	switch {
	case s.Ended.State == Approved:
		return []Command{proof(s.Deliver)}
	case s.RolledBack != nil:
		return []Command{restored(s, *s.RolledBack)}
	case s.GaveUp:
		return []Command{unproven("nobody on the folder's host took the run back within " + rollbackTime.String())}
	case s.Failed == nil:
		return nil
	}
	switch d := s.dispose(); {
	case d.again && (d.after == 0 || s.Failed.Due):
		return ask(s.again())
	case d.again:
		return nil
	}
	return []Command{unproven(s.Failed.Failure.Message)}
}

// unproven settles a run whose folder nobody can vouch for.
func unproven(why string) Settled { return Settled{State: Failed, Reason: "rollback: " + why} }

func restored(s State, r RollbackAnswer) Settled {
	if r.After == "" && s.Origin != nil {
		return unproven("the tree could not be read back")
	}
	return Settled{
		State: s.Ended.State, Proven: true, Before: r.Before, After: r.After,
		Conflicts: r.Conflicts, Foreign: r.Foreign, Counts: r.Counts,
	}
}

func proof(d *DeliverAnswer) Settled {
	if d == nil {
		return Settled{State: Failed, Reason: "no delivery is recorded"}
	}
	return Settled{State: Approved, Proven: true, Before: d.Before, After: d.After}
}

// closing asks for the review item and closes.
func closing(s State) []Command {
	wanted := s.Settled.State != Approved || s.Task.Report
	switch {
	case !wanted || s.Closing:
		return []Command{Closed{}}
	case len(s.Pending) > 0:
		return nil
	}
	return ask(Ask{Worker: Report, Report: &ReportInput{Dir: s.Task.Dir, InProject: s.Task.Report}})
}
