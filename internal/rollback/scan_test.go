package rollback

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// odd is a project with everything that a folder may hold.
func odd(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, files{
		"a.py": "1\n", "empty.py": "", "empty/": "", "run.sh": "x\n", "latin-\xe9.txt": "caf\xe9\n", "new\nline": "n\n", "ünïcode": "u\n",
		"loop": "→loop", "self": "→.", "out": "→../../x", "abs": "→/etc/passwd", "dangling": "→none", "inside": "→sub/deep",
		"sub/deep/x": "x\n", "lat-\xff": "→tar-\xfe", "sub/.git/HEAD": "ref", ".git/HEAD": "ref", "mod/.git": "gitdir: x",
		".venv/lib/x.py": "x", "myenv/pyvenv.cfg": "", "myenv/lib/x.py": "x", "node_modules/m/i.js": "x", "p/__pycache__/x.pyc": "x",
		"y.pyc": "x", ".tox/x": "x", "data/big.bin": "x", "keep/data.txt": "x", ".nexusignore": "/data/\n*.log\n!keep.log\n", "x.log": "x", "keep.log": "x",
	})
	require.NoError(t, unix.Mkfifo(filepath.Join(b.Dir, "fifo"), 0o600))
	require.NoError(t, os.Link(filepath.Join(b.Dir, "a.py"), filepath.Join(b.Dir, "b.py")))
	b.chmod("run.sh", 0o755)
	b.chmod("empty", 0o700)
	b.base = b.take()
	return b
}

func TestScanOddTree(t *testing.T) {
	t.Parallel()
	b := odd(t)
	var got []string
	for _, e := range b.base.Entries {
		got = append(got, fmt.Sprintf("%s %o %d %q %s", e.Type, e.Mode, e.Size, e.Path, e.Target))
	}
	require.Equal(t, []string{
		`file 644 23 ".nexusignore" `, `file 644 2 "a.py" `, `symlink 0 0 "abs" /etc/passwd`, `file 644 2 "b.py" `,
		`symlink 0 0 "dangling" none`, `dir 700 0 "empty" `, `file 644 0 "empty.py" `, `symlink 0 0 "inside" sub/deep`,
		`dir 755 0 "keep" `, `file 644 1 "keep.log" `, `file 644 1 "keep/data.txt" `, "symlink 0 0 \"lat-\\xff\" tar-\xfe",
		`file 644 5 "latin-\xe9.txt" `, `symlink 0 0 "loop" loop`, `dir 755 0 "mod" `, `file 644 2 "new\nline" `,
		`symlink 0 0 "out" ../../x`, `dir 755 0 "p" `, `file 755 2 "run.sh" `, `symlink 0 0 "self" .`, `dir 755 0 "sub" `,
		`dir 755 0 "sub/deep" `, `file 644 2 "sub/deep/x" `, `file 644 2 "ünïcode" `,
	}, got)
	require.Equal(t, []string{"fifo"}, b.base.Special)
	require.Equal(t, []string{"a.py", "b.py"}, b.base.HardLinked)
	require.Equal(t, []string{"myenv"}, b.base.Environments)
	require.Equal(t, b.base, b.scan(), "Scan and Take see the same")
}

func TestMaterialiseOddTree(t *testing.T) {
	t.Parallel()
	b := odd(t)
	staged := filepath.Join(t.TempDir(), "staged")
	require.NoError(t, Materialise(t.Context(), b.base, staged, b.blobs))
	got, err := Scan(t.Context(), staged, Limits{})
	require.NoError(t, err)
	require.Equal(t, b.base.Hash(), got.Hash(), b.base.Differs(got))
	requireKind(t, Materialise(t.Context(), b.base, staged, b.blobs), KindWrite)

	for _, e := range b.base.Entries {
		if e.Path == "latin-\xe9.txt" {
			require.NoError(t, os.WriteFile(filepath.Join(b.blobs.Dir, e.SHA256), []byte("other"), 0o600))
		}
	}
	requireKind(t, Materialise(t.Context(), b.base, filepath.Join(t.TempDir(), "x"), b.blobs), KindBlob)
}

