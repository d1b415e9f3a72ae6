package run

import (
	"slices"
	"time"
)

// State is what a log amounts to. Only Fold makes one; a State must be
// treated as read-only.
type State struct {
	ID string
	// N is the number of the last event.
	N    int
	Task Task
	// OpenedAt is zero until the run has opened.
	OpenedAt time.Time
	// At is when the newest fact was recorded.
	At time.Time
	// Pending holds the asks that wait for an answer, by their number.
	Pending map[int]Ask
	// Origin is the project as it was; nil until the snapshot was taken.
	Origin *Tree
	// Baseline is the verdict on Origin.
	Baseline *Verdict
	// Protected names the list of files that no candidate may touch.
	Protected *Ref
	// Plan says how the tests are run, as the baseline found out.
	Plan *Ref
	// Base is the tree that the next attempt changes, and Evidence the
	// newest failing verdict: a failed candidate becomes the next base.
	Base     Tree
	Evidence Verdict
	Attempts []Attempt
	// BaselineRetried is true once the baseline had an infrastructure
	// failure.
	BaselineRetried bool
	// Review and Ruling are the reviewers' words on the winner of the last
	// attempt; Rounds counts the candidates that the guardian sent back.
	Review  *ReviewAnswer
	Ruling  *ReviewAnswer
	Rounds  int
	Deliver *DeliverAnswer
	// Moves counts how often the project changed beside the fix, so that the
	// fix had to be proved again. Stale is true until the snapshot is taken that
	// this needs; Origin is the older one until then.
	Moves int
	Stale bool
	// Calls counts the model calls of the run.
	Calls        int
	PromptTokens int
	AnswerTokens int

	// Failed is a worker's failure that has not been disposed of.
	Failed *FailedAsk
	// Failures counts failures by worker and category since the worker's
	// last answer.
	Failures map[string]int
	// Stop says that the run must end, and why.
	Stop *Stop
	// Parked is true while no process drives the run, since ParkedAt. Rested
	// is how long it was parked before; that time extends the deadline.
	Parked   bool
	ParkedAt time.Time
	Rested   time.Duration

	Cancelling bool
	Ended      *Ended
	// BadInput is true when the run ended because the task itself is at fault.
	BadInput   bool
	EndedAt    time.Time
	RolledBack *RollbackAnswer
	// GaveUp is true once nobody took the run back in time.
	GaveUp    bool
	Settled   *Settled
	SettledAt time.Time
	Report    *ReportAnswer
	// Closing is true once the closing phase is over, with or without a
	// report.
	Closing bool
	Closed  bool
}

// Attempt is one debug attempt from the ask to its status.
type Attempt struct {
	N      int
	Source Source
	// Ask is the number of the debugger's ask.
	Ask int
	// Feedback is what the guardian told this attempt.
	Feedback  string
	Proposed  *DebugAnswer
	Validated *ValidateAnswer
	Applied   *ApplyAnswer
	Tested    *TestAnswer
	// Retried is true once the test had an infrastructure failure.
	Retried bool
	// Reproved is true once a candidate that was green is proved again, on a
	// project that has changed meanwhile.
	Reproved bool
	// Status is empty while the attempt goes on.
	Status AttemptStatus
	// Err says why the attempt brought nothing, cut to 200 characters.
	Err string
	// Repeated is true when the source said the same thing again.
	Repeated bool
	// Failure is set when the source could not answer.
	Failure *Failure
}

// FailedAsk is a failure that waits for its disposition.
type FailedAsk struct {
	N       int
	Ask     Ask
	Failure Failure
	At      time.Time
	// Due is true once the timer of its delay has fired.
	Due bool
}

// Stop says why a run must end before its work is done.
type Stop struct {
	By     By
	Reason string
	At     time.Time
	// Grace is true once a pending writer was waited for long enough.
	Grace bool
}

// Last returns the newest attempt, or nil.
func (s State) Last() *Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

// Winner returns the first green candidate of the newest attempt with its
// verdict, or nil.
func (s State) Winner() (*Candidate, *Verdict) {
	a := s.Last()
	if a == nil || a.Status != StatusPytestPass {
		return nil, nil
	}
	return a.winner()
}

func (a *Attempt) winner() (*Candidate, *Verdict) {
	if a.Tested == nil || a.Applied == nil {
		return nil, nil
	}
	var best *Candidate
	var green *Verdict
	for i := range a.Applied.Candidates {
		c := &a.Applied.Candidates[i]
		v := a.verdictOf(c)
		passed := v != nil && v.Kind == VerdictPassed && c.Tree != nil && v.Tree == c.Tree.Hash
		if passed && (best == nil || c.Rank < best.Rank) {
			best, green = c, v
		}
	}
	return best, green
}

