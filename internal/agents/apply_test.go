package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

func (b *bench) applier() *applier { return &applier{store: b.store, projects: projects{b.state}} }

// proposal is a candidate as the gates accept it: changes of a base, no tree.
func proposal(rank int, changes ...run.Change) run.Candidate {
	return run.Candidate{Rank: rank, Hash: run.HashChanges(changes), Changes: changes, Note: "a note"}
}

func (b *bench) applying(candidates ...run.Candidate) *run.ApplyInput {
	_, tree := b.snapshot()
	return &run.ApplyInput{Dir: b.dir, Origin: tree, Base: tree, Candidates: candidates, Protected: b.guarded("test_calc.py")}
}

func apply(t *testing.T, a *applier, in *run.ApplyInput) *run.ApplyAnswer {
	t.Helper()
	ans, err := a.handle(t.Context(), job(run.Ask{Apply: in}))
	require.NoError(t, err)
	return ans.Apply
}

// TestApplyStages: every candidate gets its tree, and the project is not
// touched.
func TestApplyStages(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, _ := b.snapshot()
	before := b.hash()
	ans := apply(t, b.applier(), b.applying(
		proposal(0, b.modify(origin, "calc.py", fixed)),
		proposal(1, b.modify(origin, "calc.py", "pass\n"), b.create("new.py", "", 0o644)),
	))
	require.Len(t, ans.Candidates, 2)
	require.Empty(t, ans.Refused)
	require.Equal(t, before, b.hash())
	c := ans.Candidates[0]
	require.True(t, c.OnOrigin)
	require.Equal(t, run.HashChanges(c.Changes), c.Hash)
	require.Equal(t, "a note", c.Note)
	m, err := rollback.Load(t.Context(), b.store, *c.Tree)
	require.NoError(t, err)
	got, _, err := content(t.Context(), b.store, m, "calc.py")
	require.NoError(t, err)
	require.Equal(t, fixed, string(got))
	diff, err := rollback.Read(t.Context(), b.store, c.Diff.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(diff), "-    return a - b\n+    return a + b\n")
	b.write(files{"calc.py": fixed})
	require.Equal(t, c.Tree.Hash, b.hash(), "the staged tree is what the disk would hold")
	require.Equal(t, 1, ans.Candidates[1].Rank)
}

// TestApplyStacksOnAFailedCandidate: the changes of a later attempt are said
// as a difference from the project as it was, with both attempts in it; one
// that was written for the original is placed there.
func TestApplyStacksOnAFailedCandidate(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, tree := b.snapshot()
	first := b.staged(origin, b.modify(origin, "notes.txt", "theirs"))
	base, err := rollback.Load(t.Context(), b.store, *first.Tree)
	require.NoError(t, err)
	second, again := proposal(0, b.modify(base, "calc.py", fixed)), proposal(1, b.modify(origin, "calc.py", fixed))
	again.OnOrigin = true
	ans := apply(t, b.applier(), &run.ApplyInput{
		Dir: b.dir, Origin: tree, Base: *first.Tree, Candidates: []run.Candidate{second, again}, Protected: b.guarded(),
	})
	require.Len(t, ans.Candidates[0].Changes, 2)
	require.Len(t, ans.Candidates[1].Changes, 1)
	diff, err := rollback.Read(t.Context(), b.store, ans.Candidates[0].Diff.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(diff), "+theirs")
	require.Contains(t, string(diff), "+    return a + b")
}

