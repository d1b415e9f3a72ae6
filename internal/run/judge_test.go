package run_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
)

// suite is complete evidence that agrees with itself: pairs of id and
// outcome. An id that begins with ! was not collected (an error of collection).
func suite(pairs ...string) run.Evidence {
	e := run.Evidence{
		Runner: "pytest", Level: "user", Tree: "t", Completed: true, Canary: true, Outcomes: map[string]run.Outcome{},
	}
	for i := 0; i < len(pairs); i += 2 {
		id := pairs[i]
		if id[0] == '!' {
			id = id[1:]
		} else {
			e.Collected = append(e.Collected, id)
		}
		e.Outcomes[id] = run.Outcome(pairs[i+1])
		if o := run.Outcome(pairs[i+1]); o == run.OutcomeFailed || o == run.OutcomeError {
			e.Exit = 1
		}
	}
	return e
}

func but(e run.Evidence, change func(*run.Evidence)) run.Evidence {
	e.Outcomes = maps.Clone(e.Outcomes)
	e.Collected = slices.Clone(e.Collected)
	change(&e)
	return e
}

func split(e run.Evidence, pairs ...string) run.Evidence {
	e.Split = map[string]run.Outcome{}
	for i := 0; i < len(pairs); i += 2 {
		e.Split[pairs[i]] = run.Outcome(pairs[i+1])
	}
	return e
}

func weak(exit int) run.Evidence {
	return run.Evidence{Runner: "command", Level: "thin", Tree: "t", Weak: true, Completed: true, Exit: exit}
}

