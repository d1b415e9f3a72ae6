package run

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Diff is an event whose command is not the one that Decide reaches now.
type Diff struct {
	// N is the event's number, Decider the version that made it.
	N       int
	Decider int
	// Logged is the command in the log. Decided is what this version does in
	// its place; nil when it would wait.
	Logged  Command
	Decided Command
}

// Corrupt reports whether d can't be explained by another version of Decide:
// the log was changed after it was written, or Decide is not pure.
func (d Diff) Corrupt() bool { return d.Decider == Decider }

// String says it in one line.
func (d Diff) String() string {
	what := "a differing decision"
	if d.Corrupt() {
		what = "not what this version decided"
	}
	decided := "nothing"
	if d.Decided != nil {
		decided = d.Decided.Name()
	}
	return fmt.Sprintf("event %d (decider %d, this is %d): the log has %s, now decided: %s: %s",
		d.N, d.Decider, Decider, d.Logged.Name(), decided, what)
}

// Verify folds the log of run id again and lists every event whose command
// differs, byte for byte, from what Decide reaches in the state before it. It
// fails when the events don't follow each other, which no version explains.
func Verify(id string, log []Event) ([]Diff, error) {
	var diffs []Diff
	s := State{ID: id}
	for _, e := range log {
		next, err := Fold(s, e)
		if err != nil {
			return diffs, err
		}
		want := expected(s, e)
		same, err := sameCommand(want, e.Command)
		if err != nil {
			return diffs, fmt.Errorf("run: event %d: %w", e.N, err)
		}
		if !same {
			diffs = append(diffs, Diff{N: e.N, Decider: e.Decider, Logged: e.Command, Decided: want})
		}
		s = next
	}
	return diffs, nil
}

// expected is the command that belongs to the fact of e in state s; nil when
// there is no reason for an event at all.
func expected(s State, e Event) Command {
	switch {
	case s.N == 0:
		return e.Command
	case e.Fact == nil:
		if cmds := Decide(s); len(cmds) > 0 {
			return cmds[0]
		}
		return nil
	case e.Fact.Timer != "":
		return Due{}
	}
	if cmds := Decide(FoldFact(s, *e.Fact)); len(cmds) > 0 {
		return cmds[0]
	}
	return Result{}
}

func sameCommand(a, b Command) (bool, error) {
	if a == nil || b == nil || a.Name() != b.Name() {
		return false, nil
	}
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(x, y), nil
}
