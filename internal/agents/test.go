package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

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
)

func (t *tester) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Test
	if in.Baseline == nil {
		ans, err := t.baseline(ctx, in)
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
	ans := &run.TestAnswer{}
	for _, c := range in.Candidates {
		v, err := t.candidate(ctx, in, plan, base, c)
		if err != nil {
			return run.Answer{}, err
		}
		ans.Results = append(ans.Results, run.TestResult{Rank: c.Rank, Candidate: c.Hash, Verdict: v})
		if v.Kind == run.VerdictPassed {
			break // the first green one in rank order wins
		}
	}
	return run.Answer{Test: ans}, nil
}

// baseline runs the project as it is, twice when that is quick.
func (t *tester) baseline(ctx context.Context, in *run.TestInput) (*run.TestAnswer, error) {
	plan, err := testrun.Find(ctx, in.Dir, in.Test)
	switch {
	case errors.Is(err, testrun.ErrNoTests), errors.Is(err, testrun.ErrNoInterpreter),
		errors.Is(err, testrun.ErrCommandNotFound), errors.Is(err, testrun.ErrTestCommand):
		return nil, &bus.BadInput{Err: err}
	case err != nil:
		return nil, err
	}
	ev, out, m, err := t.execute(ctx, plan, in.Base, in)
	if err != nil {
		return nil, err
	}
	if !ev.Weak && ev.Completed && ev.Seconds < againBelow.Seconds() {
		second, _, _, err := t.execute(ctx, plan, in.Base, in)
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
	return &run.TestAnswer{Results: []run.TestResult{{Verdict: v}}, Protected: protected(m, ev), Plan: &ref}, nil
}

// candidate runs the tests of the base on the candidate's tree.
func (t *tester) candidate(ctx context.Context, in *run.TestInput, plan testrun.Plan, base run.Evidence, c run.Candidate) (run.Verdict, error) {
	if c.Tree == nil {
		return run.Verdict{}, fmt.Errorf("candidate %d has no tree", c.Rank)
	}
	ev, out, _, err := t.execute(ctx, plan, *c.Tree, in)
	if err != nil {
		return run.Verdict{}, err
	}
	return t.record(ctx, run.Judge(base, ev), ev, out)
}

func (t *tester) execute(ctx context.Context, plan testrun.Plan, tree run.Tree, in *run.TestInput) (ev run.Evidence, out []byte, m rollback.Manifest, err error) {
	share := func(most time.Duration, part float64) time.Duration {
		return min(most, time.Duration(in.Seconds*part*float64(time.Second)))
	}
	opts := testrun.Options{
		Tree: tree.Hash, Timeout: share(suiteTimeout, suiteShare), TestTimeout: share(testTimeout, testShare),
		Temp: t.stage.temp, Hidden: t.stage.hidden,
	}
	err = t.stage.with(ctx, tree, in.Dir, func(staged string, manifest rollback.Manifest) error {
		m = manifest
		ev, out, err = testrun.Run(ctx, plan, staged, opts)
		return err
	})
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

// protected lists the files of the project that tests and runner consist of:
// what the collected ids name, what is named like a test, and configuration.
func protected(m rollback.Manifest, ev run.Evidence) []string {
	files := map[string]bool{}
	for _, id := range ev.Collected {
		file, _, _ := strings.Cut(id, "::")
		files[file] = true
	}
	var out []string
	for _, e := range m.Entries {
		if e.Type == rollback.TypeFile && (files[e.Path] || testName(e.Path)) {
			out = append(out, e.Path)
		}
	}
	return out
}

// testName reports whether the path is that of a test or of its runner's
// configuration.
func testName(p string) bool {
	base := path.Base(p)
	switch base {
	case "conftest.py", "pytest.ini", "tox.ini", "noxfile.py":
		return true
	}
	if ok, _ := path.Match("test_*.py", base); ok {
		return true
	}
	if ok, _ := path.Match("*_test.*", base); ok {
		return true
	}
	return slices.ContainsFunc(strings.Split(path.Dir(p), "/"), func(d string) bool { return d == "tests" || d == "test" })
}

func storeJSON(ctx context.Context, store rollback.Blobs, v any) (run.Ref, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return run.Ref{}, err
	}
	return store.Put(ctx, data)
}

func loadJSON(ctx context.Context, store rollback.Blobs, ref *run.Ref, v any) error {
	if ref == nil {
		return errors.New("the ask names no artifact")
	}
	data, err := rollback.Read(ctx, store, ref.SHA256)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
