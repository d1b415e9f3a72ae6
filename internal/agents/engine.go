package agents

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/repair"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

// Time that the engine may search, within what is left of the run.
const (
	engineBudget = 2 * time.Minute
	engineShare  = 0.5
)

// askEngine searches for edits under which the failing tests pass.
func (d *debugger) askEngine(ctx context.Context, job bus.Job) (*run.DebugAnswer, error) {
	in := job.Ask.Debug
	var plan testrun.Plan
	if err := loadJSON(ctx, d.store, in.Plan, &plan); err != nil {
		return nil, err
	}
	if why := engineNeeds(plan); why != "" {
		return &run.DebugAnswer{Reason: why}, nil
	}
	var red, first run.Evidence
	if err := loadJSON(ctx, d.store, &in.Evidence.Evidence, &red); err != nil {
		return nil, err
	}
	if err := loadJSON(ctx, d.store, &in.Baseline.Evidence, &first); err != nil {
		return nil, err
	}
	guarded, err := loadProtected(ctx, d.store, in.Protected)
	if err != nil {
		return nil, err
	}
	budget := min(engineBudget, time.Duration(in.Seconds*engineShare*float64(time.Second)))
	engine, err := repair.New(repair.Config{
		Python: plan.Python.Path, Runner: plan.Runner, Env: plan.Env,
		Launcher: confined{
			readOnly: plan.Python.ReadOnly, hidden: append([]string{plan.Root}, d.stage.hidden...), temp: d.stage.temp, timeout: budget + time.Minute,
		},
	})
	if err != nil {
		return nil, err
	}
	ans := &run.DebugAnswer{}
	err = d.stage.with(ctx, in.Base, in.Dir, func(dir string, m rollback.Manifest) error {
		req := repair.Request{
			Dir: dir, Targets: in.Targets, Protected: unnamed(guarded), TestArgs: plan.Args, Limit: in.Limit, Budget: max(budget, time.Second),
		}
		if plan.Runner == testrun.Pytest {
			req.Failing, req.Passing = split(first, red)
		} else {
			// unittest names a test by how its module was loaded, the record
			// by its file: the harness finds out itself what is red.
			if req.TestArgs = plan.Names; len(req.TestArgs) == 0 {
				req.TestArgs = testFiles(red)
			}
		}
		fixes, report, err := engine.Propose(ctx, req)
		if why := destroyed(ctx, err); why != "" {
			job.Log.Info().Err(err).Msg("engine")
			ans.Reason = why
			return nil
		}
		if err != nil {
			return err
		}
		job.Log.Debug().Int("tried", report.Tried).Int("plausible", report.Plausible).Float64("rate", report.Rate()).Msg("engine")
		ans.Reason = report.Reason
		for i, f := range fixes {
			if slices.Contains(in.Tried, hashOf(f, m)) {
				ans.Reason = "its fixes were tried before"
				continue
			}
			text, err := d.store.Put(ctx, patch.Diff(f.Path, f.Old, f.New))
			if err != nil {
				return err
			}
			ans.Proposals = append(ans.Proposals, run.Proposal{Text: text, Format: "diff", Finish: "stop", Note: note(fixes, i)})
		}
		return nil
	})
	return ans, err
}

// engineNeeds says why the engine can do nothing under a plan, or "".
func engineNeeds(plan testrun.Plan) string {
	switch {
	case plan.Weak:
		return "it needs a runner that tells of every test, not an exit status alone: name pytest or unittest with --test, or leave it out"
	case plan.Python == nil:
		return fmt.Sprintf("it repairs Python under pytest or unittest; for tests under %s configure a model", plan.Runner)
	case !EngineRunsUnder(plan.Python):
		return fmt.Sprintf("it needs Python 3.%d or later, and the tests run under %s (%s): name another interpreter in %s, or configure a model",
			enginePython, plan.Python.Version, plan.Python.Path, testrun.EnvPython)
	}
	return ""
}

// enginePython is the oldest Python 3 that the engine's harness runs under.
const enginePython = 8

