package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// The bounds of the default rules.
const (
	maxFiles = 20
	maxBytes = 1 << 20
)

func rule(t *testing.T, store rollback.Blobs, in *run.ReviewInput) *run.ReviewAnswer {
	t.Helper()
	ans, err := (&policy{store: store}).handle(t.Context(), job(run.Ask{Review: in}))
	require.NoError(t, err)
	require.Contains(t, ans.Review.Rules, "default-1@")
	return ans.Review
}

// candidate makes the review input of other changes.
func (b *bench) candidate(changes ...run.Change) *run.ReviewInput {
	b.t.Helper()
	in := b.review()
	origin, _ := b.snapshot()
	in.Candidate = b.staged(origin, changes...)
	return in
}

func (b *bench) create(p, text string, mode uint32) run.Change {
	return run.Change{Path: p, Op: run.OpCreate, New: b.put(text).SHA256, Mode: mode}
}

func TestPolicyApproves(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, _ := b.snapshot()
	var many []run.Change
	for i := range maxFiles - 1 {
		many = append(many, b.create(fmt.Sprintf("pkg/part_%d.py", i), fmt.Sprintf("x = %d\n", i), 0o644))
	}
	for name, in := range map[string]*run.ReviewInput{
		"a fix":               b.review(),
		"as many as may":      b.candidate(append(many, b.modify(origin, "calc.py", fixed))...),
		"as large as may":     b.candidate(b.modify(origin, "notes.txt", strings.Repeat("x", maxBytes))),
		"a new file":          b.candidate(b.create("new.py", "x = 1\n", 0o644)),
		"a fix that needs it": b.candidate(b.modify(origin, "calc.py", fixed), b.create("lib/new.py", "", 0o600)),
	} {
		ans := rule(t, b.store, in)
		require.Equal(t, run.WordApprove, ans.Word, "%s: %v", name, ans.Reasons)
		require.Equal(t, in.Candidate.Hash, ans.Candidate)
		require.Equal(t, in.Candidate.Tree.Hash, ans.Tree)
	}
}

// TestPolicyRules: each rule sends the candidate to a person, and says why.
func TestPolicyRules(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "notes.txt"), 0o600))
	origin, _ := b.snapshot()
	chmod := b.modify(origin, "notes.txt", "mine")
	chmod.Mode = 0o644
	notes, _ := origin.Lookup("notes.txt")
	var many []run.Change
	for i := range maxFiles + 1 {
		many = append(many, b.create(fmt.Sprintf("part_%d.py", i), fmt.Sprintf("x = %d\n", i), 0o644))
	}
	for name, c := range map[string]struct {
		in  *run.ReviewInput
		why string
	}{
		"too many files": {b.candidate(many...), fmt.Sprintf("%d files, at most", maxFiles+1)},
		"too many bytes": {b.candidate(b.modify(origin, "notes.txt", strings.Repeat("x", maxBytes+1))), "bytes, at most"},
		"too many bytes in all": {b.candidate(
			b.create("a.txt", strings.Repeat("a", maxBytes/2+1), 0o644), b.create("b.txt", strings.Repeat("b", maxBytes/2+1), 0o644),
		), "bytes, at most"},
		"a deleted file":     {b.candidate(run.Change{Path: "notes.txt", Op: run.OpDelete, Base: notes.SHA256}), "notes.txt: a file is deleted"},
		"a changed mode":     {b.candidate(chmod), "notes.txt: the permissions change (from 600 to 644)"},
		"a new program":      {b.candidate(b.create("run.sh", "#!/bin/sh\n", 0o755)), "run.sh: a new executable file"},
		"a program for some": {b.candidate(b.create("run.sh", "#!/bin/sh\n", 0o610)), "run.sh: a new executable file"},
		"a test":             {b.candidate(b.modify(origin, "test_calc.py", "pass\n")), "test_calc.py is a test"},
	} {
		ans := rule(t, b.store, c.in)
		require.Equal(t, run.WordHuman, ans.Word, name)
		require.Contains(t, strings.Join(ans.Reasons, "\n"), c.why, name)
	}
}

// TestPolicyFailsClosed: what cannot be read is a person's to judge.
func TestPolicyFailsClosed(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	lost := run.Ref{SHA256: strings.Repeat("f", 64)}
	for name, change := range map[string]func(in *run.ReviewInput){
		"missing tree":       func(in *run.ReviewInput) { in.Candidate.Tree = nil },
		"empty tree":         func(in *run.ReviewInput) { in.Candidate.Tree = &run.Tree{} },
		"lost tree":          func(in *run.ReviewInput) { in.Candidate.Tree.Manifest = lost },
		"tree of other hash": func(in *run.ReviewInput) { in.Candidate.Tree.Hash = in.Origin.Hash },
		"a tree that is no manifest": func(in *run.ReviewInput) {
			in.Candidate.Tree.Manifest = b.put("[]")
		},
		"lost origin":    func(in *run.ReviewInput) { in.Origin.Manifest = lost },
		"no list":        func(in *run.ReviewInput) { in.Protected = nil },
		"lost list":      func(in *run.ReviewInput) { in.Protected = &lost },
		"another's list": func(in *run.ReviewInput) { in.Protected = &in.Origin.Manifest },
	} {
		in := b.review()
		change(in)
		ans := rule(t, b.store, in)
		require.Equal(t, run.WordHuman, ans.Word, name)
		require.NotEmpty(t, ans.Reasons, name)
	}
}

func TestPolicyAsksAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	in := b.review()
	gone := failure.New(failure.Timeout, "get", errors.New("no answer"))
	store := failing{Blobs: b.store, err: map[string]error{in.Protected.SHA256: gone}}
	_, err := (&policy{store: store}).handle(t.Context(), job(run.Ask{Review: in}))
	require.ErrorIs(t, err, gone)
}

// TestPolicyReasonsAreBounded: a candidate that breaks a rule in every file
// still has an answer that fits into a message.
func TestPolicyReasonsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	var many []run.Change
	for i := range 300 {
		many = append(many, b.create(fmt.Sprintf("bin/%s_%d", strings.Repeat("n", 200), i), fmt.Sprintf("%d", i), 0o755))
	}
	ans := rule(t, b.store, b.candidate(many...))
	require.Equal(t, run.WordHuman, ans.Word)
	require.LessOrEqual(t, len(ans.Reasons), maxReasons)
	require.Less(t, len(strings.Join(ans.Reasons, "")), run.MaxText+1)
}