var (
	base   = suite("a::x", "failed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed")
	green  = suite("a::x", "passed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed")
	broken = suite("!a.py", "error", "b.py::q", "passed")
	hung   = but(suite("a::x", "passed"), func(e *run.Evidence) {
		e.Collected = []string{"a::x", "a::y"}
		e.Timeout, e.Completed, e.Exit, e.Signal = true, false, -1, "SIGKILL"
	})
	judgeCases = map[string]struct {
		base, got run.Evidence
		kind      run.VerdictKind
		reason    string
		check     func(*testing.T, run.Verdict)
	}{
		"healed": {base, green, run.VerdictPassed, "", func(t *testing.T, v run.Verdict) {
			t.Helper()
			require.Equal(t, []string{"a::x"}, v.Fixed)
			require.Equal(t, run.Counts{Passed: 2, Skipped: 1, Fixed: 1}, v.Counts)
		}},
		"still red": {base, base, run.VerdictFailed, "1 test did not pass", func(t *testing.T, v run.Verdict) {
			t.Helper()
			require.Equal(t, []string{"a::x"}, v.Failed)
		}},
		"broke another": {
			base, suite("a::x", "passed", "a::y", "failed", "a::s", "skipped", "a::z", "xfailed"),
			run.VerdictFailed, "1 test was green on the base and did not pass", func(t *testing.T, v run.Verdict) {
				t.Helper()
				require.Equal(t, []string{"a::y"}, v.Broken)
				require.Equal(t, []string{"a::y"}, v.Failed)
			},
		},
		"red one skipped (A126)": {
			base, suite("a::x", "skipped", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed"),
			run.VerdictFailed, "1 test did not pass", nil,
		},
		"red one expected to fail": {
			base, suite("a::x", "xfailed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed"),
			run.VerdictFailed, "1 test did not pass", nil,
		},
		"red one unexpectedly passed": {
			base, suite("a::x", "xpassed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed"),
			run.VerdictFailed, "1 test did not pass", nil,
		},
		"green one skipped": {
			base, suite("a::x", "passed", "a::y", "skipped", "a::s", "skipped", "a::z", "xfailed"),
			run.VerdictFailed, "1 test was green on the base and did not pass", nil,
		},
		"tests vanished (A136, A143)": {base, suite("a::x", "passed"), run.VerdictFailed, "3 tests are missing", func(t *testing.T, v run.Verdict) {
			t.Helper()
			require.Equal(t, []string{"a::s", "a::y", "a::z"}, v.Missing)
			require.Equal(t, []string{"a::y"}, v.Broken)
		}},
		"everything vanished (A134)": {base, but(suite(), func(e *run.Evidence) { e.Exit = 5 }), run.VerdictFailed, "4 tests are missing", nil},
		"new red test": {
			base, suite("a::x", "passed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed", "a::new", "failed"),
			run.VerdictFailed, "1 test did not pass", nil,
		},
		"new skipped test":    {base, suite("a::x", "passed", "a::y", "passed", "a::s", "skipped", "a::z", "xfailed", "a::new", "skipped"), run.VerdictPassed, "", nil},
		"skip that now runs":  {base, suite("a::x", "passed", "a::y", "passed", "a::s", "passed", "a::z", "xpassed"), run.VerdictPassed, "", nil},
		"unknown outcome":     {base, but(green, func(e *run.Evidence) { e.Outcomes["a::x"], e.Exit = "great", 1 }), run.VerdictFailed, "1 test did not pass", nil},
		"os._exit(0) (A130)":  {base, but(suite(), func(e *run.Evidence) { e.Completed, e.Canary = false, false }), run.VerdictUntrusted, "the test run left no completion record", nil},
		"no canary":           {base, but(green, func(e *run.Evidence) { e.Canary = false }), run.VerdictUntrusted, "the planted failing test was not reported as failed", nil},
		"exit disagrees":      {base, but(green, func(e *run.Evidence) { e.Exit = 1 }), run.VerdictUntrusted, "exit status 1, but no test is red", nil},
		"exit 0 but red":      {base, but(base, func(e *run.Evidence) { e.Exit = 0 }), run.VerdictUntrusted, "exit status 0, but 1 tests are red", nil},
		"signal":              {base, but(green, func(e *run.Evidence) { e.Signal = "SIGSEGV" }), run.VerdictUntrusted, "a signal ended the test run: SIGSEGV", nil},
		"unreported":          {base, but(green, func(e *run.Evidence) { delete(e.Outcomes, "a::y") }), run.VerdictUntrusted, "collected but not reported: a::y", nil},
		"tampered":            {base, but(green, func(e *run.Evidence) { e.Tampered = []string{"b", "a"} }), run.VerdictUntrusted, "tampering: a; b", nil},
		"no tree":             {base, but(green, func(e *run.Evidence) { e.Tree = "" }), run.VerdictUntrusted, "the evidence names no tree", nil},
		"timeout":             {base, but(green, func(e *run.Evidence) { e.Timeout = true }), run.VerdictTimeout, "the time limit ended the test run", nil},
		"limit":               {base, but(green, func(e *run.Evidence) { e.Limit = "memory" }), run.VerdictLimit, "a limit ended the test run: memory", nil},
		"infrastructure":      {base, but(green, func(e *run.Evidence) { e.Infrastructure = "no pytest" }), run.VerdictInfrastructure, "no pytest", nil},
		"nothing at all":      {run.Evidence{}, run.Evidence{}, run.VerdictUntrusted, "the evidence names no tree", nil},
		"other runner":        {base, but(green, func(e *run.Evidence) { e.Runner = "unittest" }), run.VerdictUntrusted, "the base ran under another runner: pytest, not unittest", nil},
		"base is no evidence": {but(base, func(e *run.Evidence) { e.Canary = false }), green, run.VerdictUntrusted, "the baseline is no evidence: the planted failing test was not reported as failed", nil},
		"all skipped (A133)":  {suite("a::s", "skipped"), suite("a::s", "skipped"), run.VerdictUntrusted, "nothing verified: no test passed", nil},
		"none collected":      {but(suite(), func(e *run.Evidence) { e.Exit = 5 }), but(suite(), func(e *run.Evidence) { e.Exit = 5 }), run.VerdictUntrusted, "no tests were collected", nil},
		"flaky is not counted": {
			but(base, func(e *run.Evidence) { e.Flaky = []string{"a::z", "a::y"} }),
			suite("a::x", "passed", "a::y", "failed", "a::s", "skipped", "a::z", "failed"),
			run.VerdictPassed, "", func(t *testing.T, v run.Verdict) {
				t.Helper()
				require.Equal(t, []string{"a::y", "a::z"}, v.Flaky)
			},
		},
		"file collected again": {broken, suite("a.py::t", "passed", "a.py::u", "passed", "b.py::q", "passed"), run.VerdictPassed, "", func(t *testing.T, v run.Verdict) {
			t.Helper()
			require.Equal(t, []string{"a.py"}, v.Fixed)
		}},
		"file collected, its tests skipped by code": {broken, suite("a.py::t", "passed", "a.py::u", "skipped", "b.py::q", "passed"), run.VerdictFailed, "1 test did not pass", nil},
		"file collected, its tests skip themselves": {
			broken, but(suite("a.py::t", "passed", "a.py::u", "skipped", "b.py::q", "passed"), func(e *run.Evidence) { e.Declared = []string{"a.py::u"} }),
			run.VerdictPassed, "", nil,
		},
		"file collected, none passed": {broken, suite("a.py::t", "skipped", "b.py::q", "passed"), run.VerdictFailed, "1 test is missing", nil},
		"file skipped as a whole":     {broken, suite("!a.py", "skipped", "b.py::q", "passed"), run.VerdictFailed, "1 test did not pass", nil},
		"file skipped itself before":  {suite("!a.py", "skipped", "b.py::q", "failed"), suite("a.py::t", "passed", "b.py::q", "passed"), run.VerdictPassed, "", nil},
		"file that skipped is gone":   {suite("!a.py", "skipped", "b.py::q", "failed"), suite("b.py::q", "passed"), run.VerdictFailed, "1 test is missing", nil},
		"file gone":                   {broken, suite("b.py::q", "passed"), run.VerdictFailed, "1 test is missing", nil},
		"conftest imports again":      {suite("!tests/conftest.py", "error"), suite("tests/a.py::t", "passed"), run.VerdictPassed, "", nil},
		"loop ended":                  {hung, suite("a::x", "passed", "a::y", "passed"), run.VerdictPassed, "", nil},
		"loop ended, rest skipped":    {hung, suite("a::x", "passed", "a::y", "skipped"), run.VerdictFailed, "1 test did not pass", nil},
		"hung while collecting, all skipped but one": {
			but(hung, func(e *run.Evidence) { e.Collected, e.Outcomes = nil, nil }), suite("a::x", "passed", "a::y", "skipped"),
			run.VerdictFailed, "1 test did not pass", nil,
		},
		"a sign": {base, but(green, func(e *run.Evidence) { e.Signs = []string{"gc in a.py"} }), run.VerdictUntrusted, "the code under test reached for its runner: gc in a.py", nil},
		"a sign that the base has": {
			but(base, func(e *run.Evidence) { e.Signs = []string{"gc in a.py"} }), but(green, func(e *run.Evidence) { e.Signs = []string{"gc in a.py"} }), run.VerdictPassed, "", nil,
		},
		"red apart from the code": {
			split(base, "a::x", "failed"), split(green, "a::x", "failed"), run.VerdictUntrusted, "green only in the process of the code under test: a::x", nil,
		},
		"apart, decided by no plain data":  {split(base, "a::x", "failed"), split(green, "a::x", "error"), run.VerdictUntrusted, "green only in the process of the code under test: a::x", nil},
		"green apart too":                  {split(base, "a::x", "failed", "a::y", "passed"), split(green, "a::x", "passed", "a::y", "passed"), run.VerdictPassed, "", nil},
		"never plain":                      {split(base, "a::x", "error"), split(green, "a::x", "failed"), run.VerdictPassed, "", nil},
		"red apart on the base":            {split(base, "a::y", "failed"), split(green, "a::y", "failed"), run.VerdictPassed, "", nil},
		"no longer told apart":             {split(base, "a::y", "passed"), green, run.VerdictUntrusted, "green only in the process of the code under test: a::y", nil},
		"the fixed test is not told apart": {split(base, "a::x", "failed"), green, run.VerdictUntrusted, "green only in the process of the code under test: a::x", nil},
		"a test that came up beside others": {
			suite("t::A", "failed", "!t::A/one", "failed"), suite("t::A", "passed", "!t::A/one", "passed"), run.VerdictPassed, "", func(t *testing.T, v run.Verdict) {
				t.Helper()
				require.Equal(t, []string{"t::A", "t::A/one"}, v.Fixed)
			},
		},
		"weak, now 0":    {weak(1), weak(0), run.VerdictPassed, "by exit status alone", nil},
		"weak, still 1":  {weak(1), weak(1), run.VerdictFailed, "the test command exited 1", nil},
		"weak, always 0": {weak(0), weak(0), run.VerdictFailed, "the test command succeeded on the base already, so its success proves nothing", nil},
	}
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range judgeCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := run.Judge(c.base, c.got)
			require.Equal(t, c.kind, v.Kind, v.Reason)
			require.Equal(t, c.reason, v.Reason)
			require.Equal(t, c.got.Weak, v.Weak)
			if c.check != nil {
				c.check(t, v)
			}
		})
	}
}

