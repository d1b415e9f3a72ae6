package main

import (
	"fmt"
	"strings"

	"nexuscore.dev/nexus/internal/run"
)

// describe is one line about what an event brought, and whether it was good.
// Events that bring nothing for people have no line.
func describe(ev run.Event, s run.State) (string, bool) {
	text, ok := "", true
	if ev.Fact != nil {
		text, ok = describeFact(*ev.Fact, s)
	}
	switch c := ev.Command.(type) {
	case run.Opened:
		return "run " + s.ID + " opened", true
	case run.Ended:
		return join(text, ""), ok
	case run.Cancelling:
		return join(text, "stopping: "+clean(c.Reason)), ok
	case run.Settled:
		if c.State != run.Approved && len(c.Conflicts) > 0 {
			return join(text, fmt.Sprintf("rolled back except %d path(s) that somebody else changed", c.Counts.Conflicts)), false
		}
		switch {
		case !c.Proven:
			return join(text, "NOT PROVEN: "+clean(c.Reason)), false
		case c.State != run.Approved:
			return join(text, "rolled back and verified"), true
		}
		return join(text, clean(c.Reason)), true
	case run.Ask, run.Result, run.Due, run.Closed:
	}
	return text, ok
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func describeFact(f run.Fact, s run.State) (string, bool) {
	switch {
	case f.Failure != nil:
		return fmt.Sprintf("%s: %s: %s", f.By, f.Failure.Category, clean(cut(f.Failure.Message, mostText))), false
	case f.Timer != "":
		return map[string]string{run.TimerDeadline: "the time limit is reached"}[f.Timer], false
	case f.Order != nil:
		return fmt.Sprintf("%s: %s", f.Order.Kind, clean(f.Order.Reason)), true
	case f.Answer != nil:
		return describeAnswer(*f.Answer, s)
	}
	return "", true
}

// mostText is how much of a text one line shows.
const mostText = 300

// cut shortens a text to at most that many characters.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + " …"
	}
	return s
}

func describeAnswer(a run.Answer, s run.State) (string, bool) {
	switch {
	case a.Snapshot != nil:
		t := a.Snapshot.Tree
		return fmt.Sprintf("snapshot   %d files, %s, tree %s", t.Files, size(t.Bytes), short(t.Hash)), true
	case a.Test != nil && len(a.Test.Results) == 1 && a.Test.Results[0].Candidate == "":
		return "baseline   " + verdict(a.Test.Results), true
	case a.Test != nil:
		return "test       " + verdict(a.Test.Results), s.Last().Status == run.StatusPytestPass
	case a.Debug != nil:
		return describeProposals(*a.Debug, s)
	case a.Validate != nil:
		return describeGates(*a.Validate)
	case a.Apply != nil:
		if len(a.Apply.Drift) > 0 {
			return "apply      somebody changed " + clean(strings.Join(a.Apply.Drift, ", ")), false
		}
		text := fmt.Sprintf("apply      %d candidate(s) staged", len(a.Apply.Candidates))
		if n := len(a.Apply.Refused); n > 0 {
			text += fmt.Sprintf(", %d refused (%s)", n, clean(cut(a.Apply.Refused[0].Feedback, mostText)))
		}
		return text, len(a.Apply.Candidates) > 0
	case a.Review != nil:
		who := "guardian"
		if s.Ruling == a.Review {
			who = "policy"
		}
		said := clean(strings.Join(a.Review.Reasons, "; "))
		if said == "" && len(a.Review.Notes) > 0 {
			said = "(noted: " + clean(strings.Join(a.Review.Notes, "; ")) + ")"
		}
		return strings.TrimRight(fmt.Sprintf("%-10s %s %s", who, a.Review.Word, said), " "), a.Review.Word == run.WordApprove
	case a.Deliver != nil:
		if len(a.Deliver.Drift) > 0 {
			return "deliver    somebody changed " + clean(strings.Join(a.Deliver.Drift, ", ")) + "; nothing was written", false
		}
		if len(a.Deliver.Moved) > 0 {
			return "deliver    " + clean(strings.Join(a.Deliver.Moved, ", ")) + " changed during the run; nothing was written yet", false
		}
		return fmt.Sprintf("deliver    %s, verified on the disk, tree %s", a.Deliver.Delivered, short(a.Deliver.After)), true
	case a.Rollback != nil:
		text := fmt.Sprintf("rollback   %d path(s) restored", a.Rollback.Counts.Restored)
		if n := a.Rollback.Counts.Foreign; n > 0 {
			text += fmt.Sprintf("; %d path(s) differ that somebody else changed and the run never wrote", n)
		}
		return text, len(a.Rollback.Conflicts) == 0
	case a.Report != nil:
		return "report     " + clean(a.Report.Path), true
	}
	return "", true
}

func describeProposals(d run.DebugAnswer, s run.State) (string, bool) {
	source := run.Source("")
	if a := s.Last(); a != nil {
		source = a.Source
	}
	if len(d.Proposals) == 0 {
		return fmt.Sprintf("debugger   %s: no fix: %s", source, clean(d.Reason)), false
	}
	text := fmt.Sprintf("debugger   %s: %d proposal(s)", source, len(d.Proposals))
	if note := d.Proposals[0].Note; note != "" {
		text += ", first: " + clean(note)
	}
	return text, true
}

func describeGates(v run.ValidateAnswer) (string, bool) {
	text := fmt.Sprintf("validate   %d accepted, %d refused", len(v.Accepted), len(v.Rejected))
	if len(v.Accepted) == 0 && len(v.Rejected) > 0 {
		text += fmt.Sprintf(" (%s: %s)", v.Rejected[0].Gate, clean(cut(v.Rejected[0].Reason, mostText)))
	}
	return text, len(v.Accepted) > 0
}

// verdict tells the best verdict of a list.
func verdict(list []run.TestResult) string {
	if len(list) == 0 {
		return "no result"
	}
	v := list[0].Verdict
	for _, r := range list {
		if r.Verdict.Kind == run.VerdictPassed {
			v = r.Verdict
			break
		}
	}
	text := fmt.Sprintf("%s: %d passed, %d failed", v.Kind, v.Counts.Passed, v.Counts.Failed)
	switch reason := clean(cut(v.Reason, mostText)); {
	case v.Weak && reason != "": // it counts no tests
		text = fmt.Sprintf("%s: %s", v.Kind, reason)
	case v.Weak:
		text = string(v.Kind)
	case reason != "" && v.Kind != run.VerdictFailed:
		text += " (" + reason + ")"
	}
	if n := len(v.Failed); n > 0 {
		text += ": " + clean(strings.Join(v.Failed[:min(n, 3)], ", "))
		if n > 3 {
			text += ", …"
		}
	}
	return text + fmt.Sprintf("  [%s, %s, %.1f s]", v.Runner, v.Level, v.Seconds)
}

// waitText names the step that is waited for.
func waitText(s run.State) string {
	step := s.Step()
	if step == string(run.Debugger) && s.Last() != nil {
		return fmt.Sprintf("%s (attempt %d, %s)", step, s.Last().N, s.Last().Source)
	}
	return step
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
