package agents

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/run"
)

// version is a staged candidate that writes the text.
func (b *bench) version(rank int, text string) run.Candidate {
	b.t.Helper()
	origin, _ := b.snapshot()
	c := b.staged(origin, b.modify(origin, "calc.py", text))
	c.Rank = rank
	return c
}

func (b *bench) fix(rank int) run.Candidate { return b.version(rank, fixed) }

func (b *bench) testing(base *run.TestAnswer, candidates ...run.Candidate) *run.TestInput {
	b.t.Helper()
	_, tree := b.snapshot()
	return &run.TestInput{
		Dir: b.dir, Test: unittest, Base: tree, Seconds: 600,
		Baseline: &base.Results[0].Verdict.Evidence, Plan: base.Plan, Candidates: candidates,
	}
}

// heat is a project with its baseline and a tester whose store can be hooked
// at the manifest of each candidate.
type heat struct {
	*bench
	*tester
	base *run.TestAnswer
	mu   sync.Mutex
	// at is what happens before the tree of the candidate is read.
	at map[string]func(context.Context) error
	// seen are the ranks whose trees were read, in that order.
	seen []string
}

func newHeat(t *testing.T) *heat {
	t.Helper()
	b := newBench(t, calc())
	h := &heat{bench: b, at: map[string]func(context.Context) error{}}
	h.tester = b.tester()
	var err error
	h.base, err = b.baseline(h.tester, unittest)
	require.NoError(t, err)
	h.stage.store = hooked{b.store, func(ctx context.Context, sha string) error {
		h.mu.Lock()
		do, ok := h.at[sha]
		if ok {
			h.seen = append(h.seen, sha)
		}
		h.mu.Unlock()
		if !ok {
			return nil
		}
		return do(ctx)
	}}
	return h
}

// before hooks the staging of a candidate.
func (h *heat) before(c run.Candidate, do func(context.Context) error) run.Candidate {
	h.at[c.Tree.Manifest.SHA256] = do
	return c
}

func (h *heat) run(ctx context.Context, candidates ...run.Candidate) ([]run.TestResult, error) {
	ask := run.Ask{Test: h.testing(h.base, candidates...)} //nolint:contextcheck // it stores with the test's own
	ans, err := h.handle(ctx, job(ask))
	if err != nil {
		return nil, err
	}
	return ans.Test.Results, nil
}

func kinds(results []run.TestResult) map[int]run.VerdictKind {
	out := map[int]run.VerdictKind{}
	for _, r := range results {
		out[r.Rank] = r.Verdict.Kind
	}
	return out
}

// hang waits until the candidate is given up.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func wait(c <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestTheFirstGreenWins: in rank order, whatever the order of the list; those
// after it are no results.
func TestTheFirstGreenWins(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	wrong, right, late := h.version(0, "def add(a, b):\n    return 3 * b\n"), h.fix(1), h.fix(2)
	results, err := h.run(t.Context(), late, right, wrong)
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictFailed, 1: run.VerdictPassed}, kinds(results))
	require.Equal(t, 0, results[0].Rank)
	require.Equal(t, right.Hash, results[1].Candidate)
	require.Equal(t, right.Tree.Hash, results[1].Verdict.Tree)
	var ev run.Evidence
	require.NoError(t, loadJSON(t.Context(), h.bench.store, &results[1].Verdict.Evidence, &ev))
	require.Equal(t, right.Tree.Hash, ev.Tree)
}

// TestSideBySide: two candidates are in work at the same time: each waits for
// the other to have begun.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	first, second := make(chan struct{}), make(chan struct{})
	meet := func(mine, other chan struct{}) func(context.Context) error {
		return func(ctx context.Context) error { close(mine); return wait(other)(ctx) }
	}
	a := h.before(h.version(0, "pass\n"), meet(first, second))
	b := h.before(h.version(1, "pass # other\n"), meet(second, first))
	results, err := h.run(t.Context(), a, b)
	require.NoError(t, err)
	require.Len(t, results, 2)
}

// TestTurnsAreBounded: no more suites run than there are turns, over all asks,
// and they are given in rank order.
func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	h.turns = semaphore.NewWeighted(1)
	var inside sync.Mutex
	alone := func(context.Context) error {
		if !inside.TryLock() {
			return errors.New("another one is in work")
		}
		runtime.Gosched()
		inside.Unlock()
		return nil
	}
	var list []run.Candidate
	var order []string
	for i, text := range []string{"pass\n", "pass # 1\n", "pass # 2\n"} {
		list = append(list, h.before(h.version(i, text), alone))
		order = append(order, list[i].Tree.Manifest.SHA256)
	}
	results, err := h.run(t.Context(), list[2], list[0], list[1])
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictFailed, 1: run.VerdictFailed, 2: run.VerdictFailed}, kinds(results))
	require.Equal(t, order, h.seen)

	cfg := Config{Temp: t.TempDir()}
	w, err := New(run.Test, cfg, h.bench.store)
	require.NoError(t, err)
	require.Equal(t, testCap, w.Cap)
}

