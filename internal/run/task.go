package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source is where candidates come from.
type Source string

// The sources of candidates.
const (
	SourceModel  Source = "model"
	SourceEngine Source = "engine"
	// SourcePerson is a difference that a person approved or wrote; only a
	// Child has it.
	SourcePerson Source = "person"
)

// DeliverMode says what happens to an approved candidate.
type DeliverMode string

// The ways of delivery. DeliverNone is the verified no-op of a dry run and
// of a project whose tests are green already.
const (
	DeliverApply DeliverMode = "apply"
	DeliverPatch DeliverMode = "patch"
	DeliverNone  DeliverMode = "none"
)

func (m DeliverMode) valid() bool {
	return slices.Contains([]DeliverMode{DeliverApply, DeliverPatch, DeliverNone}, m)
}

// Task is what another system or a person asks for: heal the folder Dir.
type Task struct {
	// Tenant names who asks; tenant local is the owner of this machine.
	Tenant string `json:"tenant"`
	// Dir is the absolute path of the project folder on its home.
	Dir string `json:"dir"`
	// Home names the host that Dir lives on.
	Home string `json:"home"`
	// Test is the test command; empty lets the test stage find one.
	Test string `json:"test,omitempty"`
	// Targets are the only paths that a candidate may touch; empty allows
	// every file that is not protected.
	Targets []string `json:"targets,omitempty"`
	// Sources are tried in this order.
	Sources []Source `json:"sources"`
	// InPlace writes candidates to Dir while they are tested.
	InPlace bool        `json:"in_place,omitempty"`
	Deliver DeliverMode `json:"deliver"`
	// Report asks for review_report.md inside the project.
	Report bool `json:"report,omitempty"`
	// Policy is the text of a rules file. It adds to the rules of the process
	// that judges, and never loosens them.
	Policy string `json:"policy,omitempty"`
	Limits Limits `json:"limits"`
	// Child is set when a person's decision on another run opened this one.
	Child *Child `json:"child,omitempty"`
	// Driver is the process that waits for the run; nil for a task that
	// another system published.
	Driver *Driver `json:"driver,omitempty"`
}

// Driver identifies a process even after its pid was used again.
type Driver struct {
	PID int `json:"pid"`
	// Start is the process's start time in clock ticks since boot.
	Start uint64 `json:"start"`
	// Host is the home that the process runs on.
	Host string `json:"host"`
}

// Limits bound a run. They are recorded when the run opens, so a replay
// decides under the same limits.
type Limits struct {
	// DebugAttempts is the most debug attempts over all sources.
	DebugAttempts int `json:"debug_attempts"`
	// ASTFails is how many consecutive rejections by the syntax or prose
	// gate end a source.
	ASTFails int `json:"ast_fails"`
	// ReviewRounds is how often the guardian may send a candidate back.
	ReviewRounds int `json:"review_rounds"`
	// ModelCalls is the most model calls; nil sets no limit, 0 allows none.
	ModelCalls *int `json:"model_calls,omitempty"`
	// Seconds is the wall clock of the whole run until it has ended.
	Seconds float64 `json:"seconds"`
	// Events is the most events of the log.
	Events int `json:"events"`
	// DelayScale multiplies the delays between redeliveries.
	DelayScale float64 `json:"delay_scale"`
}

// DefaultLimits are the limits of a task that states none.
func DefaultLimits() Limits {
	return Limits{
		DebugAttempts: 3, ASTFails: 2, ReviewRounds: 2,
		Seconds: 1800, Events: 900, DelayScale: 1,
	}
}

// Validate says what is wrong with the limits, or nil.
func (l Limits) Validate() error {
	switch {
	case l.DebugAttempts < 1 || l.DebugAttempts > 50:
		return fmt.Errorf("debug attempts must be 1 to 50, not %d", l.DebugAttempts)
	case l.ASTFails < 1 || l.ASTFails > 50:
		return fmt.Errorf("the syntax limit must be 1 to 50, not %d", l.ASTFails)
	case l.ReviewRounds < 0 || l.ReviewRounds > 50:
		return fmt.Errorf("review rounds must be 0 to 50, not %d", l.ReviewRounds)
	case l.ModelCalls != nil && *l.ModelCalls < 0:
		return fmt.Errorf("model calls must not be negative: %d", *l.ModelCalls)
	case !(l.Seconds > 0 && l.Seconds <= 7*24*3600):
		return fmt.Errorf("the time limit must be above 0 and at most 7 days, not %g s", l.Seconds)
	case l.Events < minEvents || l.Events > 900:
		return fmt.Errorf("events must be %d to 900, not %d", minEvents, l.Events)
	case !(l.DelayScale > 0 && l.DelayScale <= 100):
		return fmt.Errorf("the delay scale must be above 0 and at most 100, not %g", l.DelayScale)
	}
	return nil
}

// Sizes in bytes of what every ask of a run repeats.
const (
	maxTargets = 32 << 10
	maxTest    = 16 << 10
	maxPath    = 4 << 10 // PATH_MAX of Linux
)

// minEvents leaves room for a whole run without a retry.
const minEvents = 50

// Validate says what is wrong with the task, or nil. It looks at the task
// alone; whether the folder exists is for the snapshot stage to find out.
func (t Task) Validate() error {
	switch {
	case t.Tenant == "":
		return errors.New("no tenant")
	case t.Home == "":
		return errors.New("no home")
	case !filepath.IsAbs(t.Dir) || filepath.Clean(t.Dir) != t.Dir:
		return fmt.Errorf("dir must be a clean absolute path, not %q", t.Dir)
	case strings.ContainsRune(t.Dir, 0):
		return errors.New("dir holds a NUL")
	case t.Dir == "/":
		return errors.New("dir must not be the root of the file system")
	case len(t.Dir) > maxPath:
		return fmt.Errorf("dir has %d bytes, at most %d", len(t.Dir), maxPath)
	case len(t.Test) > maxTest:
		return fmt.Errorf("the test command has %d bytes, at most %d", len(t.Test), maxTest)
	case len(t.Sources) == 0:
		return errors.New("no source of candidates")
	case !t.Deliver.valid():
		return fmt.Errorf("unknown delivery %q: apply, patch or none", t.Deliver)
	}
	for _, s := range t.Sources {
		if s != SourceModel && s != SourceEngine && (s != SourcePerson || !t.Child.proposes()) {
			return fmt.Errorf("unknown source %q: model or engine", s)
		}
	}
	if err := t.Child.validate(t.Sources); err != nil {
		return err
	}
	size := 0
	for _, p := range t.Targets {
		if size += len(p); size > maxTargets {
			return fmt.Errorf("the targets have more than %d bytes: name folders", maxTargets)
		}
		if !filepath.IsLocal(p) {
			return fmt.Errorf("target %q leaves the folder", p)
		}
	}
	return t.Limits.Validate()
}

// deadline is the moment at which a run opened at t0 is ended.
func (t Task) deadline(t0 time.Time) time.Time {
	return t0.Add(seconds(t.Limits.Seconds))
}