func TestJudgeBase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base   run.Evidence
		kind   run.VerdictKind
		reason string
	}{
		"red":                 {suite("a", "failed", "b", "passed"), run.VerdictFailed, "1 test is red"},
		"green":               {suite("a", "passed", "b", "skipped"), run.VerdictPassed, ""},
		"skipped (A133)":      {suite("a", "skipped"), run.VerdictUntrusted, "nothing verified: no test passed"},
		"empty (A134)":        {but(suite(), func(e *run.Evidence) { e.Exit = 5 }), run.VerdictUntrusted, "no tests were collected by pytest: name the command that runs them with --test"},
		"hangs":               {but(suite("a", "error"), func(e *run.Evidence) { e.Timeout = true }), run.VerdictTimeout, "the time limit ended the test run"},
		"died":                {but(suite(), func(e *run.Evidence) { e.Completed = false }), run.VerdictUntrusted, "the test run left no completion record"},
		"command is green":    {weak(0), run.VerdictPassed, ""},
		"command is red":      {weak(2), run.VerdictFailed, "the test command exited 2"},
		"command says why":    {but(weak(2), func(e *run.Evidence) { e.Tail = "cc -c a.c\nmake: *** No rule to make target 'check'.  Stop.\n\n" }), run.VerdictFailed, "the test command exited 2: cc -c a.c | make: *** No rule to make target 'check'.  Stop."},
		"command says much":   {but(weak(2), func(e *run.Evidence) { e.Tail = "1\n2\n3\n4\n" + strings.Repeat("x", 238) + "\n99\n" }), run.VerdictFailed, "the test command exited 2: " + strings.Repeat("x", 238) + " | 99"},
		"command, one line":   {but(weak(2), func(e *run.Evidence) { e.Tail = strings.Repeat("é", 400) }), run.VerdictFailed, "the test command exited 2: " + strings.Repeat("é", 240)},
		"command is killed":   {but(weak(0), func(e *run.Evidence) { e.Signal, e.Tail = "killed", "bye\n" }), run.VerdictFailed, "a signal ended the test command: killed: bye"},
		"command never ends":  {but(weak(0), func(e *run.Evidence) { e.Timeout, e.Seconds = true, 1.64 }), run.VerdictTimeout, "the time limit ended the test run after 1.6 s"},
		"command is missing":  {weak(127), run.VerdictInfrastructure, "the test command exited 127: command not found or not executable"},
		"flaky ones left out": {but(suite("a", "failed", "b", "passed"), func(e *run.Evidence) { e.Flaky = []string{"a"} }), run.VerdictUntrusted, "not always the same: a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := run.JudgeBase(c.base)
			require.Equal(t, c.kind, v.Kind, v.Reason)
			require.Equal(t, c.reason, v.Reason)
			require.Empty(t, v.Fixed)
			require.Empty(t, v.Missing)
		})
	}
}