// Tried lists the hashes of every candidate that was decoded so far.
func (s State) Tried() []string {
	seen := map[string]bool{}
	for _, a := range s.Attempts {
		for h := range a.hashes() {
			seen[h] = true
		}
	}
	out := make([]string, 0, len(seen))
	for h := range seen {
		out = append(out, h)
	}
	slices.Sort(out)
	return out
}

func (a *Attempt) hashes() map[string]bool {
	out := map[string]bool{}
	if a.Validated != nil {
		for _, c := range a.Validated.Accepted {
			out[c.Hash] = true
		}
		for _, r := range a.Validated.Rejected {
			if r.Hash != "" {
				out[r.Hash] = true
			}
		}
	}
	if a.Applied != nil {
		for _, c := range a.Applied.Candidates {
			out[c.Hash] = true
		}
	}
	return out
}

// Cancelled reports whether the run ended because somebody wanted it to.
func (s State) Cancelled() bool {
	return s.Ended != nil && s.Ended.State != Approved && s.Stop != nil && s.Stop.By == ByOperator
}

// WantsPerson reports whether a person should look at a run that has ended
// without approval: not where it was cancelled or the task was at fault, unless
// its folder is not known to be as it was.
func (s State) WantsPerson() bool {
	switch t := s.Settled; {
	case s.Ended == nil || s.Ended.State == Approved:
		return false
	case t == nil || !t.Proven || len(t.Conflicts) > 0:
		return true
	}
	return !s.Cancelled() && !s.BadInput
}

// Timer is a moment that a State waits for.
type Timer struct {
	// Name is the <name> of the timer's subject.
	Name string
	At   time.Time
}

// The names of timers.
const (
	TimerDeadline = "deadline"
	TimerRetry    = "retry"
	TimerWriter   = "writer"
	TimerRollback = "rollback"
	TimerClosing  = "closing"
)

// Grace periods that no limit sets.
const (
	// writerGrace is how long a stopped run waits for the answer of a worker
	// that may be writing the project; the worker's hard cap is below it.
	writerGrace = 150 * time.Second
	// rollbackTime is how long a rollback may take with all its tries; the
	// home of the run may be gone.
	rollbackTime = 10 * time.Minute
	// closingTime is how long what follows settled may take.
	closingTime = 60 * time.Second
)

// Timers lists the timers that s waits for. They are armed before the
// outcome that led to s is acknowledged, and again when an owner starts.
func (s State) Timers() []Timer {
	var out []Timer
	switch {
	case s.OpenedAt.IsZero() || s.Closed:
		return nil
	case s.Settled != nil && !s.Closing:
		return []Timer{{TimerClosing, s.SettledAt.Add(closingTime)}}
	case s.Ended != nil && s.Settled == nil && s.Ended.State != Approved:
		out = append(out, Timer{TimerRollback, s.EndedAt.Add(rollbackTime)})
	case s.Ended == nil && s.Stop == nil && !s.Parked:
		out = append(out, Timer{TimerDeadline, s.deadline()})
	case s.Ended == nil && s.Stop != nil && s.writer():
		out = append(out, Timer{TimerWriter, s.Stop.At.Add(writerGrace)})
	}
	if s.Failed != nil && !s.Failed.Due && !s.Parked {
		if d := s.dispose(); d.again && d.after > 0 {
			out = append(out, Timer{TimerRetry, s.Failed.At.Add(d.after)})
		}
	}
	return out
}

// deadline is when the run is ended; the time that it was parked extends it.
func (s State) deadline() time.Time { return s.Task.deadline(s.OpenedAt).Add(s.Rested) }

// Overdue is when a run that has not settled is stuck, whatever happens to its
// timers: every limit and grace period has passed then, and half a minute more.
// It is zero for a run that has not opened, has settled, or is parked.
func (s State) Overdue() time.Time {
	const slack = 30 * time.Second
	switch {
	case s.OpenedAt.IsZero() || s.Settled != nil || s.Parked:
		return time.Time{}
	case s.Ended != nil:
		return s.EndedAt.Add(rollbackTime + slack)
	}
	return s.deadline().Add(writerGrace + slack)
}

// Writing reports whether a worker may be writing the project: a run in this
// state must not be parked.
func (s State) Writing() bool { return s.Task.InPlace || s.writer() }

// writer reports whether a worker that writes the project has not answered.
func (s State) writer() bool {
	for _, a := range s.Pending {
		if a.Deliver != nil || (a.Apply != nil && a.Apply.InPlace) {
			return true
		}
	}
	return false
}
