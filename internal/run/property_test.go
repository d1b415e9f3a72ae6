package run_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
)

// TestEveryLifeEnds lives many lives and checks what ARCHITECTURE promises of
// every run.
func TestEveryLifeEnds(t *testing.T) {
	t.Parallel()
	approved := 0
	rapid.Check(t, func(t *rapid.T) {
		l := live(t)
		l.judge()
		if l.r.State.Ended.State == run.Approved {
			approved++
		}
	})
	require.Positive(t, approved, "no life was approved: the generator is of no use")
}

// FuzzLife is TestEveryLifeEnds for go test -fuzz; -fuzzminimizetime 1x keeps
// it from spending its time on long lives.
func FuzzLife(f *testing.F) {
	for seed := range byte(8) {
		source := rand.NewChaCha8([32]byte{seed})
		life := make([]byte, 1<<16)
		_, err := source.Read(life)
		require.NoError(f, err)
		f.Add(life)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { live(t).judge() }))
}

// watch checks every step.
func (l *life) watch(before run.State, e run.Event, after run.State) {
	if len(l.states) > 0 && text(before) != l.texts[len(l.texts)-1] && before.N != l.states[len(l.states)-1].N {
		l.Fatalf("event %d does not follow the state before", e.N)
	}
	l.states, l.texts = append(l.states, after), append(l.texts, text(after))
	if again, err := run.Fold(before, e); err != nil || text(again) != text(after) {
		l.Fatalf("Fold of event %d has two results (%v)", e.N, err)
	}
	if x, y := run.Decide(after), run.Decide(after); text(x) != text(y) {
		l.Fatalf("Decide has two results after event %d", e.N)
	}
	if len(after.Pending) > 1 {
		l.Fatalf("%d asks at once after event %d", len(after.Pending), e.N)
	}
	if !after.Closed && !after.Parked && len(run.Decide(after)) == 0 && len(after.Pending)+len(after.Timers()) == 0 {
		l.Fatalf("waits for nothing after event %d:\n%s", e.N, quoted(append(l.r.Log, e)))
	}
	if before.Closed {
		l.Fatalf("event %d follows closed", e.N)
	}
	for _, timer := range after.Timers() {
		if late := after.Overdue(); !late.IsZero() && timer.At.After(late) {
			l.Fatalf("after event %d the run counts as stuck before its timer %s", e.N, timer.Name)
		}
	}
	l.watchEnd(before, e)
}

// watchEnd checks that no run ends while a writer may be at work.
func (l *life) watchEnd(before run.State, e run.Event) {
	end, ok := e.Command.(run.Ended)
	if !ok {
		if ask, ok := e.Command.(run.Ask); ok && before.Ended != nil && ask.Rollback == nil && ask.Report == nil {
			l.Fatalf("event %d asks %s after the end", e.N, ask.Worker)
		}
		return
	}
	if e.Fact != nil {
		before = run.FoldFact(before, *e.Fact)
	}
	if waited := before.Stop != nil && before.Stop.Grace; isWriter(before.Pending) && !waited {
		l.Fatalf("event %d ends the run while a writer is at work", e.N)
	}
	if (end.Rollback == nil) != (end.State == run.Approved) {
		l.Fatalf("event %d: %s and rollback %v", e.N, end.State, end.Rollback != nil)
	}
}

// judge checks the whole log of a closed run.
func (l *life) judge() {
	log, s := l.r.Log, l.r.State
	if len(log) > s.Task.Limits.Events {
		l.Fatalf("%d events, the limit is %d:\n%s", len(log), s.Task.Limits.Events, quoted(log))
	}
	for i, st := range l.states {
		if text(st) != l.texts[i] {
			l.Fatalf("a later event changed the state after event %d", i+1)
		}
	}
	diffs, err := run.Verify(l.r.ID, log)
	l.must(err)
	if len(diffs) > 0 {
		l.Fatalf("verify: %v", diffs)
	}
	var ends []string
	for _, e := range log {
		if n := e.Command.Name(); slices.Contains([]string{"ended", "settled", "closed"}, n) {
			ends = append(ends, n)
		}
	}
	if !slices.Equal(ends, []string{"ended", "settled", "closed"}) {
		l.Fatalf("ends: %v", ends)
	}
	l.judgeLimits()
	l.judgeRequests()
	if s.Ended.State == run.Approved {
		l.judgeApproval()
	} else {
		l.judgeRollback()
	}
	run.Summarise(s)
}

