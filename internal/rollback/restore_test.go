package rollback

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
)

func (b *bundle) saved(p string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Saved, p)) // base/… or yours/…
	require.NoError(b.t, err)
	return string(data)
}

func TestRestoreKeepsWhatTheUserDid(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"edited.py": "1\n", "removed.py": "1\n", "replaced.py": "1\n", "ours.py": "1\n", "deleted.py": "1\n", "mine.py": "1\n"})
	require.NoError(t, b.apply(
		b.modify("edited.py", "2\n"), b.modify("removed.py", "2\n"), b.modify("replaced.py", "2\n"), b.modify("ours.py", "2\n"),
		b.del("deleted.py"), b.create("created.py", "2\n"), b.create("made/by/run.py", "2\n"),
	))
	require.NoError(t, os.Remove(filepath.Join(b.Dir, "removed.py")))
	require.NoError(t, os.Remove(filepath.Join(b.Dir, "replaced.py")))
	b.write(files{
		"edited.py": "user\n", "replaced.py": "→ours.py", "deleted.py": "user\n", "created.py": "user\n",
		"mine.py": "user\n", "notes.txt": "user\n", "made/notes.txt": "user\n",
	})
	for range 2 {
		r := b.restore()
		require.Equal(t, []string{"created.py", "deleted.py", "edited.py", "removed.py", "replaced.py"}, r.Conflicts)
		require.Equal(t, []string{"made", "made/notes.txt", "mine.py", "notes.txt"}, r.Foreign)
		require.NotEqual(t, r.Base, r.After)
		require.Equal(t, b.hash(), r.After)
		for _, p := range []string{"edited.py", "deleted.py", "created.py", "mine.py", "notes.txt", "made/notes.txt"} {
			require.Equal(t, "user\n", b.read(p), p)
		}
		for _, p := range []string{"edited.py", "removed.py", "replaced.py", "deleted.py"} {
			require.Equal(t, "1\n", b.saved("base/"+p), p)
		}
		require.Equal(t, "1\n", b.read("ours.py"))
		require.NoFileExists(t, filepath.Join(b.Dir, "removed.py"))
		require.NoDirExists(t, filepath.Join(b.Dir, "made/by"))
		require.NoFileExists(t, filepath.Join(b.Saved, "base/created.py"), "it has no base")
	}
}

// TestRestoreBehindALink: the user moved a file, or a folder, away after the
// snapshot and left a link; the run wrote through it. What stood behind the
// link is put back, not removed for being none of the base's.
func TestRestoreBehindALink(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(dir string) (old, link, target string){
		"file":   func(dir string) (string, string, string) { return dir + "/pkg/a.py", dir + "/real.py", "../real.py" },
		"folder": func(dir string) (string, string, string) { return dir + "/pkg", dir + "/real.py", "real.py" },
	} {
		b := setup(t, files{"pkg/a.py": "1\n", "b.py": "1\n"})
		from, to, target := move(b.Dir)
		require.NoError(t, os.Rename(from, to))
		require.NoError(t, os.Symlink(target, from))
		before := b.hash()
		require.NoError(t, b.apply(b.modify("pkg/a.py", "2\n"), b.modify("b.py", "2\n")), name)
		require.Equal(t, "2\n", b.read("pkg/a.py"))
		for range 2 {
			r := b.restore()
			require.Empty(t, r.Conflicts, name)
			require.NotEmpty(t, r.Foreign, name)
			require.Equal(t, before, r.After, name)
			require.Equal(t, before, b.hash(), name)
		}
	}
}

// TestSwapSeesAChmod: a mode that the user changes between the look at a path
// and the swap is an edit of the user's.
func TestSwapSeesAChmod(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	tr, err := openTree(b.Dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, tr.close()) }()
	now, err := tr.at("a.py")
	require.NoError(t, err)
	e := edit{Path: "a.py", From: now.content, To: content{SHA: b.put("2\n"), Mode: now.Mode}, Temp: ".nexus-test-1-0"}
	require.NoError(t, tr.stage(e, []byte("2\n")))
	b.chmod("a.py", 0o600)
	requireKind(t, tr.swap(e), KindDrift)
	require.NoError(t, tr.clear(e))
	info, err := os.Stat(filepath.Join(b.Dir, "a.py"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, "1\n", b.read("a.py"))
}

