package rollback

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback/rollbacktest"
)

// lose empties the store, as when the streams of a state folder are removed.
func (b *bundle) lose() {
	b.t.Helper()
	require.NoError(b.t, os.RemoveAll(b.blobs.Dir))
	require.NoError(b.t, os.Mkdir(b.blobs.Dir, 0o700))
}

// TestUndoWithoutSnapshot takes a run back from its journal alone.
func TestUndoWithoutSnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "run.sh": "1\n", "gone.py": "1\n", "void.py": "", "other.py": "1\n", "sub/b.py": "1\n"})
	b.chmod("run.sh", 0o755)
	b.base = b.take()
	require.NoError(t, b.apply(
		b.modify("a.py", "2\n"), b.modify("run.sh", "2\n"), b.del("gone.py"), b.modify("void.py", "2\n"),
		b.create("new.py", "2\n"), b.create("made/by/run.py", "2\n"),
	))
	// A second candidate builds on the first.
	b.write(files{"other.py": "user\n"})
	again := b.modify("sub/b.py", "3\n")
	require.NoError(t, b.apply(again))
	b.lose()
	for range 2 {
		r, err := b.Undo(t.Context(), b.blobs)
		require.NoError(t, err)
		require.Empty(t, r.Conflicts)
		require.Empty(t, r.Foreign)
		require.Equal(t, "user\n", b.read("other.py"), "the user's")
		require.Equal(t, []string{"other.py"}, b.base.Differs(b.scan()))
	}
}

// TestUndoKeepsWhatTheUserDid: an edit made meanwhile stays, and what stood
// there before the run is saved.
func TestUndoKeepsWhatTheUserDid(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.modify("b.py", "2\n")))
	b.write(files{"a.py": "user\n"})
	r, err := b.Undo(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a.py"}, r.Conflicts)
	require.Equal(t, "user\n", b.read("a.py"))
	require.Equal(t, "1\n", b.saved("base/a.py"))
	require.Equal(t, "1\n", b.read("b.py"))
}

// TestUndoWithoutAJournal: nothing was written, nothing is touched.
func TestUndoWithoutAJournal(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	r, err := b.Undo(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, r)
	require.NoFileExists(t, b.Journal)
}

// TestUndoSaysWhatItCannot: contents that are gone, or are not what they were,
// are named, and everything else is restored.
func TestUndoSaysWhatItCannot(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"missing": os.Remove,
		"damaged": func(file string) error { return os.WriteFile(file, []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, files{"a.py": "1\n", "b.py": "other\n"})
			require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.modify("b.py", "2\n"), b.create("c.py", "2\n")))
			require.NoError(t, spoil(filepath.Join(b.Journal+".base", hashOf([]byte("1\n")))))
			_, err := b.Undo(t.Context(), rollbacktest.Blobs{Dir: t.TempDir()})
			require.ErrorContains(t, err, "a.py")
			require.NotContains(t, err.Error(), "b.py")
			require.Equal(t, "other\n", b.read("b.py"))
			require.Equal(t, "2\n", b.read("a.py"))
			require.NoFileExists(t, filepath.Join(b.Dir, "c.py"))
		})
	}
}

// TestUndoOfADamagedJournal touches nothing.
func TestUndoOfADamagedJournal(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n")))
	require.NoError(t, os.WriteFile(b.Journal, []byte("x\n"), 0o600))
	_, err := b.Undo(t.Context(), b.blobs)
	requireKind(t, err, KindJournal)
	require.Equal(t, "2\n", b.read("a.py"))
}
