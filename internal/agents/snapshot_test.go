package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

func (b *bench) snapshotter() *snapshotter {
	return &snapshotter{store: b.store, claims: rollback.Claims{Path: filepath.Join(b.t.TempDir(), "claims.json")}, state: b.state}
}

func (b *bench) taking() bus.Job { return job(run.Ask{Snapshot: &run.SnapshotInput{Dir: b.dir}}) }

// TestSnapshotHoldsEverything: from the artifacts alone the folder can be made
// again, byte for byte.
func TestSnapshotHoldsEverything(t *testing.T) {
	t.Parallel()
	tree := calc()
	tree["empty"], tree["bin"], tree["link"], tree["sub/deep/x"] = "", "\x00\xff\r\n", "→notes.txt", "x"
	b := newBench(t, tree)
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "bin"), 0o750))
	before := b.hash()
	s := b.snapshotter()
	ans, err := s.handle(t.Context(), b.taking())
	require.NoError(t, err)
	got := ans.Snapshot.Tree
	require.Equal(t, before, got.Hash)
	require.Equal(t, 6, got.Files)
	require.Equal(t, before, b.hash(), "the folder is only read")
	m, err := rollback.Load(t.Context(), b.store, got)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, rollback.Materialise(t.Context(), m, copied, b.store))
	again, err := rollback.Scan(t.Context(), copied, rollback.Limits{})
	require.NoError(t, err)
	require.Equal(t, before, again.Hash())
	ans, err = s.handle(t.Context(), b.taking())
	require.NoError(t, err, "a redelivery of the same run")
	require.Equal(t, got, ans.Snapshot.Tree)
}

// TestSnapshotOfAFolderThatIsTaken: another run works there, or above, or
// below; the error names it.
func TestSnapshotOfAFolderThatIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"sub/calc.py": broken, "notes.txt": "mine"})
	s := b.snapshotter()
	_, err := s.handle(t.Context(), b.taking())
	require.NoError(t, err)
	for _, dir := range []string{b.dir, filepath.Join(b.dir, "sub"), filepath.Dir(b.dir)} {
		j := job(run.Ask{Snapshot: &run.SnapshotInput{Dir: dir}})
		j.Run = strings.Repeat("z", 26)
		_, err = s.handle(t.Context(), j)
		var bad *bus.BadInput
		require.ErrorAs(t, err, &bad, dir)
		var busy *rollback.BusyError
		require.ErrorAs(t, err, &busy, dir)
		require.Equal(t, b.taking().Run, busy.Run)
	}
}

// TestSnapshotOfBadInput: what is wrong with the folder is the task's fault
// and said so.
func TestSnapshotOfBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(b *bench)
		kind rollback.Kind
	}{
		"gone":   {func(b *bench) { require.NoError(b.t, os.RemoveAll(b.dir)) }, rollback.KindMissing},
		"a file": {func(b *bench) { b.dir = filepath.Join(b.dir, "calc.py") }, rollback.KindNotFolder},
		"empty": {func(b *bench) {
			require.NoError(b.t, os.RemoveAll(b.dir))
			require.NoError(b.t, os.Mkdir(b.dir, 0o755))
		}, rollback.KindEmpty},
		"a cache": {func(b *bench) { b.dir = b.t.TempDir(); b.write(files{"__pycache__/x": "x"}) }, rollback.KindEmpty},
	} {
		b := newBench(t, calc())
		c.make(b)
		_, err := b.snapshotter().handle(t.Context(), b.taking())
		var bad *bus.BadInput
		require.ErrorAs(t, err, &bad, name)
		require.True(t, rollback.IsKind(err, c.kind), "%s: %v", name, err)
	}
}

// TestSnapshotThatCannotBeStored: a store that fails is no fault of the task.
func TestSnapshotThatCannotBeStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	s := b.snapshotter()
	full := errors.New("no space")
	s.store = unwritable{b.store, full}
	_, err := s.handle(t.Context(), b.taking())
	require.ErrorIs(t, err, full)
	var bad *bus.BadInput
	require.NotErrorAs(t, err, &bad)
}