func TestRestoreAndModes(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"run.sh": "a\n", "own.sh": "a\n", "mode.sh": "a\n"})
	b.chmod("run.sh", 0o755)
	b.base = b.take()
	chmod := b.modify("mode.sh", "a\n")
	chmod.Mode = 0o755
	require.NoError(t, b.apply(b.modify("run.sh", "b\n"), b.modify("own.sh", "b\n"), chmod))
	info, err := os.Stat(filepath.Join(b.Dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
	b.chmod("own.sh", 0o700)
	r := b.restore()
	require.Equal(t, []string{"own.sh"}, r.Conflicts, "the user's mode stays, and is said")
	require.Equal(t, "a\n", b.read("own.sh"))
	b.chmod("own.sh", 0o644)
	b.restored()
}

func TestRestoreWithoutAJournalTouchesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	b.write(files{"a.py": "user\n", "b.py": "user\n"})
	r := b.restore()
	require.Equal(t, []string{"a.py", "b.py"}, r.Foreign)
	require.Empty(t, r.Restored)
	require.NoFileExists(t, b.Journal)
}

func TestRestoreNeedsItsBlobs(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1b\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.modify("b.py", "2\n")))
	lost := filepath.Join(b.blobs.Dir, hashOf([]byte("1\n")))
	require.NoError(t, os.RemoveAll(b.Journal+".base"))
	require.NoError(t, os.Rename(lost, lost+".away"))
	_, err := b.Restore(t.Context(), b.base, b.blobs)
	requireKind(t, err, KindUnproven)
	require.Equal(t, "1b\n", b.read("b.py"), "one lost content does not keep the others from their place")
	require.NoError(t, os.Rename(lost+".away", lost))
	b.restored()
}

// begun is an Apply that stands between its look at the paths and its swaps.
func (b *bundle) begun(changes ...run.Change) (*session, *batch, map[string][]byte) {
	b.t.Helper()
	contents, err := b.contents(b.t.Context(), changes, b.blobs)
	require.NoError(b.t, err)
	s, err := b.start(b.blobs)
	require.NoError(b.t, err)
	_, err = s.tree.settle(s.j.history, b.Saved)
	require.NoError(b.t, err)
	batch, err := s.prepare(b.t.Context(), changes, guard{})
	require.NoError(b.t, err)
	return s, batch, contents
}

func TestEditBetweenLookAndSwap(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for name, edit := range map[string]files{
			"modified": {"b.py": "user\n"}, "deleted": {"c.py": "user\n"}, "created": {"new/n.py": "user\n"},
		} {
			b := setup(t, files{"a.py": "1\n", "b.py": "1\n", "c.py": "1\n", "z.py": "1\n"})
			b.plain = plain
			s, batch, contents := b.begun(b.modify("a.py", "2\n"), b.modify("b.py", "2\n"), b.del("c.py"),
				b.create("new/n.py", "2\n"), b.modify("z.py", "2\n"))
			b.write(edit)
			want := b.hash()
			requireKind(t, s.finish(t.Context(), batch, contents), KindDrift)
			require.NoError(t, s.close())
			require.Equal(t, want, b.hash(), "%s: the user's edit is there and nothing else", name)
			r := b.restore()
			require.NotEmpty(t, append(r.Conflicts, r.Foreign...))
			for p, text := range edit {
				require.Equal(t, text, b.read(p))
			}
		}
	}
}

