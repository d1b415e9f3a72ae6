package run_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

// life drives a run through whatever rapid draws: right answers, answers of
// another type, failures, losses, doubles, late and forged ones, orders,
// timers and crashes, in any order.
type life struct {
	*rapid.T
	r *runtest.Run
	// honest workers keep to what they were asked; the others answer with
	// wrong hashes, trees that are nil, and worse.
	honest bool
	// names numbers proposals and candidates, so that each is new.
	names int
	// told are facts that were stated before, to be stated again.
	told   []run.Fact
	states []run.State
	texts  []string
}

// randomSteps is how many steps are drawn before the rest of the life is left
// to the sweeper and the clock.
const randomSteps = 80

func live(t *rapid.T) *life {
	l := &life{T: t, r: runtest.New("aaaaaaaaaaaaaaaaaaaaaaaaaa"), honest: rapid.Bool().Draw(t, "honest")}
	l.r.Check = l.watch
	l.must(l.r.Open(l.task()))
	for i := range 4000 {
		if l.r.State.Closed {
			return l
		}
		if i < randomSteps {
			l.step()
		} else {
			l.windDown()
		}
	}
	t.Fatalf("does not end: %s", l.r.State.Step())
	return nil
}

func (l *life) must(err error) {
	if err != nil {
		l.Fatalf("%v", err)
	}
}

// thousandth is 0 to 1023, each as likely as the other: rapid's own ranges
// prefer small numbers, and then a life ends before it gets anywhere.
var thousandth = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 10 {
		n *= 2
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

func (l *life) pick(label string, n int) int { return thousandth.Draw(l.T, label) * n / 1024 }

func (l *life) chance(label string, percent int) bool { return l.pick(label, 100) < percent }

func one[V any](l *life, label string, of ...V) V { return of[l.pick(label, len(of))] }

func (l *life) task() run.Task {
	t := runtest.Task()
	t.Sources = one(l, "sources", []run.Source{run.SourceModel, run.SourceEngine}, []run.Source{run.SourceEngine},
		[]run.Source{run.SourceModel}, []run.Source{run.SourceEngine, run.SourceModel})
	t.Deliver = one(l, "deliver", run.DeliverApply, run.DeliverPatch, run.DeliverNone)
	t.InPlace, t.Report = l.chance("in place", 40), l.chance("report", 50)
	t.Limits.DebugAttempts = 1 + l.pick("attempts", 6)
	t.Limits.ASTFails, t.Limits.ReviewRounds = 1+l.pick("ast", 3), l.pick("reviews", 3)
	t.Limits.Events = one(l, "events", 50, 60, 120, 900)
	if l.chance("budget", 50) {
		n := l.pick("calls", 5)
		t.Limits.ModelCalls = &n
	}
	l.must(t.Validate())
	return t
}

// step does one thing that may happen to a run.
func (l *life) step() {
	switch k := l.pick("step", 100); {
	case k < 78:
		l.answer(true)
	case k < 80:
		l.answer(false)
	case k < 88:
		l.fail()
	case k < 89:
		l.fire()
	case k < 92:
		l.order()
	case k < 97:
		l.again()
	default:
		l.forge()
	}
}

// windDown is what always happens in the end: lost asks are reported, timers
// fire, and somebody resumes or cancels what is parked.
func (l *life) windDown() {
	n, ask := l.r.Pending()
	switch {
	case l.r.State.Parked:
		l.tell(run.Fact{By: run.ByOperator, Order: &run.Order{Kind: run.OrderResume}})
	case n > 0 && l.chance("lost", 50):
		l.tell(run.Fact{By: run.BySweeper, Ask: n, Failure: l.failure(ask)})
	case n > 0:
		l.answer(true)
	default:
		l.fire()
	}
}

// tell states a fact as the conductor does, and checks that one which the run
// does not wait for changes nothing.
func (l *life) tell(f run.Fact) {
	f.At = l.r.Now
	if !l.r.State.Awaits(f) {
		l.changesNothing(f)
		return
	}
	l.told = append(l.told, f)
	if !l.chance("crash", 15) {
		l.must(l.r.Tell(f))
		return
	}
	l.must(l.r.Record(f))
	s, err := run.FoldAll(l.r.ID, l.r.Log)
	l.must(err)
	if text(s) != text(l.r.State) {
		l.Fatalf("the log folds to another state")
	}
	l.r.State = s
	l.must(l.r.Drain())
}

func (l *life) changesNothing(f run.Fact) {
	after := run.FoldFact(l.r.State, f)
	after.At = l.r.State.At
	if f.Timer == "" && text(after) != text(l.r.State) {
		l.Fatalf("a fact that is not awaited changes the state: %s", text(f))
	}
}

// answer lets the worker of the pending ask answer, with the type that it owes
// or with another.
func (l *life) answer(right bool) {
	n, ask := l.r.Pending()
	if n == 0 && l.r.State.Parked {
		l.order()
		return
	}
	if n == 0 {
		l.fire()
		return
	}
	f := run.Fact{By: run.By(ask.Worker), Ask: n}
	if right {
		f.Answer = l.right(ask)
	} else if l.chance("some answer", 80) {
		f.Answer = l.right(run.Ask{Worker: run.Report, Report: &run.ReportInput{}})
		if ask.Report != nil {
			f.Answer = &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: runtest.Tree("origin")}}
		}
	}
	l.tell(f)
}

