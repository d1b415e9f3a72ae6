package agents

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

// tester answers run.TestInput with run.TestAnswer: it runs the tests of
// staged trees and lets run.Judge say what the evidence proves. It needs no
// model.
type tester struct {
	store rollback.Blobs
	stage stager
	// turns bounds the suites that run at the same time in this process, over
	// all asks: one for each processor.
	turns *semaphore.Weighted
}

// Limits of one execution of the tests.
const (
	suiteTimeout = 10 * time.Minute
	// testTimeout bounds one test. Both are cut to a share of the run's time.
	testTimeout = time.Minute
	suiteShare  = 0.4
	testShare   = 0.15
	// againBelow is how quick a baseline must be to be run a second time,
	// which finds the tests that do not always say the same.
	againBelow = 10 * time.Second
	// stageTime is how long a step may take in which no test runs: to stage a
	// tree, to remove it, to store what was found.
	stageTime = 2 * time.Minute
)

func (t *tester) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Test
	if in.Baseline == nil {
		ans, err := t.baseline(ctx, job)
		return run.Answer{Test: ans}, err
	}
	var plan testrun.Plan
	if err := loadJSON(ctx, t.store, in.Plan, &plan); err != nil {
		return run.Answer{}, err
	}
	var base run.Evidence
	if err := loadJSON(ctx, t.store, in.Baseline, &base); err != nil {
		return run.Answer{}, err
	}
	results, err := t.candidates(ctx, job, suite{in: in, plan: plan, base: base})
	if err != nil {
		return run.Answer{}, err
	}
	ans := &run.TestAnswer{Results: results}
	ans.Bound()
	return run.Answer{Test: ans}, nil
}

// baseline runs the project as it is, twice when that is quick.
func (t *tester) baseline(ctx context.Context, job bus.Job) (*run.TestAnswer, error) {
	in := job.Ask.Test
	plan, err := testrun.Find(ctx, in.Dir, in.Test)
	switch {
	case errors.Is(err, testrun.ErrNoTests), errors.Is(err, testrun.ErrNoInterpreter), errors.Is(err, testrun.ErrNoGo), errors.Is(err, testrun.ErrNoNode),
		errors.Is(err, testrun.ErrCommandNotFound), errors.Is(err, testrun.ErrTestCommand):
		return nil, &bus.BadInput{Err: err}
	case err != nil:
		return nil, err
	}
	job.Progress(suiteTimeout + stageTime) // another suite may have the turn
	if err := t.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer t.turns.Release(1)
	ev, out, m, err := t.execute(ctx, job, plan, in.Base)
	if err != nil {
		return nil, err
	}
	if !ev.Weak && ev.Completed && ev.Seconds < againBelow.Seconds() {
		second, _, _, err := t.execute(ctx, job, plan, in.Base)
		if err != nil {
			return nil, err
		}
		ev.Flaky = run.FlakyIDs(ev, second)
	}
	v, err := t.record(ctx, run.JudgeBase(ev), ev, out)
	if err != nil {
		return nil, err
	}
	ref, err := storeJSON(ctx, t.store, plan)
	if err != nil {
		return nil, err
	}
	guarded, err := keepProtected(ctx, t.store, protected(m, ev))
	if err != nil {
		return nil, err
	}
	return &run.TestAnswer{Results: []run.TestResult{{Verdict: v}}, Protected: guarded, Plan: &ref}, nil
}

// execute runs the suite on a staged copy of the tree. It tells of its
// progress: how long the next step may take at most.
func (t *tester) execute(ctx context.Context, job bus.Job, plan testrun.Plan, tree run.Tree) (ev run.Evidence, out []byte, m rollback.Manifest, err error) {
	in := job.Ask.Test
	share := func(most time.Duration, part float64) time.Duration {
		return min(most, time.Duration(in.Seconds*part*float64(time.Second)))
	}
	opts := testrun.Options{
		Tree: tree.Hash, Timeout: share(suiteTimeout, suiteShare), TestTimeout: share(testTimeout, testShare),
		Temp: t.stage.temp, Hidden: t.stage.hidden,
	}
	job.Progress(stageTime)
	err = t.stage.with(ctx, tree, in.Dir, func(staged string, manifest rollback.Manifest) error {
		m, opts.Protected = manifest, TestPaths(manifest)
		job.Progress(opts.Timeout + stageTime)
		ev, out, err = testrun.Run(ctx, plan, staged, opts)
		return err
	})
	job.Progress(stageTime)
	return ev, out, m, err
}

// record stores the evidence and the output beside the verdict.
func (t *tester) record(ctx context.Context, v run.Verdict, ev run.Evidence, out []byte) (run.Verdict, error) {
	ref, err := storeJSON(ctx, t.store, ev)
	if err != nil {
		return v, err
	}
	v.Evidence = ref
	v.Output, err = t.store.Put(ctx, out)
	return v, err
}
