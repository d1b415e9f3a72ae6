package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// review is a candidate that both reviewers approve.
func (b *bench) review() *run.ReviewInput {
	b.t.Helper()
	origin, tree := b.snapshot()
	c := b.staged(origin, b.modify(origin, "calc.py", fixed))
	return &run.ReviewInput{
		Origin: tree, Candidate: c, Protected: b.guarded("test_calc.py"),
		Baseline: run.Verdict{Kind: run.VerdictFailed, Tree: tree.Hash, Evidence: b.evidence(tree.Hash, run.OutcomeFailed)},
		Verdict:  run.Verdict{Kind: run.VerdictPassed, Tree: c.Tree.Hash, Evidence: b.evidence(c.Tree.Hash, run.OutcomePassed)},
	}
}

func guard(t *testing.T, store rollback.Blobs, in *run.ReviewInput) *run.ReviewAnswer {
	t.Helper()
	ans, err := (&guardian{store: store}).handle(t.Context(), job(run.Ask{Review: in}))
	require.NoError(t, err)
	return ans.Review
}

func TestGuardianApproves(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	for _, targets := range [][]string{nil, {"calc.py"}, {"."}, {"./calc.py"}} {
		in := b.review()
		in.Targets = targets
		ans := guard(t, b.store, in)
		require.Equal(t, run.WordApprove, ans.Word, "%v", ans.Reasons)
		require.Empty(t, ans.Reasons)
		require.Equal(t, in.Candidate.Hash, ans.Candidate)
		require.Equal(t, in.Candidate.Tree.Hash, ans.Tree)
	}
}

// TestGuardianRejects: each thing that is missing or does not belong to the
// others is a rejection with its reason.
func TestGuardianRejects(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	for name, c := range map[string]struct {
		change func(in *run.ReviewInput)
		why    string
	}{
		"missing tree":        {func(in *run.ReviewInput) { in.Candidate.Tree = nil }, "has no hash"},
		"tree without a hash": {func(in *run.ReviewInput) { in.Candidate.Tree = &run.Tree{} }, "has no hash"},
		"missing hash":        {func(in *run.ReviewInput) { in.Candidate.Hash = "" }, "has no hash"},
		"no changes":          {func(in *run.ReviewInput) { in.Candidate.Changes = nil }, "changes nothing"},
		"changed hash":        {func(in *run.ReviewInput) { in.Candidate.Hash = strings.Repeat("0", 64) }, "does not belong to its changes"},
		"changed mode":        {func(in *run.ReviewInput) { in.Candidate.Changes[0].Mode = 0o777 }, "does not belong to its changes"},
		"other tree tested":   {func(in *run.ReviewInput) { in.Verdict.Tree = in.Origin.Hash }, "tested tree is not the candidate's"},
		"changes that are not all": {func(in *run.ReviewInput) {
			origin, _ := b.snapshot()
			c := b.staged(origin, b.modify(origin, "calc.py", fixed), b.modify(origin, "notes.txt", "theirs"))
			in.Candidate.Tree, in.Verdict.Tree = c.Tree, c.Tree.Hash
			in.Verdict.Evidence = b.evidence(c.Tree.Hash, run.OutcomePassed)
		}, "by something else than its changes"},
		"protected path":         {func(in *run.ReviewInput) { in.Protected = b.guarded("calc.py") }, "calc.py is protected"},
		"no list of protected":   {func(in *run.ReviewInput) { in.Protected = nil }, "list of protected files"},
		"lost list of protected": {func(in *run.ReviewInput) { in.Protected = &run.Ref{SHA256: strings.Repeat("a", 64)} }, "list of protected files"},
		"a list that is none":    {func(in *run.ReviewInput) { in.Protected = &in.Verdict.Evidence }, "list of protected files"},
		"an empty document":      {func(in *run.ReviewInput) { r := b.put("null"); in.Protected = &r }, "list of protected files"},
		"outside targets":        {func(in *run.ReviewInput) { in.Targets = []string{"notes.txt", "calc"} }, "none of the targets"},
		"missing evidence":       {func(in *run.ReviewInput) { in.Verdict.Evidence = run.Ref{} }, "evidence: "},
		"lost evidence":          {func(in *run.ReviewInput) { in.Verdict.Evidence.SHA256 = strings.Repeat("b", 64) }, "evidence: "},
		"evidence that is none":  {func(in *run.ReviewInput) { in.Verdict.Evidence = b.put("[1]") }, "evidence: "},
		"missing baseline":       {func(in *run.ReviewInput) { in.Baseline.Evidence = run.Ref{} }, "evidence of the baseline"},
		"baseline of another tree": {func(in *run.ReviewInput) {
			in.Baseline.Evidence = b.evidence("elsewhere", run.OutcomeFailed)
		}, "that of another tree"},
		"evidence of another tree": {func(in *run.ReviewInput) {
			in.Verdict.Evidence = b.evidence("elsewhere", run.OutcomePassed)
		}, "evidence is that of another tree"},
		"red evidence": {func(in *run.ReviewInput) {
			in.Verdict.Evidence = b.evidence(in.Verdict.Tree, run.OutcomeFailed)
		}, "does not prove the fix"},
		"incomplete evidence": {func(in *run.ReviewInput) {
			in.Verdict.Evidence = b.evidence(in.Verdict.Tree, run.OutcomePassed, func(e *run.Evidence) { e.Completed = false })
		}, "does not prove the fix"},
		"lost manifest": {func(in *run.ReviewInput) { in.Candidate.Tree.Manifest.SHA256 = strings.Repeat("c", 64) }, "rollback: blob"},
		"lost origin":   {func(in *run.ReviewInput) { in.Origin.Manifest = run.Ref{} }, "rollback: blob"},
	} {
		in := b.review()
		c.change(in)
		ans := guard(t, b.store, in)
		require.Equal(t, run.WordReject, ans.Word, name)
		require.Contains(t, strings.Join(ans.Reasons, "\n"), c.why, name)
	}
}