func TestReadOnlyFolderIsStaged(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"ro/deep/a.py": "1\n", "ro/l": "→deep"})
	b.chmod("ro/deep", 0o555)
	b.chmod("ro", 0o555)
	m := b.scan()
	staged := filepath.Join(t.TempDir(), "staged")
	require.NoError(t, Materialise(t.Context(), m, staged, b.blobs))
	got, err := Scan(t.Context(), staged, Limits{})
	require.NoError(t, err)
	require.Equal(t, m.Hash(), got.Hash())
	for _, dir := range []string{b.Dir, staged} {
		require.NoError(t, os.Chmod(filepath.Join(dir, "ro"), 0o755))
		require.NoError(t, os.Chmod(filepath.Join(dir, "ro/deep"), 0o755))
	}
}

func TestScanRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "12345", "big/1": "x", "big/2": "x", "big/3": "x", "d/e/f/g": "x", "pipe/": "", "only-links/l": "→x", "bad/.nexusignore": "[a\n", "bad/x": "x"})
	require.NoError(t, unix.Mkfifo(filepath.Join(b.Dir, "pipe/fifo"), 0o600))
	for name, c := range map[string]struct {
		dir    string
		limits Limits
		kind   Kind
		says   string
	}{
		"missing":       {"none", Limits{}, KindMissing, "none"},
		"a file":        {"a.py", Limits{}, KindNotFolder, "a.py"},
		"only a FIFO":   {"pipe", Limits{}, KindEmpty, "pipe"},
		"only links":    {"only-links", Limits{}, KindEmpty, "only-links"},
		"files":         {".", Limits{Files: 5}, KindLimit, "bad, big, a.py: more than 5 files"},
		"bytes":         {".", Limits{Bytes: 5}, KindLimit, "a.py, bad: more than 5 bytes"},
		"one file":      {".", Limits{FileBytes: 4}, KindLimit, "a.py: 5 bytes"},
		"depth":         {".", Limits{Depth: 2}, KindLimit, "d: folders nested deeper than 2"},
		"bad exclusion": {"bad", Limits{}, KindUnreadable, "[a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Scan(t.Context(), filepath.Join(b.Dir, c.dir), c.limits)
			requireKind(t, err, c.kind)
			require.ErrorContains(t, err, c.says)
			if c.kind == KindLimit {
				require.ErrorContains(t, err, ".nexusignore")
			}
		})
	}
}

func TestScanNoticesAWriter(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"log": "x"})
	f, err := os.OpenFile(filepath.Join(b.Dir, "log"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	root, err := openFolder(b.Dir)
	require.NoError(t, err)
	w := &walk{root: root, tally: newTally(Limits{}.withDefaults())}
	require.NoError(t, w.folder(t.Context(), root, ""))
	stale := w.nodes[0]
	_, err = f.WriteString("more")
	require.NoError(t, err)
	requireKind(t, w.readOnce(t.Context(), &stale, nil), KindUnsteady)
	require.NoError(t, w.readFile(t.Context(), &stale, nil), "a second look reads the file as it is now")
	require.Equal(t, hashOf([]byte("xmore")), stale.SHA256)
	require.Equal(t, int64(5), stale.Size)

	stale = w.nodes[0]
	require.NoError(t, os.Chtimes(filepath.Join(b.Dir, "log"), time.Time{}, time.Unix(1, 0)))
	requireKind(t, w.readOnce(t.Context(), &stale, nil), KindUnsteady)
	require.NoError(t, os.Rename(filepath.Join(b.Dir, "log"), filepath.Join(b.Dir, "log2")))
	require.NoError(t, os.Symlink("log2", filepath.Join(b.Dir, "log")))
	requireKind(t, w.readFile(t.Context(), &stale, nil), KindUnsteady)
	require.NoError(t, f.Close())
	require.NoError(t, root.Close())
}

// asNobody makes the project one that belongs to an ordinary user, and returns
// that user's id, 0 when the tests run as an ordinary user anyway.
func (b *bundle) asNobody() int {
	b.t.Helper()
	if os.Geteuid() != 0 {
		return 0
	}
	const nobody = 65534
	outside := filepath.Dir(b.blobs.Dir)
	for _, dir := range []string{b.Dir, outside} {
		require.NoError(b.t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(b.t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, nobody, nobody)
		}))
	}
	return nobody
}

func TestUnreadableIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "secret": "x", "closed/x": "x"})
	uid := b.asNobody()
	for _, p := range []string{"secret", "closed"} {
		b.chmod(p, 0)
		out, state := b.child(job{Op: "scan", UID: uid})
		require.Equal(t, 1, state.ExitCode(), out)
		require.Contains(t, out, "unreadable: "+p)
		b.chmod(p, 0o755)
	}
}

// TestReadOnlyFolder is case A059: a rename whose source cannot be removed
// leaves the source alone, and no folder for the destination.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"old/name.py": "x = 1\n", "a.py": "1\n"})
	b.chmod("old", 0o555)
	b.base = b.take()
	rename := job{Op: "apply"}
	rename.Changes = append(rename.Changes, b.modify("a.py", "2\n"), b.create("new/name.py", "x = 1\n"), b.del("old/name.py"))
	rename.UID = b.asNobody()
	out, state := b.child(rename)
	require.Equal(t, 1, state.ExitCode(), out)
	require.Contains(t, out, "rollback: write: nothing was changed")
	require.Equal(t, b.base.Hash(), b.hash())
	require.NoDirExists(t, filepath.Join(b.Dir, "new"))
	b.chmod("old", 0o755)
}

// TestFullDisk lets the second of three writes fail as on a full disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n", "c.py": "1\n"})
	full := job{Op: "apply", FileSize: 64 << 10}
	full.Changes = append(full.Changes, b.modify("a.py", "2\n"), b.modify("b.py", strings.Repeat("2\n", 64<<10)), b.del("c.py"), b.create("n/n.py", "n\n"))
	out, state := b.child(full)
	require.Equal(t, 1, state.ExitCode(), out)
	require.Contains(t, out, "file too large")
	require.Equal(t, b.base.Hash(), b.hash())
	require.NoError(t, b.apply(full.Changes...), "with space again")
	b.restored()
}

// TestGitIsNeverTouched is cases A084, A086, A094: a repository with a nested
// one and untracked files is the same to git after a rolled-back run.
func TestGitIsNeverTouched(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	b := setup(t, files{"calc.py": "1\n", "sub/lib.py": "1\n", "output/results.jsonl": "data\n", ".env": "SECRET=1\n", "notes.txt": "mine\n", ".gitignore": ".env\n"})
	git := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(b.Dir, dir), "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for _, dir := range []string{"sub", "."} {
		git(dir, "init", "-q")
		git(dir, "add", map[string]string{"sub": "lib.py", ".": "calc.py"}[dir])
		git(dir, "commit", "-q", "-m", "one")
	}
	b.base = b.take()
	all := func() string { return tar(t, filepath.Join(b.Dir, ".git")) + tar(t, filepath.Join(b.Dir, "sub/.git")) }
	before, status := all(), git(".", "status", "--porcelain")
	require.NoError(t, b.apply(b.modify("calc.py", "2\n"), b.modify("sub/lib.py", "2\n"), b.create("sub/n.py", "n")))
	b.restored()
	require.Equal(t, before, all())
	require.Equal(t, status, git(".", "status", "--porcelain"))
	require.Empty(t, git("sub", "status", "--porcelain"))
	require.Equal(t, "SECRET=1\n", b.read(".env"))
}

// tar lists names, sizes, modes, times and contents below a folder.
func tar(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, p, info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			fmt.Fprintln(&out, hashOf(data))
			return err
		}
		return nil
	}))
	return out.String()
}