// EngineRunsUnder reports whether the engine can look for fixes of tests that
// run under in: tests alone run under older versions as well.
func EngineRunsUnder(in *testrun.Interpreter) bool {
	return in.Version == "" || !in.Older(enginePython)
}

// destroyed says that the project's own tests took the harness or the files
// away, so that nothing can be tried on this tree: a person must look at them.
// It is empty for every error of ours.
func destroyed(ctx context.Context, err error) string {
	ours := []error{sandbox.ErrSetup, sandbox.ErrUnavailable, sandbox.ErrSpec, sandbox.ErrCommandNotFound}
	switch {
	case err == nil || ctx.Err() != nil || slices.ContainsFunc(ours, func(e error) bool { return errors.Is(err, e) }):
		return ""
	case errors.Is(err, repair.ErrNoReport):
		return "the project's tests end the process that runs them, so no fix can be tried: " + err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "the project's tests delete its files, so no fix can be tried: " + err.Error()
	}
	return ""
}

// unnamed lists the protected Python files that the engine does not know for
// tests by their name: it compares every source with every one of them.
func unnamed(guarded protection) []string {
	return slices.DeleteFunc(guarded.list(), func(p string) bool { return path.Ext(p) != ".py" || plainTest(p) })
}

// plainTest reports whether the engine knows a file for a test by its name; it
// knows fewer names than the gates, which would refuse what it proposes.
func plainTest(p string) bool {
	name := path.Base(p)
	if name == "conftest.py" || strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test.py") {
		return true
	}
	return slices.ContainsFunc(strings.Split(path.Dir(p), "/"), func(dir string) bool {
		return slices.Contains([]string{"tests", "test", "testing"}, dir)
	})
}

// hashOf names a fix as the gates name the candidate that they make of it.
func hashOf(f repair.Fix, m rollback.Manifest) string {
	e, _ := m.Lookup(f.Path)
	sum := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	return run.HashChanges([]run.Change{{Path: f.Path, Op: run.OpModify, Mode: e.Mode, BaseMode: e.Mode, Base: sum(f.Old), New: sum(f.New)}})
}

// maxOthers is how many other fixes a note spells out.
const maxOthers = 3

// note says what a fix is, and what else passes the same tests and yet does
// something else: a person may know which was meant.
func note(fixes []repair.Fix, i int) string {
	text := fixes[i].Reason
	others := repair.Others(fixes, i)
	if len(others) == 0 {
		return text
	}
	var list []string
	for _, o := range others[:min(len(others), maxOthers)] {
		list = append(list, o.Reason)
	}
	if more := len(others) - maxOthers; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	count := fmt.Sprintf("%d other fixes pass the same tests but behave", len(others))
	if len(others) == 1 {
		count = "1 other fix passes the same tests but behaves"
	}
	return fmt.Sprintf("%s; %s differently near their inputs: %s", text, count, strings.Join(list, ", "))
}

// testFiles lists the files of the tests that ran; unittest takes them as
// names, also from folders that are no packages.
func testFiles(e run.Evidence) []string {
	var out []string
	for _, id := range e.Collected {
		if file, _, ok := strings.Cut(id, "::"); ok {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// split lists the ids that must turn green and those that must stay so, by the
// newest evidence; what the baseline collected and nobody reported any more
// must come back. Tests that do not always say the same are in neither.
func split(base, now run.Evidence) (failing, passing []string) {
	flaky := map[string]bool{}
	for _, id := range append(slices.Clone(base.Flaky), now.Flaky...) {
		flaky[id] = true
	}
	for id, o := range now.Outcomes {
		switch {
		case flaky[id]:
		case o == run.OutcomePassed:
			passing = append(passing, id)
		case o == run.OutcomeFailed || o == run.OutcomeError:
			failing = append(failing, id)
		}
	}
	for _, id := range base.Collected {
		if _, ok := now.Outcomes[id]; !ok && !flaky[id] {
			failing = append(failing, id)
		}
	}
	slices.Sort(failing)
	slices.Sort(passing)
	return slices.Compact(failing), passing
}