func TestVerdictListsAreCut(t *testing.T) {
	t.Parallel()
	var base, got []string
	for i := range 200 {
		base = append(base, fmt.Sprintf("a::t%03d", i), "failed")
		got = append(got, fmt.Sprintf("a::t%03d", i), "passed")
	}
	v := run.Judge(suite(base...), suite(got...))
	require.Len(t, v.Fixed, run.MaxIDs)
	require.Equal(t, 200, v.Counts.Fixed)
	require.Equal(t, "a::t000", v.Fixed[0])
	v = run.JudgeBase(suite(base...))
	require.Len(t, v.Failed, run.MaxIDs)
	require.Equal(t, 200, v.Counts.Failed)
}

func TestFlakyIDs(t *testing.T) {
	t.Parallel()
	a, b := suite("x", "passed", "y", "failed", "z", "passed"), suite("x", "passed", "y", "passed", "w", "passed")
	require.Equal(t, []string{"w", "y", "z"}, run.FlakyIDs(a, b))
	require.Empty(t, run.FlakyIDs(a, a))
}

var (
	anyOutcome = rapid.SampledFrom([]run.Outcome{
		run.OutcomePassed, run.OutcomePassed, run.OutcomePassed, run.OutcomeFailed, run.OutcomeError, run.OutcomeSkipped,
		run.OutcomeXFailed, run.OutcomeXPassed, "odd", "",
	})
	anyID = rapid.SampledFrom([]string{"a.py::a", "a.py::b", "b.py::C::c", "a.py", "b.py", "t/conftest.py", "t/x.py::t", "d"})
)

