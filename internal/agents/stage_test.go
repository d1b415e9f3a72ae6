package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// TestStage: the copy holds what the tree holds under the project's own name,
// and is gone afterwards, whatever was done to it.
func TestStage(t *testing.T) {
	t.Parallel()
	tree := calc()
	tree["sub/x"], tree["link"] = "x", "→notes.txt"
	b := newBench(t, tree)
	m, ref := b.snapshot()
	s := stager{store: b.store, temp: t.TempDir()}
	mine := errors.New("mine")
	for _, want := range []error{nil, mine} {
		seen := ""
		err := s.with(t.Context(), ref, b.dir, func(dir string, got rollback.Manifest) error {
			seen = dir
			require.Equal(t, filepath.Base(b.dir), filepath.Base(dir))
			require.Equal(t, m.Hash(), got.Hash())
			now, err := rollback.Scan(t.Context(), dir, rollback.Limits{})
			require.NoError(t, err)
			require.Equal(t, m.Hash(), now.Hash())
			require.NoError(t, os.WriteFile(filepath.Join(dir, "calc.py"), []byte("edited"), 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "made/deep"), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(dir, "made"), 0o500))
			return want
		})
		require.ErrorIs(t, err, want)
		require.NoDirExists(t, seen)
	}
	left, err := os.ReadDir(s.temp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, broken, b.read("calc.py"))
}

// TestStageFails: what cannot be staged whole is not staged.
func TestStageFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	m, ref := b.snapshot()
	never := func(string, rollback.Manifest) error { t.Error("nothing is staged"); return nil }
	s := stager{store: b.store, temp: t.TempDir()}
	require.True(t, rollback.IsKind(s.with(t.Context(), run.Tree{Hash: "x", Manifest: run.Ref{SHA256: strings.Repeat("4", 64)}}, b.dir, never), rollback.KindBlob))
	e, _ := m.Lookup("calc.py")
	s.store = failing{Blobs: b.store, fake: map[string]string{e.SHA256: "other"}}
	require.Error(t, s.with(t.Context(), ref, b.dir, never))
	left, err := os.ReadDir(s.temp)
	require.NoError(t, err)
	require.Empty(t, left)
	s.temp = filepath.Join(b.dir, "nowhere")
	require.ErrorContains(t, s.with(t.Context(), ref, b.dir, never), "stage: ")
}