func (l *life) judgeLimits() {
	limits := l.r.State.Task.Limits
	attempts, sentBack, calls := map[int]bool{}, 0, 0
	for _, e := range l.r.Log {
		calls += callsOf(e.Fact)
		ask, ok := e.Command.(run.Ask)
		if !ok {
			continue
		}
		if ask.Again > 14 {
			l.Fatalf("event %d is redelivery %d", e.N, ask.Again)
		}
		in := ask.Debug
		if in == nil {
			continue
		}
		if attempts[in.Attempt] = true; in.Source == run.SourceModel && in.Calls != nil && *in.Calls < 1 {
			l.Fatalf("event %d asks a model that may not be called", e.N)
		}
		if f := e.Fact; f != nil && f.Answer != nil && f.Answer.Review != nil {
			sentBack++
		}
	}
	switch s := l.r.State; {
	case len(attempts) > limits.DebugAttempts || len(s.Attempts) > limits.DebugAttempts:
		l.Fatalf("%d attempts, the limit is %d", len(attempts), limits.DebugAttempts)
	case limits.ModelCalls != nil && max(calls, s.Calls) > *limits.ModelCalls:
		l.Fatalf("%d model calls, counted as %d, the limit is %d", calls, s.Calls, *limits.ModelCalls)
	case sentBack > limits.ReviewRounds:
		l.Fatalf("%d review rounds, the limit is %d", sentBack, limits.ReviewRounds)
	}
	for _, a := range l.r.State.Attempts {
		if a.Status == "" || len([]rune(a.Err)) > 200 {
			l.Fatalf("attempt %d has status %q and err %q", a.N, a.Status, a.Err)
		}
	}
}

// callsOf is how many model calls a fact reports.
func callsOf(f *run.Fact) int {
	switch {
	case f == nil:
		return 0
	case f.Failure != nil:
		return max(f.Failure.Calls, 0)
	case f.Answer != nil && f.Answer.Debug != nil:
		return max(f.Answer.Debug.Calls, 0)
	}
	return 0
}

// judgeRequests checks that no source reads the same request in two attempts.
func (l *life) judgeRequests() {
	if !l.honest {
		return
	}
	seen := map[string]int{}
	for _, e := range l.r.Log {
		ask, ok := e.Command.(run.Ask)
		if !ok || ask.Debug == nil || len(ask.Debug.Rejected) >= 20 {
			continue
		}
		in := *ask.Debug
		n := in.Attempt
		in.Attempt, in.Seconds, in.Calls = 0, 0, nil
		key := text(in)
		if was, ok := seen[key]; ok && was != n {
			l.Fatalf("attempts %d and %d have the same request:\n%s\n%s", was, n, key, quoted(l.r.Log))
		}
		seen[key] = n
	}
}

// judgeApproval finds the proof of an approval in the facts of the log.
func (l *life) judgeApproval() {
	p := proof{green: map[[2]string]bool{}, asks: map[int]run.Ask{}}
	for _, e := range l.r.Log {
		if e.Fact != nil && e.Fact.Answer != nil {
			p.learn(*e.Fact)
		}
		if ask, ok := e.Command.(run.Ask); ok {
			p.asks[e.N] = ask
		}
	}
	d := p.deliver
	if d == nil || len(d.Drift)+len(d.Moved) > 0 {
		l.Fatalf("approved without a delivery")
	}
	if d.Candidate == "" {
		if !p.green[[2]string{"", l.r.State.Origin.Hash}] || d.After != l.r.State.Origin.Hash {
			l.Fatalf("nothing to do, but the project was not green")
		}
		return
	}
	if p.guardian != p.policy || p.guardian[0] != d.Candidate || !p.green[p.guardian] {
		l.Fatalf("approved %v and %v, delivered %s, green %v", p.guardian, p.policy, d.Candidate, p.green)
	}
	if s := l.r.State.Task; s.Deliver == run.DeliverApply && d.After != p.guardian[1] {
		l.Fatalf("delivered tree %s instead of %s", d.After, p.guardian[1])
	} else if s.InPlace && s.Deliver != run.DeliverApply && d.After != l.r.State.Origin.Hash {
		l.Fatalf("the candidate was left in the folder")
	}
}

// proof is what an approval rests on: candidate hash and tree hash.
type proof struct {
	asks             map[int]run.Ask
	green            map[[2]string]bool
	guardian, policy [2]string
	deliver          *run.DeliverAnswer
}

func (p *proof) learn(f run.Fact) {
	ask := p.asks[f.Ask]
	if f.By != run.By(ask.Worker) {
		return
	}
	switch a := f.Answer; {
	case ask.Test != nil && a.Test != nil:
		for _, r := range a.Test.Results {
			if r.Verdict.Kind == run.VerdictPassed {
				p.green[[2]string{r.Candidate, r.Verdict.Tree}] = true
			}
		}
	case ask.Review != nil && a.Review != nil && a.Review.Word == run.WordApprove:
		if words := [2]string{a.Review.Candidate, a.Review.Tree}; ask.Worker == run.Guardian {
			p.guardian = words
		} else {
			p.policy = words
		}
	case ask.Deliver != nil && a.Deliver != nil:
		p.deliver = a.Deliver
	}
}

func (l *life) judgeRollback() {
	answered, seen := false, false
	for _, e := range l.r.Log {
		seen = seen || (e.Fact != nil && e.Fact.Answer != nil && e.Fact.Answer.Snapshot != nil)
		if end, ok := e.Command.(run.Ended); ok && l.honest && seen && end.Rollback.Origin == nil {
			l.Fatalf("event %d: the rollback does not know the project that the run has seen", e.N)
		}
		answered = answered || (e.Fact != nil && e.Fact.Answer != nil && e.Fact.Answer.Rollback != nil)
	}
	if s := l.r.State.Settled; s.Proven && !answered {
		l.Fatalf("settled as proven without a rollback")
	} else if s.State == run.Approved {
		l.Fatalf("settled as approved")
	}
}