// TestDriftWhileRollingForward is a redelivered apply that meets an edit of the
// user: what the killed call had written goes as well.
func TestDriftWhileRollingForward(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n", "c.py": "1\n"})
	changes := []run.Change{b.modify("a.py", "2\n"), b.modify("b.py", "2\n"), b.del("c.py"), b.create("n/n.py", "n\n")}
	b.kill(job{Op: "apply", Changes: changes}, "rollback.swap.after:1")
	require.Equal(t, "2\n", b.read("a.py"))
	s, batch, contents := b.begun(changes...)
	b.write(files{"b.py": "user\n"})
	requireKind(t, s.finish(t.Context(), batch, contents), KindDrift)
	require.NoError(t, s.close())
	require.Equal(t, []string{"b.py"}, b.base.Differs(b.scan()))
	require.Equal(t, "user\n", b.read("b.py"))

	b.write(files{"b.py": "1\n"})
	b.kill(job{Op: "apply", Changes: changes}, "rollback.swap.after:1")
	b.write(files{"b.py": "user\n"})
	requireKind(t, b.apply(changes...), KindDrift)
	require.Equal(t, []string{"b.py"}, b.base.Differs(b.scan()))
}

// TestProofReadsTheDisk hands the proof a tree that was not restored.
func TestProofReadsTheDisk(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.create("n.py", "n\n")))
	b.write(files{"b.py": "user\n"})
	h, err := readHistory(b.Journal)
	require.NoError(t, err)
	var r Report
	err = b.prove(t.Context(), b.base, h, &r)
	requireKind(t, err, KindUnproven)
	require.ErrorContains(t, err, "a.py, n.py")
	require.Equal(t, []string{"b.py"}, r.Foreign)
	require.Equal(t, b.hash(), r.After)
}

// TestEditInTheMomentOfRestore is an edit between restore's look and its swap.
func TestEditInTheMomentOfRestore(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		b := setup(t, files{"a.py": "1\n", "d.py": "1\n"})
		b.plain = plain
		require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.create("n.py", "2\n"), b.del("d.py")))
		s, err := b.start(b.blobs)
		require.NoError(t, err)
		plan, err := s.planRestore(t.Context(), b.base)
		require.NoError(t, err)
		require.Len(t, plan.edits, 3)
		b.write(files{"a.py": "user\n", "n.py": "user\n", "d.py": "user\n"})
		var r Report
		require.NoError(t, s.carryRestore(t.Context(), b.base, plan.edits, &r))
		require.NoError(t, s.close())
		require.ElementsMatch(t, []string{"a.py", "n.py", "d.py"}, r.Conflicts)
		require.Empty(t, r.Restored)
		for _, p := range []string{"a.py", "n.py", "d.py"} {
			require.Equal(t, "user\n", b.read(p))
		}
		require.Len(t, b.scan().Entries, 3, "nothing else is left")
	}
}

