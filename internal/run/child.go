package run

import (
	"errors"
	"fmt"
	"slices"
)

// Decision is what a person decided about a run that ended without approval.
type Decision string

// The decisions that open a child run. A decision never reopens the run that
// it is about.
const (
	// DecideApprove delivers a candidate that the tests proved and that only
	// a person may approve. It is tested again.
	DecideApprove Decision = "approve"
	// DecidePatch takes the person's own difference through gates and tests.
	DecidePatch Decision = "patch"
	// DecideRetry asks the sources again, with a fresh budget and a hint.
	DecideRetry Decision = "retry"
)

// Child says which decision opened a run.
type Child struct {
	// Parent is the run that was decided about.
	Parent   string   `json:"parent"`
	Decision Decision `json:"decision"`
	// By names the person who decided.
	By string `json:"by"`
	// Base is the tree hash of the project that the person saw, Candidate the
	// hash of what was approved. The run ends for a person again when either
	// is another one by now.
	Base      string `json:"base,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	// Text is the approved difference, Patch the person's own.
	Text  *Ref   `json:"text,omitempty"`
	Patch string `json:"patch,omitempty"`
	// Hint is what the person tells the sources.
	Hint string `json:"hint,omitempty"`
}

// The most bytes of what a person says; both stand in events.
const (
	MaxHint  = 4 << 10
	MaxPatch = 256 << 10
)

// proposes reports whether the decision brings a difference along.
func (c *Child) proposes() bool {
	return c != nil && (c.Decision == DecideApprove || c.Decision == DecidePatch)
}

// validate says what is wrong with a decision. nil is none.
func (c *Child) validate(sources []Source) error {
	switch {
	case c == nil:
		return nil
	case c.Parent == "":
		return errors.New("a decision names the run that it is about")
	case c.By == "":
		return errors.New("a decision names who decided")
	case len(c.Hint) > MaxHint:
		return fmt.Errorf("the hint has %d bytes, at most %d are taken", len(c.Hint), MaxHint)
	case len(c.Patch) > MaxPatch:
		return fmt.Errorf("the patch has %d bytes, at most %d are taken", len(c.Patch), MaxPatch)
	case c.Decision == DecideRetry && c.Text == nil && c.Patch == "":
		return nil
	case !c.proposes():
		return fmt.Errorf("unknown decision %q: approve, patch or retry", c.Decision)
	case c.Base == "" || c.Decision == DecideApprove && (c.Text == nil || c.Candidate == "") || c.Decision == DecidePatch && c.Patch == "":
		return fmt.Errorf("the decision %q is not bound to a difference and the project that it is for", c.Decision)
	case !slices.Equal(sources, []Source{SourcePerson}):
		return fmt.Errorf("the decision %q has no other source than the person", c.Decision)
	}
	return nil
}

// About says why a decision is none about the task's parent, or nil: the parent
// has ended without approval, was about the same folder, and had what the
// person saw.
func (t Task) About(parent State) error {
	c := t.Child
	switch {
	case c == nil:
		return nil
	case parent.Ended == nil:
		return fmt.Errorf("run %s, which the decision is about, is unknown or has not ended", c.Parent)
	case parent.Ended.State == Approved:
		return fmt.Errorf("run %s is approved: there is nothing to decide", c.Parent)
	case parent.Task.Dir != t.Dir || parent.Task.Home != t.Home:
		return fmt.Errorf("run %s was about another folder", c.Parent)
	case c.proposes() && (parent.Origin == nil || parent.Origin.Hash != c.Base):
		return fmt.Errorf("run %s did not see the project that the decision is bound to", c.Parent)
	case c.Decision != DecideApprove:
		return nil
	}
	if won, _ := parent.Winner(); won == nil || won.Hash != c.Candidate || won.Diff.SHA256 != c.Text.SHA256 {
		return fmt.Errorf("run %s did not prove the candidate that is approved", c.Parent)
	}
	return nil
}

// moved says that what a person decided about is not what is there now, or "".
func (s State) moved() string {
	c := s.Task.Child
	if !c.proposes() || s.Origin == nil {
		return ""
	}
	if s.Origin.Hash != c.Base {
		return "the project is not as it was when the decision was made: look at the run again and decide anew"
	}
	if a := s.Last(); c.Decision == DecideApprove && a != nil && a.Applied != nil {
		for _, cand := range a.Applied.Candidates {
			if cand.Hash != c.Candidate {
				return "the difference leads to another candidate than the one that was approved"
			}
		}
	}
	return ""
}

// accepts reports whether r lets exactly c through: it approves, or it wants a
// person's word and a person has given it.
func (s State) accepts(r ReviewAnswer, c Candidate) bool {
	if r.Word == WordHuman && s.Task.Child.proposes() {
		r.Word = WordApprove
	}
	return agrees(r, c)
}