func (l *life) fail() {
	n, ask := l.r.Pending()
	if n == 0 {
		l.fire()
		return
	}
	by := run.By(ask.Worker)
	if l.chance("sweeper", 20) {
		by = run.BySweeper
	}
	l.tell(run.Fact{By: by, Ask: n, Failure: l.failure(ask)})
}

func (l *life) failure(ask run.Ask) *run.Failure {
	category := one(l, "again", failure.RateLimit, failure.Timeout, failure.Connection, failure.InvalidOutput)
	if l.chance("never again", 20) {
		category = one(l, "category", append(failure.Categories(), "", "brand_new", "nats.subject")...)
	}
	f := &run.Failure{
		Category: string(category), Message: "it broke", Calls: l.calls(ask),
		Exhausted: l.chance("exhausted", 10), BadInput: l.chance("bad input", 2),
	}
	if l.chance("details", 20) {
		f.RetryAfter = one(l, "retry after", 3, 400, 1e9, 1e300, -1)
		f.Status = one(l, "status", 400, 401, 429, 500)
		f.Quota = one(l, "quota", 0, 60, 1e12)
	}
	return f
}

// calls is how many model calls an ask cost: no more than it allowed.
func (l *life) calls(ask run.Ask) int {
	if ask.Debug == nil || ask.Debug.Source != run.SourceModel {
		return 0
	}
	most := 2
	if ask.Debug.Calls != nil {
		most = min(most, *ask.Debug.Calls)
	}
	return l.pick("model calls", most+1)
}

func (l *life) fire() {
	timers := l.r.State.Timers()
	if len(timers) == 0 {
		return
	}
	t := slices.MinFunc(timers, func(a, b run.Timer) int { return a.At.Compare(b.At) })
	if l.chance("another", 10) {
		t = one(l, "timer", timers...)
	}
	if t.At.After(l.r.Now) {
		l.r.Now = t.At
	}
	l.tell(run.Fact{By: run.ByClock, Timer: t.Name})
}

func (l *life) order() {
	o := &run.Order{Kind: one(l, "order", run.OrderPark, run.OrderPark, run.OrderResume, run.OrderCancel, "unknown")}
	if l.r.State.Parked && !l.chance("stay", 20) {
		o.Kind = run.OrderResume
	}
	if l.chance("driver", 30) {
		o.Driver = &run.Driver{PID: 1 + l.pick("pid", 9), Start: 1, Host: "here"}
	}
	l.tell(run.Fact{By: run.ByOperator, Order: o})
}

// again states something that was stated before, or a timer of any name.
func (l *life) again() {
	if len(l.told) == 0 || l.chance("timer", 20) {
		name := one(l, "name", run.TimerDeadline, run.TimerRetry, run.TimerWriter, run.TimerClosing, "other")
		l.tell(run.Fact{By: run.ByClock, Timer: name})
		return
	}
	l.tell(l.told[l.pick("told", len(l.told))])
}

// forge answers in the name of somebody else, or to an ask that is not there.
func (l *life) forge() {
	n, ask := l.r.Pending()
	if l.chance("other ask", 50) {
		l.tell(run.Fact{By: run.By(ask.Worker), Ask: n + 1 + l.pick("ask", 3), Answer: l.right(ask)})
		return
	}
	by := one[run.By](l, "by", "", "stranger", run.ByOperator, run.BySweeper, run.ByClock)
	l.tell(run.Fact{By: by, Ask: n, Answer: l.right(ask)})
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (l *life) name(prefix string) string {
	l.names++
	return fmt.Sprintf("%s%d", prefix, l.names)
}

func isWriter(pending map[int]run.Ask) bool {
	for _, a := range pending {
		if a.Deliver != nil || (a.Apply != nil && a.Apply.InPlace) {
			return true
		}
	}
	return false
}

func quoted(log []run.Event) string {
	var out []string
	for _, e := range log {
		out = append(out, fmt.Sprintf("%d %s", e.N, line(e)))
	}
	return strings.Join(out, "\n")
}
