package run_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
)

func genChange() *rapid.Generator[run.Change] {
	return rapid.Custom(func(t *rapid.T) run.Change {
		s := rapid.SampledFrom([]string{"", "a", "b", "ab", "aa"})
		return run.Change{
			Path: s.Draw(t, "path"),
			Op:   rapid.SampledFrom([]run.Op{run.OpCreate, run.OpModify, run.OpDelete}).Draw(t, "op"),
			Base: s.Draw(t, "base"), New: s.Draw(t, "new"),
			Mode: rapid.SampledFrom([]uint32{0, 0o644, 0o755}).Draw(t, "mode"),
		}
	})
}

func TestHashChangesIgnoresOrderOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOfN(genChange(), 0, 5).Draw(t, "changes")
		perm := rapid.Permutation(changes).Draw(t, "perm")
		before := slices.Clone(perm)
		require.Equal(t, run.HashChanges(changes), run.HashChanges(perm))
		require.Equal(t, before, perm, "the input must stay as it is")
		other := rapid.SliceOfN(genChange(), 0, 5).Draw(t, "other")
		same := slices.Equal(sortedChanges(changes), sortedChanges(other))
		require.Equal(t, same, run.HashChanges(changes) == run.HashChanges(other))
	})
}

func sortedChanges(c []run.Change) []string {
	out := make([]string, 0, len(c))
	for _, x := range c {
		out = append(out, x.Path+"|"+string(x.Op)+"|"+x.Base+"|"+x.New+"|"+string(rune(x.Mode+1)))
	}
	slices.Sort(out)
	return out
}

// TestHashChangesGolden: the hash is recorded in logs and must never change.
func TestHashChangesGolden(t *testing.T) {
	t.Parallel()
	require.Equal(t, "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc", run.HashChanges(nil))
	h := run.HashChanges([]run.Change{{Path: "a.py", Op: run.OpModify, Base: "11", New: "22", Mode: 0o644}})
	require.Len(t, h, 64)
}
