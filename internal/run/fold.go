package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/failure"
)

// Fold returns the state after e. It fails only when e cannot be the next
// event of this log, which means that the log is damaged.
func Fold(s State, e Event) (State, error) {
	if e.N != s.N+1 {
		return s, fmt.Errorf("run: event %d follows event %d", e.N, s.N)
	}
	if e.Command == nil {
		return s, fmt.Errorf("run: event %d holds no command", e.N)
	}
	if _, first := e.Command.(Opened); first != (s.N == 0) {
		return s, fmt.Errorf("run: event %d is %q", e.N, e.Command.Name())
	}
	if e.Fact != nil {
		s = FoldFact(s, *e.Fact)
	}
	s.N = e.N
	return foldCommand(s, e.N, e.Command), nil
}

// FoldAll folds a whole log.
func FoldAll(id string, log []Event) (State, error) {
	s := State{ID: id}
	for _, e := range log {
		var err error
		if s, err = Fold(s, e); err != nil {
			return s, err
		}
	}
	return s, nil
}

func foldCommand(s State, n int, c Command) State {
	switch c := c.(type) {
	case Opened:
		s.Task, s.OpenedAt, s.At = c.Task, instant(c.At), instant(c.At)
	case Ask:
		s = foldAsk(s, n, c)
	case Cancelling:
		s.Cancelling = true
	case Ended:
		s.EndedAt = s.At
		s = foldEnded(s, n, c)
	case Settled:
		s.Settled, s.SettledAt, s.Failed, s.Pending = &c, s.At, nil, nil
	case Closed:
		s.Closed, s.Pending = true, nil
	case Result, Due:
	}
	return s
}

func foldEnded(s State, n int, e Ended) State {
	if a := s.Last(); a != nil && a.Status == "" {
		status := cutOff(a, s.Failed)
		s = s.edit(func(a *Attempt) { a.finish(status, e.Reason) })
	}
	s.BadInput = s.Failed != nil && s.Failed.Failure.BadInput && e.State == Failed
	s.Ended, s.Failed, s.Pending, s.Parked = &e, nil, nil, false
	if e.Rollback != nil {
		s.Pending = map[int]Ask{n: {Worker: Rollback, Rollback: e.Rollback}}
	}
	return s
}

// cutOff is the status of an attempt that the end of the run cut off: it
// names the step that failed, or that the attempt was green on the project as
// it was before somebody else changed it.
func cutOff(a *Attempt, f *FailedAsk) AttemptStatus {
	switch {
	case a.Reproved && a.Tested == nil:
		return StatusPytestPass
	case f != nil && f.Ask.Worker == Test:
		return StatusSandboxError
	case f != nil && (f.Ask.Worker == Validate || f.Ask.Worker == Apply), a.Applied != nil && len(a.Applied.Drift) > 0:
		return StatusGateFail
	}
	return StatusNoFixedCode
}

func foldAsk(s State, n int, a Ask) State {
	s.Pending = maps.Clone(s.Pending)
	if s.Pending == nil {
		s.Pending = map[int]Ask{}
	}
	s.Pending[n] = a
	s.Failed = nil
	if a.Debug == nil {
		return s
	}
	if last := s.Last(); last != nil && last.N == a.Debug.Attempt && last.Source == a.Debug.Source {
		return s.edit(func(at *Attempt) { at.Ask = n })
	}
	if last := s.Last(); last != nil && last.Status == "" {
		s = s.edit(func(at *Attempt) { at.finish(StatusNoFixedCode, failureText(at.Failure)) })
	}
	s.Review, s.Ruling = nil, nil
	s.Failures = without(s.Failures, a.Worker)
	s.Attempts = append(slices.Clip(s.Attempts), Attempt{
		N: a.Debug.Attempt, Source: a.Debug.Source, Ask: n, Feedback: a.Debug.Feedback,
	})
	return s
}

// edit changes the newest attempt, if there is one, without touching the
// slice that earlier states share.
func (s State) edit(change func(*Attempt)) State {
	if len(s.Attempts) == 0 {
		return s
	}
	s.Attempts = slices.Clone(s.Attempts)
	change(&s.Attempts[len(s.Attempts)-1])
	return s
}

// FoldFact returns the state in which f is known but nothing has followed
// from it. A fact that the state does not wait for changes nothing.
func FoldFact(s State, f Fact) State {
	if s.OpenedAt.IsZero() || s.Closed {
		return s
	}
	f.At = instant(f.At)
	was := s.At
	s.At = f.At
	switch {
	case f.Timer != "":
		return foldTimer(s, f)
	case f.Order != nil:
		return foldOrder(s, f, was)
	}
	ask, ok := s.Pending[f.Ask]
	if !ok || !speaks(f, ask) {
		return s
	}
	s.Pending = maps.Clone(s.Pending)
	delete(s.Pending, f.Ask)
	if f.Failure != nil || !fits(ask, f.Answer) {
		return foldFailure(s, f, ask)
	}
	s.Failures = without(s.Failures, ask.Worker)
	return foldAnswer(s, f, ask)
}

// speaks reports whether f is by somebody who may speak for the ask's worker:
// only the worker itself answers, while the sweeper may report that the ask
// was lost.
func speaks(f Fact, a Ask) bool {
	return f.By == By(a.Worker) || (f.By == BySweeper && f.Answer == nil)
}