// drawEvidence mostly draws evidence that agrees with itself, so that the
// properties about passing are not satisfied by refusing everything.
func drawEvidence(t *rapid.T, name string) run.Evidence {
	rare := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 11).Draw(t, "rare") == 0 })
	e := run.Evidence{
		Runner: rapid.SampledFrom([]string{"pytest", "pytest", "pytest", "command"}).Draw(t, name+" runner"), Tree: "t",
		Outcomes:  rapid.MapOf(anyID, anyOutcome).Draw(t, name+" outcomes"),
		Completed: !rare.Draw(t, name+" died"), Canary: !rare.Draw(t, name+" canary"), Timeout: rare.Draw(t, name+" timeout"),
		Flaky: rapid.SliceOfN(anyID, 0, 1).Draw(t, name+" flaky"), Declared: rapid.SliceOfN(anyID, 0, 2).Draw(t, name+" declared"),
	}
	for id, o := range e.Outcomes {
		if o == run.OutcomeFailed || o == run.OutcomeError || o == "odd" || o == "" {
			e.Exit = 1
		}
		if !rare.Draw(t, name+" uncollected "+id) {
			e.Collected = append(e.Collected, id)
		}
	}
	slices.Sort(e.Collected)
	if rare.Draw(t, name+" more") {
		e.Collected = append(e.Collected, anyID.Draw(t, name+" extra"))
		e.Exit = rapid.IntRange(-1, 6).Draw(t, name+" exit")
		e.Signal = rapid.SampledFrom([]string{"", "SIGKILL"}).Draw(t, name+" signal")
		e.Limit = rapid.SampledFrom([]string{"", "memory"}).Draw(t, name+" limit")
		e.Weak = rapid.Bool().Draw(t, name+" weak")
		e.Tree = rapid.SampledFrom([]string{"", "t"}).Draw(t, name+" tree")
	}
	return e
}

func TestPassedMeansProved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := drawEvidence(t, "base")
		got := drawEvidence(t, "got")
		if rapid.Bool().Draw(t, "related") {
			got.Outcomes, got.Collected = maps.Clone(base.Outcomes), slices.Clone(base.Collected)
			got.Exit = 0
			for id := range got.Outcomes {
				got.Outcomes[id] = run.OutcomePassed
			}
			if rapid.Bool().Draw(t, "spoil") && len(got.Collected) > 0 {
				id := rapid.SampledFrom(got.Collected).Draw(t, "spoilt")
				got.Outcomes[id] = anyOutcome.Draw(t, "to")
			}
		}
		v := run.Judge(base, got)
		if v.Kind == run.VerdictPassed {
			proved(t, base, got)
		}
	})
}

// proved states the rule anew, without the code that is tested.
func proved(t *rapid.T, base, got run.Evidence) {
	require.NotEmpty(t, got.Tree)
	require.False(t, got.Timeout)
	require.Empty(t, got.Limit+got.Infrastructure+got.Signal)
	require.Empty(t, got.Tampered)
	if got.Weak {
		require.Equal(t, 0, got.Exit)
		require.True(t, base.Exit != 0 || base.Signal != "" || base.Timeout || base.Limit != "")
		return
	}
	require.True(t, got.Completed && got.Canary)
	passed, explained := 0, got.Exit == 0
	for id, o := range got.Outcomes {
		if slices.Contains(base.Flaky, id) {
			// A flaky test does not count, but the runner reports it.
			explained = explained || !slices.Contains([]run.Outcome{run.OutcomePassed, run.OutcomeSkipped}, o)
			continue
		}
		require.NotContains(t, []run.Outcome{run.OutcomeFailed, run.OutcomeError, "odd", ""}, o)
		if o == run.OutcomePassed {
			passed++
		}
	}
	require.Positive(t, passed)
	require.True(t, explained, "exit status %d", got.Exit)
	for _, id := range base.Collected {
		if !slices.Contains(base.Flaky, id) {
			require.Contains(t, got.Outcomes, id)
		}
	}
	for id, was := range base.Outcomes {
		must := was == run.OutcomePassed || was == run.OutcomeFailed || was == run.OutcomeError
		if must && slices.Contains(base.Collected, id) && !slices.Contains(base.Flaky, id) {
			require.Equal(t, run.OutcomePassed, got.Outcomes[id], id)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, got := drawEvidence(t, "base"), drawEvidence(t, "got")
		want, wantBase := run.Judge(base, got), run.JudgeBase(got)
		for _, e := range []*run.Evidence{&base, &got} {
			e.Collected = rapid.Permutation(e.Collected).Draw(t, "collected")
			e.Declared = rapid.Permutation(e.Declared).Draw(t, "declared")
			e.Flaky = rapid.Permutation(e.Flaky).Draw(t, "flaky")
		}
		require.Equal(t, want, run.Judge(base, got))
		require.Equal(t, wantBase, run.JudgeBase(got))
	})
}
