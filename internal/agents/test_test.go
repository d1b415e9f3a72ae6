package agents

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

const unittest = "python3 -m unittest"

func (b *bench) tester() *tester {
	b.t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		b.t.Skip("the projects of these tests are Python, and this machine has no python3")
	}
	stage := stager{store: b.store, temp: b.t.TempDir(), hidden: []string{b.state}}
	return &tester{store: b.store, stage: stage, turns: semaphore.NewWeighted(2)}
}

// baseline runs the project as it is.
func (b *bench) baseline(t *tester, command string) (*run.TestAnswer, error) {
	b.t.Helper()
	_, tree := b.snapshot()
	ans, err := t.handle(b.t.Context(), job(run.Ask{Test: &run.TestInput{Dir: b.dir, Test: command, Base: tree, Seconds: 600}}))
	return ans.Test, err
}

// TestBaseline: which tests are red, what is protected, how they are run, and
// the evidence of it.
func TestBaseline(t *testing.T) {
	t.Parallel()
	tree := calc()
	tree["tests/data.json"], tree["pkg/conftest.py"], tree["lib/x_test.go"] = "{}", "", ""
	b := newBench(t, tree)
	before := b.hash()
	ans, err := b.baseline(b.tester(), unittest)
	require.NoError(t, err)
	v := ans.Results[0].Verdict
	require.Equal(t, run.VerdictFailed, v.Kind, v.Reason)
	require.Equal(t, []string{"test_calc.py::T::test"}, v.Failed)
	require.Equal(t, 1, v.Counts.Passed)
	require.Equal(t, before, v.Tree)
	var ev run.Evidence
	require.NoError(t, loadJSON(t.Context(), b.store, &v.Evidence, &ev))
	require.Equal(t, run.OutcomeFailed, ev.Outcomes["test_calc.py::T::test"])
	out, err := rollback.Read(t.Context(), b.store, v.Output.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(out), "AssertionError")
	guarded, err := loadProtected(t.Context(), b.store, ans.Protected)
	require.NoError(t, err)
	require.Equal(t, []string{"lib/x_test.go", "pkg/conftest.py", "test_calc.py", "tests/data.json"}, guarded.list())
	var plan testrun.Plan
	require.NoError(t, loadJSON(t.Context(), b.store, ans.Plan, &plan))
	require.Equal(t, testrun.Unittest, plan.Runner)
	require.Equal(t, before, b.hash(), "the tests run in a copy")
}

// TestBaselineVerdicts: what a project's own run proves.
func TestBaselineVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree    files
		command string
		kind    run.VerdictKind
		weak    bool
	}{
		"green":               {files{"calc.py": fixed, "test_calc.py": tests}, unittest, run.VerdictPassed, false},
		"an error of import":  {files{"test_calc.py": tests}, unittest, run.VerdictFailed, false},
		"a command that fits": {calc(), "sh -c 'exit 0'", run.VerdictPassed, true},
		"a command that does not": {
			calc(), "sh -c 'exit 3'", run.VerdictFailed, true,
		},
		"tests that end at once": {files{"calc.py": fixed, "test_calc.py": "import os\nos._exit(0)\n" + tests}, unittest, run.VerdictUntrusted, false},
	} {
		b := newBench(t, c.tree)
		ans, err := b.baseline(b.tester(), c.command)
		require.NoError(t, err, name)
		v := ans.Results[0].Verdict
		require.Equal(t, c.kind, v.Kind, "%s: %s", name, v.Reason)
		require.Equal(t, c.weak, v.Weak, name)
		require.NotNil(t, ans.Protected, name)
	}
}

// TestBaselineThatChanges: a test that says something else the second time is
// nobody's proof.
func TestBaselineThatChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"calc.py": fixed, "test_calc.py": tests + `
    def test_chance(self):
        import os
        self.assertLess(os.urandom(1)[0], 128)
`})
	worker := b.tester()
	for range 40 { // each has an even chance to differ
		ans, err := b.baseline(worker, unittest)
		require.NoError(t, err)
		if v := ans.Results[0].Verdict; len(v.Flaky) > 0 {
			require.Equal(t, []string{"test_calc.py::T::test_chance"}, v.Flaky)
			require.NotEqual(t, run.VerdictPassed, v.Kind)
			return
		}
	}
	t.Fatal("no second run differed from its first")
}

// TestBaselineOfBadInput: no tests and no such command are the task's fault.
func TestBaselineOfBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree    files
		command string
	}{
		"no tests":          {files{"calc.py": fixed}, ""},
		"no such program":   {calc(), "no-such-runner -q"},
		"not even a phrase": {calc(), "python3 -m unittest 'x"},
	} {
		b := newBench(t, c.tree)
		_, err := b.baseline(b.tester(), c.command)
		var bad *bus.BadInput
		require.ErrorAs(t, err, &bad, name)
	}
}

// TestWithoutPlanOrBaseline: candidates are compared with nothing else.
func TestWithoutPlanOrBaseline(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	worker := b.tester()
	base, err := b.baseline(worker, unittest)
	require.NoError(t, err)
	lost := run.Ref{SHA256: strings.Repeat("7", 64)}
	for name, change := range map[string]func(in *run.TestInput){
		"no plan":        func(in *run.TestInput) { in.Plan = nil },
		"a lost plan":    func(in *run.TestInput) { in.Plan = &lost },
		"lost baseline":  func(in *run.TestInput) { in.Baseline = &lost },
		"empty baseline": func(in *run.TestInput) { in.Baseline = &run.Ref{} },
	} {
		in := b.testing(base, b.fix(0))
		change(in)
		_, err := worker.handle(t.Context(), job(run.Ask{Test: in}))
		require.Error(t, err, name)
	}
}

func TestNamesOfTests(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"test_a.py": true, "a/test_a.py": true, "a/b_test.go": true, "conftest.py": true, "a/conftest.py": true, "tox.ini": true,
		"tests/data/x.json": true, "src/test/java/A.java": true, "noxfile.py": true, "pytest.ini": true,
		"a.py": false, "testing/a.py": false, "attest_a.py": false, "contest.py": false, "test.py": true, "src/latest/a.py": false,
	} {
		require.Equal(t, want, ProtectedName(p), p)
	}
}