// TestTheBeatenAreGivenUp: a green candidate ends those after it, in work or
// not begun, and waits for those before it.
func TestTheBeatenAreGivenUp(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	h.turns = semaphore.NewWeighted(3)
	beaten := make(chan struct{})
	before := h.before(h.version(0, fixed+"# better\n"), wait(beaten))
	green := h.fix(1)
	after := h.before(h.version(2, "pass\n"), func(ctx context.Context) error {
		err := hang(ctx)
		close(beaten)
		return err
	})
	results, err := h.run(t.Context(), before, green, after, h.version(3, "pass # never\n"))
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictPassed}, kinds(results))
}

// TestOneThatCannotBeTested: it is said so, and what the others proved counts.
func TestOneThatCannotBeTested(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	broken := func(context.Context) error { return errors.New("no room on the device") }
	lost := h.before(h.version(0, "pass\n"), broken)
	treeless := h.version(1, "pass # 1\n")
	treeless.Tree = nil
	results, err := h.run(t.Context(), lost, treeless, h.version(2, "pass # 2\n"))
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictInfrastructure, 1: run.VerdictInfrastructure, 2: run.VerdictFailed}, kinds(results))
	require.Contains(t, results[0].Verdict.Reason, "could not be tested")
	require.Contains(t, results[0].Verdict.Reason, "no room on the device")
	require.Equal(t, lost.Tree.Hash, results[0].Verdict.Tree)

	results, err = h.run(t.Context(), lost, h.fix(1))
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictInfrastructure, 1: run.VerdictPassed}, kinds(results))
}

// TestNoneThatCanBeTested: then the first error decides what follows, by its
// category.
func TestNoneThatCanBeTested(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	gone := failure.New(failure.Connection, "get", errors.New("no answer"))
	a := h.before(h.version(0, "pass\n"), func(context.Context) error { return gone })
	b := h.before(h.version(1, "pass # 1\n"), func(context.Context) error { return errors.New("other") })
	_, err := h.run(t.Context(), a, b)
	require.ErrorIs(t, err, gone)
	_, err = h.run(t.Context())
	require.NoError(t, err, "nothing to test is no error")
}

// TestWhenTheTimeIsOver: what was found until then is told; what was in work
// or never begun could not be tested.
func TestWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, stop := lastCall(ctx)
	defer stop()
	end, ok := all.Deadline()
	require.True(t, ok)
	last, _ := ctx.Deadline()
	require.True(t, end.Before(last), "there is time to say what was found")
	none, stop := lastCall(t.Context())
	defer stop()
	_, ok = none.Deadline()
	require.False(t, ok)

	over, stop := context.WithDeadlineCause(t.Context(), time.Now(), errNoTime)
	defer stop()
	r := newRace(over, []run.Candidate{{Rank: 0}, {Rank: 1, Tree: &run.Tree{Hash: "t1"}}, {Rank: 2}})
	r.finish(0, run.Verdict{Kind: run.VerdictFailed}, nil)
	for i := 1; i < 3; i++ {
		r.finish(i, run.Verdict{}, context.DeadlineExceeded)
	}
	results, err := r.results()
	require.NoError(t, err)
	require.Equal(t, map[int]run.VerdictKind{0: run.VerdictFailed, 1: run.VerdictInfrastructure, 2: run.VerdictInfrastructure}, kinds(results))
	require.Contains(t, results[1].Verdict.Reason, errNoTime.Error())
	require.Equal(t, "t1", results[1].Verdict.Tree)

	r.finish(0, run.Verdict{}, context.DeadlineExceeded)
	_, err = r.results()
	require.ErrorIs(t, err, errNoTime)
}

// TestAStopIsNoResult: when the worker stops or the run ends, nothing is said
// about any candidate.
func TestAStopIsNoResult(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	ctx, cancel := context.WithCancel(t.Context())
	a := h.version(0, "pass\n")
	b := h.before(h.version(1, "pass # 1\n"), func(ctx context.Context) error { cancel(); return hang(ctx) })
	_, err := h.run(ctx, a, b)
	require.ErrorIs(t, err, context.Canceled)
}

// TestManyCandidatesFitIntoAMessage: the longest list, with all their output.
func TestManyCandidatesFitIntoAMessage(t *testing.T) {
	t.Parallel()
	h := newHeat(t)
	noisy := "print('<' * 9000)\n\n\ndef add(a, b):\n    raise ValueError('&' * 5000)\n"
	var list []run.Candidate
	for i := range 6 {
		list = append(list, h.version(i, noisy+strings.Repeat("#", i)+"\n"))
	}
	results, err := h.run(t.Context(), list...)
	require.NoError(t, err)
	require.Len(t, results, 6)
	for _, r := range results {
		require.LessOrEqual(t, len(r.Verdict.Tail), 8<<10)
		require.NotEmpty(t, r.Verdict.Failed)
	}
}
