package agents

import (
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

// rolling is a run that waits for its rollback, and the project as it was.
func (b *bench) rolling() (*restorer, rollback.Manifest, func() (*run.RollbackAnswer, error)) {
	b.t.Helper()
	origin, tree := b.snapshot()
	r := &restorer{store: b.store, projects: projects{b.state}}
	j := b.pending(run.Rollback, run.Ask{Rollback: &run.RollbackInput{Dir: b.dir, Home: home, Origin: &tree, InPlace: true}})
	require.NoError(b.t, r.projects.of(j.Run, b.dir).Apply(b.t.Context(), []run.Change{
		b.modify(origin, "calc.py", fixed), b.create("pkg/new.py", "x = 1\n", 0o644),
	}, b.store))
	return r, origin, func() (*run.RollbackAnswer, error) {
		ans, err := r.handle(b.t.Context(), j)
		return ans.Rollback, err
	}
}

// TestRestoreTakesBack: what the run wrote is gone, and the answer says the
// tree before and after; doing it again finds nothing to do.
func TestRestoreTakesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	_, _, restore := b.rolling()
	dirty := b.hash()
	require.NotEqual(t, before, dirty)
	ans, err := restore()
	require.NoError(t, err)
	require.Equal(t, run.RollbackAnswer{
		Before: dirty, After: before, Restored: []string{"pkg/new.py", "calc.py"}, Counts: run.RollbackCounts{Restored: 2},
	}, *ans)
	require.Equal(t, before, b.hash())
	ans, err = restore()
	require.NoError(t, err)
	require.Equal(t, run.RollbackAnswer{Before: before, After: before}, *ans)
}

// TestRestoreTellsWhatOthersDid: their changes stay, and every one of them is
// told, beside the run's own paths and elsewhere.
func TestRestoreTellsWhatOthersDid(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	_, _, restore := b.rolling()
	b.write(files{"calc.py": "theirs\n", "notes.txt": "edited"})
	for i := range 300 {
		b.write(files{fmt.Sprintf("data/%03d.txt", i): "x"})
	}
	ans, err := restore()
	require.NoError(t, err)
	require.Equal(t, []string{"calc.py"}, ans.Conflicts)
	require.Equal(t, "theirs\n", b.read("calc.py"))
	require.Len(t, ans.Foreign, run.MaxPaths)
	require.Equal(t, run.RollbackCounts{Restored: 1, Conflicts: 1, Foreign: 302}, ans.Counts)
	require.Contains(t, ans.Foreign, "data/000.txt")
	require.Equal(t, b.hash(), ans.After)
}

// TestRestoreFails: what cannot be proved is an error, which is tried again,
// and not an answer.
func TestRestoreFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	r, origin, restore := b.rolling()
	unlock, err := rollback.Lock(b.dir)
	require.NoError(t, err)
	_, err = restore()
	require.Equal(t, failure.Connection, failure.Classify(err))
	require.NoError(t, unlock())
	calc, _ := origin.Lookup("calc.py")
	whole := r.store
	copies, err := filepath.Glob(filepath.Join(r.projects.state, "journal", "*.base"))
	require.NoError(t, err)
	require.NotEmpty(t, copies)
	for _, dir := range copies { // what the journal keeps would do in the snapshot's place
		require.NoError(t, os.RemoveAll(dir))
	}
	r.store = failing{Blobs: whole, fake: map[string]string{calc.SHA256: "damaged"}}
	_, err = restore()
	require.True(t, rollback.IsKind(err, rollback.KindBlob) || rollback.IsKind(err, rollback.KindUnproven), "%v", err)
	require.Equal(t, fixed, b.read("calc.py"))
	r.store = whole
	_, err = restore()
	require.NoError(t, err)
	require.Equal(t, origin.Hash(), b.hash())
}

// TestRestoreOfNothing: a run that never read the folder has written nothing;
// one whose snapshot is lost cannot prove anything.
func TestRestoreOfNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	r := &restorer{store: b.store, projects: projects{b.state}}
	ans, err := r.handle(t.Context(), job(run.Ask{Rollback: &run.RollbackInput{Dir: b.dir}}))
	require.NoError(t, err)
	require.Equal(t, run.RollbackAnswer{}, *ans.Rollback)
	lost := &run.Tree{Hash: "x", Manifest: run.Ref{SHA256: strings.Repeat("9", 64)}}
	_, err = r.handle(t.Context(), job(run.Ask{Rollback: &run.RollbackInput{Dir: b.dir, Origin: lost}}))
	require.True(t, rollback.IsKind(err, rollback.KindBlob), "%v", err)
}

// TestRestoreOutsideAnAsk: the next command on a folder puts right what a run
// left unproven.
func TestRestoreOutsideAnAsk(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	origin, tree := b.snapshot()
	id := strings.Repeat("b", 26)
	require.NoError(t, projects{b.state}.of(id, b.dir).Apply(t.Context(), []run.Change{b.modify(origin, "calc.py", fixed)}, b.store))
	unlock, err := rollback.Lock(b.dir)
	require.NoError(t, err)
	require.True(t, rollback.IsKind(Restore(t.Context(), b.state, id, b.dir, tree, b.store), rollback.KindBusy))
	require.NoError(t, unlock())
	require.NoError(t, Restore(t.Context(), b.state, id, b.dir, tree, b.store))
	require.Equal(t, origin.Hash(), b.hash())
	require.NoError(t, os.WriteFile(filepath.Join(b.state, "journal", id+".journal"), []byte("torn"), 0o600))
	require.True(t, rollback.IsKind(Restore(t.Context(), b.state, id, b.dir, tree, b.store), rollback.KindJournal))
	tree.Hash = "other"
	require.True(t, rollback.IsKind(Restore(t.Context(), b.state, id, b.dir, tree, b.store), rollback.KindManifest))
}
