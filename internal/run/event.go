package run

import "time"

// Worker names a consumer that answers asks. It is the <name> of the
// subject.
type Worker string

// The workers of a heal.
const (
	Snapshot Worker = "snapshot"
	Debugger Worker = "debugger"
	Validate Worker = "validate"
	Apply    Worker = "apply"
	Test     Worker = "test"
	Guardian Worker = "guardian"
	Policy   Worker = "policy"
	Deliver  Worker = "deliver"
	Rollback Worker = "rollback"
	Report   Worker = "report"
)

// Event is one entry of a run's log: at most one fact, which came in, and
// exactly one command, which was decided.
type Event struct {
	// N numbers the events of a run from 1 without gaps.
	N int
	// Decider is the version of Decide that made the event.
	Decider int
	// Fact is what happened, by whom and why; nil when the command follows
	// from the event before.
	Fact *Fact
	// Command is what follows from it.
	Command Command
}

// Command is what an event appends to the log. The set is closed.
//
//sumtype:decl
type Command interface {
	// Name is the <name> of the event's subject.
	Name() string
	command()
}

// Opened starts a run.
type Opened struct {
	Task Task      `json:"task"`
	At   time.Time `json:"at"`
}

// Ask is work for a worker. Exactly the input of that worker is set. The
// ask's number is the N of its event.
type Ask struct {
	Worker Worker `json:"worker"`
	// Again counts the redeliveries of this ask after its first try.
	Again int `json:"again,omitempty"`
	// Last is why the try before failed, for a source to read.
	Last string `json:"last,omitempty"`

	Snapshot *SnapshotInput `json:"snapshot,omitempty"`
	Test     *TestInput     `json:"test,omitempty"`
	Debug    *DebugInput    `json:"debug,omitempty"`
	Validate *ValidateInput `json:"validate,omitempty"`
	Apply    *ApplyInput    `json:"apply,omitempty"`
	Review   *ReviewInput   `json:"review,omitempty"`
	Deliver  *DeliverInput  `json:"deliver,omitempty"`
	Rollback *RollbackInput `json:"rollback,omitempty"`
	Report   *ReportInput   `json:"report,omitempty"`
}

// Result records a fact from which no command follows.
type Result struct{}

// Due records that a timer fired; its fact names the timer.
type Due struct{}

// Cancelling records that the run is to stop and waits for a writer.
type Cancelling struct {
	Reason string `json:"reason"`
}

// Ended is the end of a run: its terminal state. It is also the ask to the
// rollback consumer unless the state is APPROVED.
type Ended struct {
	State  Terminal `json:"state"`
	Reason string   `json:"reason"`
	// Dead is set when the run ends because of a message that cannot be
	// handled; it goes to the dead letters.
	Dead *DeadLetter `json:"dead,omitempty"`
	// Rollback is what the rollback consumer needs, for which the event is
	// the ask; nil when approved.
	Rollback *RollbackInput `json:"rollback,omitempty"`
}

// Settled carries the proof: the tree hash when the run began to roll back,
// or before delivery, and the tree hash at the end.
type Settled struct {
	// State is that of the end, but ERROR when Proven is false: a folder that
	// nobody can vouch for is a fault of the run, not a question of review.
	State Terminal `json:"state"`
	// Proven is false when the tree could not be read or restored.
	Proven bool   `json:"proven"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Conflicts lists paths that somebody else changed meanwhile; they were
	// kept and their base was saved beside the run. Foreign lists those that
	// somebody else changed and the run never wrote. Both are cut to MaxPaths,
	// Counts has their lengths.
	Conflicts []string       `json:"conflicts,omitempty"`
	Foreign   []string       `json:"foreign,omitempty"`
	Counts    RollbackCounts `json:"counts"`
	Reason    string         `json:"reason,omitempty"`
}

// Closed is the last event of a run.
type Closed struct{}

// Name implements Command.
func (Opened) Name() string { return "opened" }

// Name implements Command.
func (a Ask) Name() string { return string(a.Worker) }

// Name implements Command.
func (Result) Name() string { return "result" }

// Name implements Command.
func (Due) Name() string { return "due" }

// Name implements Command.
func (Cancelling) Name() string { return "cancelling" }

// Name implements Command.
func (Ended) Name() string { return "ended" }

// Name implements Command.
func (Settled) Name() string { return "settled" }

// Name implements Command.
func (Closed) Name() string { return "closed" }

func (Opened) command()     {}
func (Ask) command()        {}
func (Result) command()     {}
func (Due) command()        {}
func (Cancelling) command() {}
func (Ended) command()      {}
func (Settled) command()    {}
func (Closed) command()     {}

// Terminal is how a run ended.
type Terminal string

// The terminal states; a run without one is unknown, which is not approved.
const (
	Approved         Terminal = "APPROVED"
	NeedsHumanReview Terminal = "NEEDS_HUMAN_REVIEW"
	Failed           Terminal = "ERROR"
)

// Exit is the exit status of the command line for the state.
func (t Terminal) Exit() int {
	switch t {
	case Approved:
		return 0
	case NeedsHumanReview:
		return 2
	default:
		return 1
	}
}

// DeadLetter describes a message that cannot be handled.
type DeadLetter struct {
	Category string `json:"category"`
	Worker   Worker `json:"worker"`
	// Ask is the number of the ask, 0 when the message was none.
	Ask    int    `json:"ask"`
	Reason string `json:"reason"`
}
