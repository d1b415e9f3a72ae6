package run

import (
	"fmt"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/failure"
)

// disposition is what follows a failure of the pending step.
type disposition struct {
	// again: the ask is repeated after the delay.
	again bool
	after time.Duration
	// next: the next source of candidates is asked, if there is one.
	next bool
	// dead: the message goes to the dead letters.
	dead bool
	// state is how the run ends when no further source is asked.
	state  Terminal
	reason string
}

// dispose answers what follows s.Failed. A rollback is always tried again,
// whatever its category: nothing else can put the tree right.
func (s State) dispose() disposition {
	f := s.Failed
	in := failure.Failure{
		Category:   failure.Category(f.Failure.Category),
		Again:      max(s.Failures[key(f.Ask.Worker, f.Failure.Category)]-1, 0),
		RetryAfter: seconds(f.Failure.RetryAfter),
		Exhausted:  f.Failure.Exhausted,
		QuotaReset: seconds(f.Failure.Quota),
		Model:      f.model(),
		Status:     f.Failure.Status,
		Run:        s.ID,
		N:          f.N,
	}
	if f.Ask.Worker == Rollback {
		in.Category, in.Again = failure.Connection, max(s.failed(Rollback)-1, 0)
		in.Exhausted, in.QuotaReset, in.RetryAfter = false, 0, 0
	} else if in.Left = s.deadline().Sub(f.At); in.Left == 0 {
		in.Left = -1 // 0 would be no deadline
	}
	d := failure.Policy{Scale: s.Task.Limits.DelayScale}.Dispose(in)
	out := disposition{state: NeedsHumanReview, next: d.Action == failure.NextSource, reason: d.Reason}
	last := d.Action
	if out.next {
		last = d.Else
	}
	switch last {
	case failure.Again, failure.AgainAfter, failure.Park:
		left := callsLeft(s)
		spent := f.model() && left != nil && *left == 0
		out.again, out.next, out.after = !spent, spent, d.After
		if spent {
			out.reason = "all model calls are spent"
		}
	case failure.Bury:
		out.dead = true
	case failure.Abort:
		out.dead, out.state = true, Failed
	case failure.Review, failure.NextSource:
	}
	return out
}

// disposed repeats a failed ask, waits until it may be repeated, asks the
// next source, or ends the run.
func disposed(s State) []Command {
	f := s.Failed
	if f.Failure.BadInput {
		return end(s, Failed, f.Failure.Message)
	}
	d := s.dispose()
	switch {
	case d.again && (d.after == 0 || f.Due):
		return ask(s.again())
	case d.again:
		return nil
	case d.next && f.Ask.Debug != nil:
		gone := s.edit(func(a *Attempt) { a.finish(StatusNoFixedCode, failureText(a.Failure)) })
		next := nextAttempt(gone, f.Ask.Debug.Feedback)
		if _, ok := next[0].(Ask); ok {
			return next
		}
	}
	var dead *DeadLetter
	if d.dead {
		dead = &DeadLetter{Category: f.Failure.Category, Worker: f.Ask.Worker, Ask: f.N, Reason: f.Failure.Message}
	}
	reason := fmt.Sprintf("%s: %s (%s)", f.Ask.Name(), cutText(f.Failure.Message, maxMessage/2), d.reason)
	return []Command{ending(s, d.state, reason, dead)}
}

// again is the failed ask once more; it says why the last try failed, so a
// source never gets the identical request, and what is left of the budget.
func (s State) again() Ask {
	a := s.Failed.Ask
	a.Again++
	a.Last = failureText(&s.Failed.Failure)
	if a.Debug != nil {
		in := *a.Debug
		in.Calls, in.Seconds = callsLeft(s), secondsLeft(s)
		a.Debug = &in
	}
	return a
}

// model reports whether a model was asked.
func (f *FailedAsk) model() bool { return f.Ask.Debug != nil && f.Ask.Debug.Source == SourceModel }

// failed counts the worker's failures since its last answer.
func (s State) failed(w Worker) int {
	n := 0
	for k, v := range s.Failures {
		if strings.HasPrefix(k, key(w, "")) {
			n += v
		}
	}
	return n
}
