package wire

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"nexuscore.dev/nexus/internal/run"
)

// The subject spaces. An asterisk stands for one token.
const (
	// AllEvents matches every event of every run; it is a filter within the
	// RUNS stream, for outcomes and dead letters have as many tokens.
	AllEvents = "nexus.*.*.*.*"

	TaskSpace    = "nexus.task.*.*"
	OutcomeSpace = "nexus.outcome.*.*.*"
	DeadSpace    = "nexus.dead.*.*.*"
	LaterSpace   = "nexus.later.*.*"
	TimerSpace   = "nexus.timer.*.*"
	// TriedSpace holds how often an ask was begun again.
	TriedSpace = "nexus.tried.*.*.*"
	// BurstSpace is where people hear that runs fail one after the other.
	BurstSpace = burst + "*"
)

const burst = "nexus.burst."

// RunSpaces are the subjects of the RUNS stream: nexus.<area>.<name>.<run>.<n>.
func RunSpaces() []string {
	return []string{"nexus.agent.*.*.*", "nexus.patch.*.*.*", "nexus.run.*.*.*"}
}

// ImportedSpace are the subjects of runs that another bus made.
const ImportedSpace = imported + "*.*.*.*"

const imported = "imported."

// ImportedSubject is where an event of another bus is kept: an event subject
// with another first word, on which no worker acts.
func ImportedSubject(subject string) string { return imported + strings.TrimPrefix(subject, "nexus.") }

// OwnSubject turns an ImportedSubject back; others stay as they are.
func OwnSubject(subject string) string {
	if rest, ok := strings.CutPrefix(subject, imported); ok {
		return "nexus." + rest
	}
	return subject
}

// ImportedFilter matches every event of one imported run.
func ImportedFilter(runID string) string { return ImportedSubject(RunFilter(runID)) }

// ErrSubject is returned for a subject that this package would not build.
var ErrSubject = errors.New("wire: not a subject of this system")

// area is the <area> of a name: who works on it.
func area(name string) string {
	switch run.Worker(name) {
	case run.Debugger, run.Guardian, run.Policy:
		return "agent"
	case run.Validate, run.Apply, run.Test:
		return "patch"
	default:
		return "run"
	}
}

// Address is a parsed event subject.
type Address struct {
	// Name is the worker's name or the kind of a run event.
	Name string
	Run  string
	N    int
}

// EventSubject is the subject of event n of a run.
func EventSubject(runID, name string, n int) string {
	return fmt.Sprintf("nexus.%s.%s.%s.%d", area(name), name, runID, n)
}

// RunFilter matches every event of one run; it is the filter of the
// compare-and-set with which EventSubject is appended.
func RunFilter(runID string) string { return "nexus.*.*." + runID + ".*" }

// NameFilter matches the events of that name in all runs.
func NameFilter(name string) string {
	return fmt.Sprintf("nexus.%s.%s.*.*", area(name), name)
}

// NameOf matches the events of that name in one run.
func NameOf(runID, name string) string {
	return fmt.Sprintf("nexus.%s.%s.%s.*", area(name), name, runID)
}

// ParseEvent parses an event subject.
func ParseEvent(subject string) (Address, error) {
	t := strings.Split(subject, ".")
	if len(t) != 5 || t[0] != "nexus" || t[1] != area(t[2]) {
		return Address{}, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return address(subject, t, 1)
}

// address reads the last three tokens: name, run and a number of at least
// least, written as this package writes it.
func address(subject string, t []string, least int) (Address, error) {
	n, err := strconv.Atoi(t[4])
	if err != nil || n < least || strconv.Itoa(n) != t[4] || !ValidRun(t[3]) || !ValidToken(t[2]) {
		return Address{}, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return Address{Name: t[2], Run: t[3], N: n}, nil
}

// OutcomeSubject is where by states a fact about ask n of a run; n is 0 for
// an order.
func OutcomeSubject(by, runID string, n int) string {
	return fmt.Sprintf("nexus.outcome.%s.%s.%d", by, runID, n)
}

// ParseOutcome parses an outcome subject; Name is who states it.
func ParseOutcome(subject string) (Address, error) {
	t := strings.Split(subject, ".")
	if len(t) != 5 || t[0] != "nexus" || t[1] != "outcome" {
		return Address{}, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return address(subject, t, 0)
}

// TaskSubject is where a task of a tenant is published.
func TaskSubject(tenant, kind string) string { return "nexus.task." + tenant + "." + kind }

// ParseTask returns tenant and kind of a task subject.
func ParseTask(subject string) (tenant, kind string, err error) {
	t := strings.Split(subject, ".")
	if len(t) != 4 || t[0] != "nexus" || t[1] != "task" || !ValidToken(t[2]) || !ValidToken(t[3]) {
		return "", "", fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return t[2], t[3], nil
}

// DeadSubject is where the dead letter of ask n of a run goes. A message
// that belongs to no run has the run "none" and its stream sequence as n.
func DeadSubject(category, runID string, n uint64) string {
	return fmt.Sprintf("nexus.dead.%s.%s.%d", category, runID, n)
}

// DeadFilter matches the dead letters of a category.
func DeadFilter(category string) string { return "nexus.dead." + category + ".*.*" }

// BurstSubject is where a burst of failures of a category is told.
func BurstSubject(category string) string { return burst + category }

// TriedSubject is where worker w writes down that it begins ask n of a run
// again.
func TriedSubject(w, runID string, n int) string {
	return fmt.Sprintf("nexus.tried.%s.%s.%d", w, runID, n)
}

// LaterSubject holds the schedule of a timer, TimerSubject is where it
// fires.
func LaterSubject(runID, name string) string { return "nexus.later." + runID + "." + name }

// TimerSubject is where the timer of that name fires.
func TimerSubject(runID, name string) string { return "nexus.timer." + runID + "." + name }

// ParseTimer returns run and name of a fired timer.
func ParseTimer(subject string) (runID, name string, err error) {
	t := strings.Split(subject, ".")
	if len(t) != 4 || t[0] != "nexus" || t[1] != "timer" || !ValidRun(t[2]) || !ValidToken(t[3]) {
		return "", "", fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return t[2], t[3], nil
}

var (
	runPattern   = regexp.MustCompile(`^[a-z2-7]{26}$`)
	tokenPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	// fieldPattern is how the fields of our messages are spelt.
	fieldPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// ValidRun reports whether s has the form of a run id.
func ValidRun(s string) bool { return runPattern.MatchString(s) }

// ValidToken reports whether s may be a token of a subject.
func ValidToken(s string) bool { return tokenPattern.MatchString(s) }
