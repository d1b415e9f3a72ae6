package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
)

func (b *bench) gates(store rollback.Blobs) *gates {
	g := &gates{store: store, warm: &validators{cfg: Config{Temp: b.t.TempDir(), State: b.state}}}
	b.t.Cleanup(func() { require.NoError(b.t, g.warm.close()) })
	return g
}

// judged puts answers through the gates.
func (b *bench) judged(in *run.ValidateInput, answers ...string) *run.ValidateAnswer {
	b.t.Helper()
	g := b.gates(b.store)
	for _, text := range answers {
		in.Proposals = append(in.Proposals, run.Proposal{Text: b.put(text), Format: "auto", Finish: "stop", Note: "noted"})
	}
	ans, err := g.handle(b.t.Context(), job(run.Ask{Validate: in}))
	require.NoError(b.t, err)
	return ans.Validate
}

func (b *bench) validating() *run.ValidateInput {
	b.t.Helper()
	_, tree := b.snapshot()
	plan := b.json(testrun.Plan{Runner: testrun.Command})
	return &run.ValidateInput{Base: tree, Plan: &plan, Protected: b.guarded("test_calc.py", "checks.py")}
}

func whole(path, text string) string { return path + "\n```python\n" + text + "```\n" }

// adding is an answer that creates files.
func adding(paths ...string) string {
	out := "```diff\n"
	for _, p := range paths {
		out += string(patch.Diff(p, nil, []byte("x = 2\n")))
	}
	return out + "```\n"
}

// TestValidateAccepts: what passes is stored with its contents and its diff,
// says what the file was, and does not touch the base.
func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "calc.py"), 0o755))
	diff := string(patch.Diff("calc.py", []byte(broken), []byte(fixed)))
	ans := b.judged(b.validating(), whole("calc.py", fixed), "I do not know.", "```diff\n"+diff+"```\n")
	require.Len(t, ans.Accepted, 2)
	for i, c := range ans.Accepted {
		require.Equal(t, 2*i, c.Rank)
		require.Equal(t, "noted", c.Note)
		require.Len(t, c.Changes, 1)
		ch := c.Changes[0]
		require.Equal(t, "calc.py", ch.Path)
		require.EqualValues(t, 0o755, ch.Mode)
		require.EqualValues(t, 0o755, ch.BaseMode)
		data, err := rollback.Read(t.Context(), b.store, ch.New)
		require.NoError(t, err)
		require.Equal(t, fixed, string(data))
		text, err := rollback.Read(t.Context(), b.store, c.Diff.SHA256)
		require.NoError(t, err)
		require.Contains(t, string(text), "+    return a + b")
	}
	require.Equal(t, ans.Accepted[0].Hash, ans.Accepted[1].Hash)
	require.Len(t, ans.Rejected, 1)
	require.Equal(t, 1, ans.Rejected[0].Rank)
	require.Equal(t, run.StatusNoFixedCode, ans.Rejected[0].Status)
}

// TestValidateRefuses: each with its gate, and a sentence for the next try.
func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"calc.py": broken, "test_calc.py": tests, "checks.py": "x = 1\n", "hard.py": "x = 1\n", "out": "→../elsewhere"})
	require.NoError(t, os.Link(filepath.Join(b.dir, "hard.py"), filepath.Join(b.state, "hard.py")))
	tried := b.judged(b.validating(), whole("calc.py", fixed)).Accepted[0].Hash
	for name, c := range map[string]struct {
		answer string
		change func(in *run.ValidateInput)
		gate   string
		status run.AttemptStatus
	}{
		"syntax":              {whole("calc.py", "def add(a, b:\n    return a\n"), nil, validate.GateSyntax, run.StatusASTFail},
		"a test":              {"```diff\n" + string(patch.Diff("test_calc.py", []byte(tests), []byte(strings.Replace(tests, ", 3)", ", -1)", 1)))) + "```\n", nil, validate.GateTamper, run.StatusGateFail},
		"a file of the tests": {"```diff\n" + string(patch.Diff("checks.py", []byte("x = 1\n"), []byte("x = 2\n"))) + "```\n", nil, validate.GateTamper, run.StatusGateFail},
		"outside":             {"```diff\n--- /dev/null\n+++ b/../x.py\n@@ -0,0 +1 @@\n+x = 2\n```\n", nil, validate.GatePaths, run.StatusGateFail},
		"not a target": {
			whole("calc.py", fixed),
			func(in *run.ValidateInput) { in.Targets = []string{"other.py"} },
			validate.GatePaths, run.StatusGateFail,
		},
		"said before":        {whole("calc.py", fixed), func(in *run.ValidateInput) { in.Tried = []string{tried} }, validate.GateRepeat, run.StatusGateFail},
		"no change":          {whole("calc.py", broken), nil, validate.GateEmpty, run.StatusGateFail},
		"through a link out": {adding("out/new.py"), nil, validate.GatePaths, run.StatusGateFail},
		"with several names": {whole("hard.py", "x = 2\n"), nil, validate.GatePaths, run.StatusGateFail},
	} {
		in := b.validating()
		if c.change != nil {
			c.change(in)
		}
		ans := b.judged(in, c.answer)
		require.Empty(t, ans.Accepted, name)
		require.Len(t, ans.Rejected, 1, name)
		require.Equal(t, c.gate, ans.Rejected[0].Gate, "%s: %+v", name, ans.Rejected[0])
		require.Equal(t, c.status, ans.Rejected[0].Status, name)
		require.NotEmpty(t, ans.Rejected[0].Reason, name)
		require.NotEmpty(t, ans.Rejected[0].Feedback, name)
	}
}