// TestGuardianRejectsNewTests: what is named like a test or configures the
// runner cannot be added either, unless the task is about it.
func TestGuardianRejectsNewTests(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	for _, p := range []string{"conftest.py", "tests/helper.py", "test_more.py", "pytest.ini"} {
		in := b.review()
		origin, _ := b.snapshot()
		in.Candidate = b.staged(origin, b.modify(origin, "calc.py", fixed), run.Change{Path: p, Op: run.OpCreate, New: b.put("x = 1\n").SHA256, Mode: 0o644})
		in.Verdict.Tree = in.Candidate.Tree.Hash
		in.Verdict.Evidence = b.evidence(in.Verdict.Tree, run.OutcomePassed)
		ans := guard(t, b.store, in)
		require.Equal(t, run.WordReject, ans.Word, p)
		require.Contains(t, ans.Reasons[0], p)
		in.Targets = []string{"calc.py", p}
		require.Equal(t, run.WordApprove, guard(t, b.store, in).Word, p)
	}
}

// TestGuardianSeesThroughLinks: a link to a test is the test.
func TestGuardianSeesThroughLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"calc.py": broken, "test_calc.py": tests, "alias.py": "→test_calc.py"})
	in := b.review()
	in.Candidate.Changes = append(in.Candidate.Changes, run.Change{Path: "alias.py", Op: run.OpModify})
	ans := guard(t, b.store, in)
	require.Equal(t, run.WordReject, ans.Word)
	require.Contains(t, strings.Join(ans.Reasons, "\n"), "alias.py is protected")
}

// TestGuardianAsksAPerson: tripwires and weak evidence are nobody's to approve
// but a person's; what is wrong besides is still a rejection.
func TestGuardianAsksAPerson(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.review()
	for i := range 100 {
		in.Candidate.Tripwires = append(in.Candidate.Tripwires, fmt.Sprintf("subprocess %d", i))
	}
	ans := guard(t, b.store, in)
	require.Equal(t, run.WordHuman, ans.Word)
	require.Len(t, ans.Reasons, maxReasons)
	require.Contains(t, ans.Reasons[0], "subprocess 0")

	in = b.review()
	in.Verdict.Weak = true
	ans = guard(t, b.store, in)
	require.Equal(t, run.WordHuman, ans.Word)
	require.Contains(t, ans.Reasons[0], "exit status")

	in.Candidate.Tripwires = []string{"eval"}
	in.Protected = nil
	ans = guard(t, b.store, in)
	require.Equal(t, run.WordReject, ans.Word)
}

// TestGuardianTrustsNoStore: contents that are not those of their name, and a
// store that has none, prove nothing.
func TestGuardianTrustsNoStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.review()
	refs := map[string]run.Ref{
		"evidence": in.Verdict.Evidence, "baseline": in.Baseline.Evidence, "protected": *in.Protected,
		"origin": in.Origin.Manifest, "tree": in.Candidate.Tree.Manifest,
	}
	for name, ref := range refs {
		damaged := failing{Blobs: b.store, fake: map[string]string{ref.SHA256: "{}"}}
		require.Equal(t, run.WordReject, guard(t, damaged, in).Word, name)
		lost := failing{Blobs: b.store, err: map[string]error{ref.SHA256: errors.New("not there")}}
		require.Equal(t, run.WordReject, guard(t, lost, in).Word, name)
	}
}

// TestGuardianAsksAgain: a bus that does not answer says nothing about the
// candidate; neither does a stop.
func TestGuardianAsksAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.review()
	gone := failure.New(failure.Connection, "get", errors.New("no answer"))
	store := failing{Blobs: b.store, err: map[string]error{in.Verdict.Evidence.SHA256: gone}}
	_, err := (&guardian{store: store}).handle(t.Context(), job(run.Ask{Review: in}))
	require.ErrorIs(t, err, gone)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store.err[in.Verdict.Evidence.SHA256] = context.Canceled
	_, err = (&guardian{store: store}).handle(ctx, job(run.Ask{Review: in}))
	require.ErrorIs(t, err, context.Canceled)
}