// instant drops the monotonic clock and the zone, which a log does not keep:
// a decision in a live process and its replay must see the same moment.
func instant(t time.Time) time.Time { return t.Round(0).UTC() }

// fits reports whether the answer is the one that the ask's worker owes. An
// empty answer of a step that must say something is no answer.
func fits(a Ask, ans *Answer) bool {
	if ans == nil {
		return false
	}
	switch {
	case a.Snapshot != nil:
		return ans.Snapshot != nil && ans.Snapshot.Tree.Hash != ""
	case a.Test != nil:
		return ans.Test != nil
	case a.Debug != nil:
		return ans.Debug != nil
	case a.Validate != nil:
		return ans.Validate != nil && len(ans.Validate.Accepted)+len(ans.Validate.Rejected) > 0
	case a.Apply != nil:
		return ans.Apply != nil
	case a.Review != nil:
		return ans.Review != nil && slices.Contains([]ReviewWord{WordApprove, WordReject, WordHuman}, ans.Review.Word)
	case a.Deliver != nil:
		return ans.Deliver != nil && (ans.Deliver.refused() || ans.Deliver.Delivered.valid())
	case a.Rollback != nil:
		return ans.Rollback != nil
	case a.Report != nil:
		return ans.Report != nil
	}
	return false
}

func foldTimer(s State, f Fact) State {
	switch f.Timer {
	case TimerDeadline:
		if s.Stop == nil && s.Ended == nil && !s.Parked {
			s.Stop = &Stop{By: ByClock, At: f.At, Reason: fmt.Sprintf("time limit of %s reached", seconds(s.Task.Limits.Seconds))}
		}
	case TimerRetry:
		if s.Failed != nil && !s.Parked {
			due := *s.Failed
			due.Due = true
			s.Failed = &due
		}
	case TimerWriter:
		if s.Stop != nil && s.Ended == nil {
			stop := *s.Stop
			stop.Grace = true
			s.Stop = &stop
		}
	case TimerRollback:
		s.GaveUp = s.Ended != nil && s.Settled == nil
	case TimerClosing:
		if s.Settled != nil {
			s.Closing = true
		}
	}
	return s
}

// seconds converts a number of seconds from outside; what is no wait is 0,
// and what is longer than a year is a year, on every machine alike.
func seconds(v float64) time.Duration {
	const most = 366 * 24 * 3600
	if !(v > 0) {
		return 0
	}
	return time.Duration(min(v, most) * float64(time.Second))
}

func foldOrder(s State, f Fact, was time.Time) State {
	switch f.Order.Kind {
	case OrderCancel:
		if s.Stop == nil && s.Ended == nil {
			s.Stop = &Stop{By: f.By, At: f.At, Reason: cmp.Or(cutText(f.Order.Reason, maxMessage), "cancelled")}
			s = s.unpark(f.At)
		}
	case OrderPark:
		if s.Ended == nil && s.Stop == nil && !s.Parked {
			s.Parked, s.ParkedAt, s.Pending = true, f.At, nil
		}
	case OrderResume:
		if s.Ended == nil && s.Stop == nil {
			if d := f.Order.Driver; d != nil && !s.Parked && (s.Task.Driver == nil || *d != *s.Task.Driver) {
				// Nobody worked between the last fact and the new driver.
				s.Rested += max(f.At.Sub(was), 0)
			}
			s = s.unpark(f.At)
			s.Task.Driver = cmp.Or(f.Order.Driver, s.Task.Driver)
		}
	}
	return s
}

// unpark lets the run go on; the time that it was parked does not count.
func (s State) unpark(at time.Time) State {
	if s.Parked {
		s.Parked, s.Rested = false, s.Rested+max(at.Sub(s.ParkedAt), 0)
	}
	return s
}

func foldFailure(s State, f Fact, a Ask) State {
	fail := Failure{Category: string(failure.InvalidOutput), Op: a.Name(), Message: "the answer does not fit the ask"}
	if f.Failure != nil {
		fail = *f.Failure
	}
	if !failure.Category(fail.Category).Valid() {
		fail.Category = string(failure.Unexpected)
	}
	fail.Message = cutText(fail.Message, maxMessage)
	s.Failures = maps.Clone(s.Failures)
	if s.Failures == nil {
		s.Failures = map[string]int{}
	}
	s.Failures[key(a.Worker, fail.Category)]++
	s.Failed = &FailedAsk{N: f.Ask, Ask: a, Failure: fail, At: f.At}
	s.Calls += max(fail.Calls, 0)
	if a.Debug != nil && len(s.Attempts) > 0 {
		s = s.edit(func(at *Attempt) { at.Failure = &fail })
	}
	if a.Report != nil {
		s.Failed, s.Closing = nil, true
	}
	return s
}

func key(w Worker, category string) string { return string(w) + "/" + category }

func without(m map[string]int, w Worker) map[string]int {
	out := map[string]int{}
	for k, v := range m {
		if !strings.HasPrefix(k, key(w, "")) {
			out[k] = v
		}
	}
	return out
}

// maxMessage is the most characters of an error that the state keeps and
// later events quote; the event of the fact holds all of it.
const maxMessage = 2000

// cutText cuts s to at most n characters.
func cutText(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

func failureText(f *Failure) string {
	if f == nil {
		return ""
	}
	return f.Category + ": " + f.Message
}
