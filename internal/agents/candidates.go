package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	rdebug "runtime/debug"
	"slices"
	"sync"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

// suite is what the candidates of one ask are tested with.
type suite struct {
	in   *run.TestInput
	plan testrun.Plan
	base run.Evidence
}

// lastWord is how long before the end of its time an ask stops testing, so
// that what was found is told.
const lastWord = 30 * time.Second

// candidates tests the candidates side by side, each in a staged tree and a
// sandbox of its own, as many at a time as there are processors. The first
// green one in rank order wins: as soon as a candidate is green, those after
// it are given up and left out of the results, those before it are waited for.
//
// A candidate that could not be tested, because its sandbox failed or the time
// was over, has a verdict that says so. When that is all there is, the first
// error is returned, for the run to try again.
func (t *tester) candidates(ctx context.Context, job bus.Job, s suite) ([]run.TestResult, error) {
	all, stop := lastCall(ctx)
	defer stop()
	r := newRace(all, s.in.Candidates)
	var wg sync.WaitGroup
	for i, c := range r.order {
		job.Progress(suiteTimeout + stageTime)                     // another suite may have the turn
		if err := t.turns.Acquire(r.lanes[i].ctx, 1); err != nil { //nolint:contextcheck // a lane's context is made of ours
			r.finish(i, run.Verdict{}, err)
			continue
		}
		wg.Go(func() {
			defer t.turns.Release(1)
			v, err := t.guarded(r.lanes[i].ctx, job, s, c)
			r.finish(i, v, err)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.results()
}

// guarded turns a panic into the failure of one candidate: it runs beside the
// handler, whose own guard would not see it.
func (t *tester) guarded(ctx context.Context, job bus.Job, s suite, c run.Candidate) (v run.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			job.Log.Error().Interface("panic", p).Bytes("stack", rdebug.Stack()).Msg("testing a candidate panicked")
			err = failure.New(failure.Unexpected, "test", fmt.Errorf("internal error: %v", p))
		}
	}()
	return t.candidate(ctx, job, s, c)
}

// lastCall ends lastWord before ctx does, or at a tenth of what is left.
func lastCall(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(end)
	return context.WithDeadlineCause(ctx, end.Add(-min(lastWord, left/10)), errNoTime)
}

var (
	errNoTime = errors.New("the time was over before its tests had ended")
	errBeaten = errors.New("a candidate before it is green")
)

// race is the test of several candidates, in rank order.
type race struct {
	order []run.Candidate

	mu    sync.Mutex
	lanes []lane
}

// lane is one candidate in the race.
type lane struct {
	ctx    context.Context //nolint:containedctx // lives for one race
	beaten context.CancelCauseFunc
	v      run.Verdict
	err    error
}

func newRace(ctx context.Context, candidates []run.Candidate) *race {
	r := &race{order: slices.Clone(candidates)}
	slices.SortStableFunc(r.order, func(a, b run.Candidate) int { return cmp.Compare(a.Rank, b.Rank) })
	for range r.order {
		l := lane{}
		l.ctx, l.beaten = context.WithCancelCause(ctx)
		r.lanes = append(r.lanes, l)
	}
	return r
}

// finish records the word on candidate i. A green one ends those after it.
func (r *race) finish(i int, v run.Verdict, err error) {
	if cause := context.Cause(r.lanes[i].ctx); err != nil && cause != nil {
		err = cause
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes[i].v, r.lanes[i].err = v, err
	r.lanes[i].beaten(nil)
	if err == nil && v.Kind == run.VerdictPassed {
		for _, l := range r.lanes[i+1:] {
			l.beaten(errBeaten)
		}
	}
}

// results are the verdicts in rank order.
func (r *race) results() ([]run.TestResult, error) {
	var out []run.TestResult
	var first error
	tested := false
	for i, c := range r.order {
		l := r.lanes[i]
		if errors.Is(l.err, errBeaten) {
			continue
		}
		v := l.v
		if l.err != nil {
			if first == nil {
				first = l.err
			}
			v = run.Verdict{Kind: run.VerdictInfrastructure, Reason: "it could not be tested: " + l.err.Error()}
			if c.Tree != nil {
				v.Tree = c.Tree.Hash
			}
		}
		tested = tested || l.err == nil
		out = append(out, run.TestResult{Rank: c.Rank, Candidate: c.Hash, Verdict: v})
		if v.Kind == run.VerdictPassed {
			break // what came in after it was green is of no use
		}
	}
	if !tested {
		return nil, first
	}
	return out, nil
}

// candidate runs the tests of the base on the candidate's tree.
func (t *tester) candidate(ctx context.Context, job bus.Job, s suite, c run.Candidate) (run.Verdict, error) {
	if c.Tree == nil {
		return run.Verdict{}, fmt.Errorf("candidate %d has no tree", c.Rank)
	}
	ev, out, _, err := t.execute(ctx, job, s.plan, *c.Tree)
	if err != nil {
		return run.Verdict{}, err
	}
	return t.record(ctx, run.Judge(s.base, ev), ev, out)
}
