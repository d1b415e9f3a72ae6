package node

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/rollback/rollbacktest"
	"nexuscore.dev/nexus/internal/run"
)

// wrote makes a run write to a folder in place, as its apply worker does.
func (p *place) wrote(dir, id string) (journal string) {
	p.t.Helper()
	ctx, blobs := p.t.Context(), rollbacktest.Blobs{Dir: p.t.TempDir()}
	_, err := rollback.Take(ctx, dir, rollback.Limits{}, blobs)
	require.NoError(p.t, err)
	old, err := blobs.Put(ctx, []byte("bad\n"))
	require.NoError(p.t, err)
	candidate, err := blobs.Put(ctx, []byte("worse\n"))
	require.NoError(p.t, err)
	project := rollback.Project{
		Dir: dir, Run: id, Journal: filepath.Join(p.cfg.State, "journal", id+".journal"), Saved: filepath.Join(p.cfg.State, "saved", id),
	}
	require.NoError(p.t, project.Apply(ctx, []run.Change{
		{Path: "answer.txt", Op: run.OpModify, Base: old.SHA256, New: candidate.SHA256},
		{Path: "made/up.txt", Op: run.OpCreate, New: candidate.SHA256},
	}, blobs))
	return project.Journal
}

// TestLogIsGone: whatever is missing of the streams, a run that wrote in place
// is put back by its journal, its claim goes, and the user hears of it.
func TestLogIsGone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(state string) error{
		"streams removed": func(state string) error { return os.RemoveAll(filepath.Join(state, "jetstream")) },
		"streams emptied": func(state string) error {
			dir := filepath.Join(state, "jetstream")
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o700)
		},
		"log removed":      func(state string) error { return os.RemoveAll(stream(state, "RUNS")) },
		"log emptied":      func(state string) error { return os.RemoveAll(filepath.Join(stream(state, "RUNS"), "msgs")) },
		"snapshot emptied": func(state string) error { return os.RemoveAll(filepath.Join(stream(state, "OBJ_ARTIFACTS"), "msgs")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			task := p.task()
			task.InPlace = true
			before := p.tree()
			id := p.interrupted(task, run.Debugger)
			p.wrote(p.dir, id)
			require.NotEqual(t, before, p.tree())
			require.NoError(t, lose(p.cfg.State))
			h, d := p.heal(p.task())
			sum, err := h.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, run.NeedsHumanReview, sum.State, sum.Reason)
			require.NotEmpty(t, d.notes)
			require.Equal(t, before, p.tree())
			require.Empty(t, p.claims())
			if name != "snapshot emptied" { // there the log itself tells what to do
				require.Contains(t, d.notes[0], "the log of the interrupted run "+id+" is gone")
				require.Contains(t, d.notes[0], "by its journal alone (2 path(s))")
				require.NotEqual(t, id, sum.Run)
			}
		})
	}
}

func stream(state, name string) string {
	return filepath.Join(state, "jetstream", "jetstream", "$G", "streams", name)
}

// TestLogOfAnotherFolderIsGone: a process that takes the state folder puts
// back what dead runs left on other folders, too.
func TestLogOfAnotherFolderIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	before := p.tree()
	d, end := driver(t)
	p.claimed(p.dir, "lost", d)
	idle := filepath.Join(filepath.Dir(p.dir), "idle")
	require.NoError(t, os.Mkdir(idle, 0o755))
	p.claimed(idle, "never", d)
	gone := filepath.Join(filepath.Dir(p.dir), "gone")
	require.NoError(t, os.Mkdir(gone, 0o755))
	p.claimed(gone, "nowhere", d)
	require.NoError(t, os.Remove(gone))
	p.wrote(p.dir, "lost")
	var log bytes.Buffer
	start := func() {
		n := p.open(func(c *Config) { c.Log = zerolog.New(&log) })
		require.NoError(t, n.Start(t.Context(), "", false))
		require.NoError(t, n.Close())
	}
	start()
	require.NotEqual(t, before, p.tree(), "its process lives")
	require.Len(t, p.claims(), 3)
	end()
	start()
	require.Equal(t, before, p.tree())
	require.Empty(t, p.claims())
	require.Contains(t, log.String(), "the log of the interrupted run lost is gone")
	require.NotContains(t, log.String(), "run never")
}

// TestJournalCannotHelp: where the journal cannot put the folder back the
// claim stays, nothing is healed on top of it, and the user is told what to do.
func TestJournalCannotHelp(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(journal string) error{
		"no old contents": func(journal string) error { return os.RemoveAll(journal + ".base") },
		"damaged":         func(journal string) error { return os.WriteFile(journal, []byte("x\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			d, end := driver(t)
			p.claimed(p.dir, "lost", d)
			journal := p.wrote(p.dir, "lost")
			end()
			require.NoError(t, spoil(journal))
			h, _ := p.heal(p.task())
			_, err := h.Run(t.Context())
			require.ErrorContains(t, err, "could not be put back by its journal alone")
			require.ErrorContains(t, err, "remove "+journal)
			require.Equal(t, []string{"lost"}, p.claims())
			require.Equal(t, "worse\n", p.read("answer.txt"))

			p.claimed(p.dir, "lost", d) // this process, had it ended
			require.NoError(t, os.Remove(journal))
			h, _ = p.heal(p.task())
			sum, err := h.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, run.NeedsHumanReview, sum.State)
			require.Empty(t, p.claims())
		})
	}
}

// TestJournalAndTheUser: what somebody changed meanwhile stays, and is named.
func TestJournalAndTheUser(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d, end := driver(t)
	p.claimed(p.dir, "lost", d)
	p.wrote(p.dir, "lost")
	end()
	p.write("answer.txt", "good\n")
	h, shown := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Approved, sum.State)
	require.Contains(t, shown.notes[0], "except 1 path(s) that somebody else changed")
	require.Equal(t, "good\n", p.read("answer.txt"))
	require.NoFileExists(t, filepath.Join(p.dir, "made", "up.txt"))
	data, err := os.ReadFile(filepath.Join(p.cfg.State, "saved", "lost", "base", "answer.txt"))
	require.NoError(t, err)
	require.Equal(t, "bad\n", string(data))
}