// TestApplyRefuses: a candidate that no tree can take is refused, and those
// beside it are staged.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"calc.py": broken, "test_calc.py": tests, "hard.py": "x = 1\n", "out": "→../elsewhere"})
	require.NoError(t, os.Link(filepath.Join(b.dir, "hard.py"), filepath.Join(b.state, "hard.py")))
	origin, _ := b.snapshot()
	var many []run.Change
	for i := range 200 {
		many = append(many, b.create(strings.Repeat("d/", i+1)+"f.py", "", 0o644))
	}
	for name, c := range map[string]struct {
		changes []run.Change
		reason  string
	}{
		"through a link out":   {[]run.Change{b.create("out/new.py", "", 0o644)}, reasonUnsafe},
		"the link itself":      {[]run.Change{b.create("out", "", 0o644)}, reasonUnsafe},
		"with several names":   {[]run.Change{b.modify(origin, "hard.py", "x = 2\n")}, reasonUnsafe},
		"of an excluded place": {[]run.Change{b.create(".git/hooks/x", "", 0o644)}, reasonUnsafe},
		"outside":              {[]run.Change{b.create("../x.py", "", 0o644)}, reasonUnsafe},
		"of another base":      {[]run.Change{{Path: "calc.py", Op: run.OpModify, Base: b.put("?").SHA256, New: b.put("!").SHA256}}, reasonUnsafe},
		"twice":                {[]run.Change{b.create("a", "", 0o644), b.create("a", "x", 0o644)}, reasonUnsafe},
		"of a test":            {[]run.Change{b.modify(origin, "test_calc.py", "pass\n")}, reasonProtected},
		"of too many files":    {many, reasonTooMany},
	} {
		ans := apply(t, b.applier(), b.applying(proposal(3, c.changes...), proposal(4, b.modify(origin, "calc.py", fixed))))
		require.Len(t, ans.Candidates, 1, name)
		require.Equal(t, 4, ans.Candidates[0].Rank, name)
		require.Len(t, ans.Refused, 1, name)
		r := ans.Refused[0]
		require.Equal(t, c.reason, r.Reason, "%s: %s", name, r.Feedback)
		require.Equal(t, 3, r.Rank, name)
		require.Equal(t, gatePaths, r.Gate, name)
		require.Equal(t, run.StatusGateFail, r.Status, name)
		require.NotEmpty(t, r.Feedback, name)
	}
}

// TestApplyFails: without what it needs, nothing is staged and nothing is
// refused.
func TestApplyFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, _ := b.snapshot()
	lost := run.Ref{SHA256: strings.Repeat("e", 64)}
	for name, change := range map[string]func(in *run.ApplyInput){
		"origin":    func(in *run.ApplyInput) { in.Origin.Manifest = lost },
		"base":      func(in *run.ApplyInput) { in.Base.Manifest = lost },
		"contents":  func(in *run.ApplyInput) { in.Candidates[0].Changes[0].New = lost.SHA256 },
		"list":      func(in *run.ApplyInput) { in.Protected = &lost },
		"no list":   func(in *run.ApplyInput) { in.Protected = nil },
		"tree hash": func(in *run.ApplyInput) { in.Base.Hash = lost.SHA256 },
	} {
		in := b.applying(proposal(0, b.modify(origin, "calc.py", fixed)))
		change(in)
		ans, err := b.applier().handle(t.Context(), job(run.Ask{Apply: in}))
		require.Error(t, err, name)
		require.Nil(t, ans.Apply, name)
	}
}

// TestApplyInPlace: the first candidate is written, after what an earlier
// attempt left was taken back, and only while the run waits for it.
func TestApplyInPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, _ := b.snapshot()
	in := b.applying(proposal(0, b.modify(origin, "calc.py", "first\n")), proposal(1, b.modify(origin, "calc.py", fixed)))
	in.InPlace = true
	j := b.pending(run.Apply, run.Ask{Apply: in})
	a := b.applier()
	ans, err := a.handle(t.Context(), j)
	require.NoError(t, err)
	require.Len(t, ans.Apply.Candidates, 1)
	require.Equal(t, "first\n", b.read("calc.py"))
	require.Equal(t, ans.Apply.Candidates[0].Tree.Hash, b.hash())

	in.Candidates = in.Candidates[1:]
	ans, err = a.handle(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, fixed, b.read("calc.py"))
	require.Equal(t, ans.Apply.Candidates[0].Tree.Hash, b.hash())

	b.write(files{"calc.py": "theirs\n"})
	in.Candidates = []run.Candidate{proposal(0, b.modify(origin, "calc.py", "third\n"))}
	ans, err = a.handle(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, []string{"calc.py"}, ans.Apply.Drift)
	require.Equal(t, "theirs\n", b.read("calc.py"))

	before := b.hash()
	j.N++
	_, err = a.handle(t.Context(), j)
	require.ErrorIs(t, err, errNotPending)
	require.Equal(t, before, b.hash())
}

// TestApplyInPlaceWithNothingToWrite: when all were refused the folder is not
// even locked.
func TestApplyInPlaceWithNothingToWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.applying(proposal(0, b.create("../x", "", 0o644)))
	in.InPlace = true
	unlock, err := rollback.Lock(b.dir)
	require.NoError(t, err)
	ans := apply(t, b.applier(), in)
	require.NoError(t, unlock())
	require.Empty(t, ans.Candidates)
	require.Len(t, ans.Refused, 1)
}