// TestWriteThroughAnOpenFile is a program that opened the file before the swap
// and writes to it afterwards.
func TestWriteThroughAnOpenFile(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"log.txt": "1\n"})
	f, err := os.OpenFile(filepath.Join(b.Dir, "log.txt"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	s, batch, contents := b.begun(b.modify("log.txt", "2\n"))
	swapped, err := s.swapAll(t.Context(), batch.Edits, contents)
	require.NoError(t, err)
	_, err = f.WriteString("user\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	requireKind(t, s.verify(batch, batch.Edits), KindDrift)
	require.NoError(t, s.unswapAll(batch.Edits, swapped))
	require.NoError(t, s.close())
	require.Equal(t, "1\nuser\n", b.read("log.txt"))
	require.Equal(t, []string{"log.txt"}, b.restore().Conflicts)
}

// TestKilledBeforeTheLook stops between the exchange of two names and the look
// at what came out, which was the user's edit.
func TestKilledBeforeTheLook(t *testing.T) {
	t.Parallel()
	interrupted := func(t *testing.T, plain bool, edits files) *bundle {
		b := setup(t, files{"a.py": "1\n", "d.py": "1\n"})
		b.plain = plain
		s, batch, contents := b.begun(b.modify("a.py", "2\n"), b.del("d.py"))
		require.NoError(t, s.tree.stage(batch.Edits[0], contents[batch.Edits[0].To.SHA]))
		b.write(edits)
		top, _, err := s.tree.folder("a.py")
		require.NoError(t, err)
		require.NoError(t, exchange(top, batch.Edits[0].Temp+held, "a.py"))
		require.NoError(t, moveNew(top, "d.py", batch.Edits[1].Temp+held))
		require.NoError(t, s.close())
		return b
	}
	edits := files{"a.py": "user\n", "d.py": "user too\n"}
	for _, plain := range []bool{false, true} {
		b := interrupted(t, plain, edits)
		r := b.restore()
		require.Equal(t, []string{"a.py", "d.py"}, r.Conflicts)
		require.Equal(t, "user\n", b.read("a.py"))
		require.Equal(t, "user too\n", b.read("d.py"))
		require.Equal(t, "1\n", b.saved("base/a.py"))
		require.Equal(t, b.hash(), r.After)
		require.Len(t, b.scan().Entries, 2, "nothing else is left")

		b = interrupted(t, plain, edits)
		requireKind(t, b.apply(b.modify("a.py", "2\n"), b.del("d.py")), KindDrift)
		require.Equal(t, "user\n", b.read("a.py"))
		require.Equal(t, "user too\n", b.read("d.py"))

		b = interrupted(t, plain, edits)
		b.write(files{"a.py": "again\n", "d.py": "again too\n"})
		r = b.restore()
		require.Equal(t, []string{"a.py", "d.py"}, r.Conflicts)
		require.Equal(t, "again\n", b.read("a.py"))
		require.Equal(t, "user\n", b.saved("yours/a.py"))
		require.Equal(t, "user too\n", b.saved("yours/d.py"))
		require.Len(t, b.scan().Entries, 2)
	}
}

func TestFolderReplacedByALink(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"pkg/a.py": "1\n", "other/a.py": "2\n"})
	require.NoError(t, b.apply(b.modify("pkg/a.py", "2\n")))
	require.NoError(t, os.RemoveAll(filepath.Join(b.Dir, "pkg")))
	require.NoError(t, os.Symlink("other", filepath.Join(b.Dir, "pkg")))
	r := b.restore()
	require.Equal(t, []string{"pkg/a.py"}, r.Conflicts)
	require.Equal(t, "2\n", b.read("other/a.py"), "never written through a link that was no link")
	require.Equal(t, "1\n", b.saved("base/pkg/a.py"))
}

// TestFolderWhereAFileWas is a file that a first candidate deletes and a second
// one makes a folder of.
func TestFolderWhereAFileWas(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a": "1\n", "b.py": "1\n"})
	require.NoError(t, b.apply(b.del("a")))
	require.NoError(t, b.apply(b.create("a/b/c.py", "2\n"), b.modify("b.py", "2\n")))
	b.write(files{"a/b/__pycache__/c.pyc": "cache"})
	b.restored()
}

func TestAttributesAndOwnerStay(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	full := filepath.Join(b.Dir, "a.py")
	if err := unix.Setxattr(full, "user.note", []byte("kept"), 0); err != nil {
		t.Skip("no extended attributes here: ", err)
	}
	root := os.Geteuid() == 0
	if root {
		require.NoError(t, os.Chown(full, 1234, 1235))
		require.NoError(t, os.Chown(b.Dir, 1234, 1235))
	}
	require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.create("sub/n.py", "n\n")))
	for range 2 {
		value := make([]byte, 16)
		n, err := unix.Getxattr(full, "user.note", value)
		require.NoError(t, err)
		require.Equal(t, "kept", string(value[:n]))
		var st unix.Stat_t
		require.NoError(t, unix.Stat(full, &st))
		if root {
			require.Equal(t, []uint32{1234, 1235}, []uint32{st.Uid, st.Gid})
		}
		if root && b.read("a.py") == "2\n" {
			require.NoError(t, unix.Stat(filepath.Join(b.Dir, "sub/n.py"), &st))
			require.Equal(t, uint32(1234), st.Uid, "what root creates belongs to the folder's owner")
		}
		b.restored()
	}
}