// TestValidateBoundsWhatItSays: an answer of many files is refused, and no
// sentence about it is longer than a message.
func TestValidateBoundsWhatItSays(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	var many []string
	for i := range 200 {
		many = append(many, "pkg/module_"+strings.Repeat("x", i)+".py")
	}
	ans := b.judged(b.validating(), adding(many...), whole(strings.Repeat("d/", 1500)+"x.py", "x = 1\n"))
	require.Empty(t, ans.Accepted)
	require.Len(t, ans.Rejected, 2)
	require.Equal(t, reasonTooMany, ans.Rejected[0].Reason)
	for _, r := range ans.Rejected {
		require.Equal(t, run.StatusGateFail, r.Status)
		require.LessOrEqual(t, len(r.Feedback), maxFeedback+len(run.Cut))
	}
}

// TestValidateAnAnswerForTheOriginal: after a failed attempt, a diff against
// the files as they were is understood as one.
func TestValidateAnAnswerForTheOriginal(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, tree := b.snapshot()
	failed := b.staged(origin, b.modify(origin, "calc.py", "def add(a, b):\n    c = a * b\n    return c\n"))
	diff := "```diff\n" + string(patch.Diff("calc.py", []byte(broken), []byte(fixed))) + "```\n"
	in := b.validating()
	in.Base = *failed.Tree
	ans := b.judged(in, diff)
	require.Equal(t, validate.GatePlace, ans.Rejected[0].Gate, "without the original it does not fit")
	in = b.validating()
	in.Base, in.Origin = *failed.Tree, &tree
	ans = b.judged(in, diff, whole("calc.py", fixed))
	require.Len(t, ans.Accepted, 2)
	require.True(t, ans.Accepted[0].OnOrigin)
	require.False(t, ans.Accepted[1].OnOrigin)
}

// TestValidateFails: without what it needs to judge, nothing is accepted.
func TestValidateFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	lost := run.Ref{SHA256: strings.Repeat("d", 64)}
	for name, change := range map[string]func(in *run.ValidateInput){
		"no plan":       func(in *run.ValidateInput) { in.Plan = nil },
		"a lost plan":   func(in *run.ValidateInput) { in.Plan = &lost },
		"a lost base":   func(in *run.ValidateInput) { in.Base.Manifest = lost },
		"no list":       func(in *run.ValidateInput) { in.Protected = nil },
		"a lost list":   func(in *run.ValidateInput) { in.Protected = &lost },
		"a lost answer": func(in *run.ValidateInput) { in.Proposals[0].Text = lost },
		"a lost origin": func(in *run.ValidateInput) {
			in.Proposals[0].Text = b.put("```diff\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-nothing like it\n+x\n```\n")
			in.Origin = &run.Tree{Hash: "t", Manifest: lost}
		},
	} {
		in := b.validating()
		in.Proposals = []run.Proposal{{Text: b.put(whole("calc.py", fixed)), Finish: "stop"}}
		change(in)
		ans, err := b.gates(b.store).handle(t.Context(), job(run.Ask{Validate: in}))
		require.Error(t, err, name)
		require.Nil(t, ans.Validate, name)
	}
}

// TestValidateReadsTheBase: contents that are not those of their name are no
// base to place anything on.
func TestValidateReadsTheBase(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.validating()
	origin, _ := b.snapshot()
	e, _ := origin.Lookup("calc.py")
	in.Proposals = []run.Proposal{{Text: b.put(whole("calc.py", fixed)), Finish: "stop"}}
	store := failing{Blobs: b.store, fake: map[string]string{e.SHA256: "x"}}
	_, err := b.gates(store).handle(t.Context(), job(run.Ask{Validate: in}))
	require.True(t, rollback.IsKind(err, rollback.KindBlob), "%v", err)
}
