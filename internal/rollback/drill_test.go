package rollback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// drillBinary builds testdata/drill with its fault points, once.
var drillBinary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(drillDir(), "drill")
	out, err := exec.Command("go", "build", "-tags", "nexusfault", "-o", file, "./testdata/drill").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, os.Chmod(filepath.Dir(file), 0o755)
})

// drillDir is removed by TestMain.
func drillDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("nexus-drill-%d", os.Getpid()))
}

// job mirrors the description that the drill reads.
type job struct {
	Op       string
	Project  Project
	Blobs    string
	Changes  []run.Change
	Base     []byte
	FileSize uint64
	UID      int
	Umask    int
}

// child runs one job in a process of its own.
func (b *bundle) child(j job, env ...string) (output string, state *os.ProcessState) {
	b.t.Helper()
	cmd := b.command(j, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	require.NotNil(b.t, cmd.ProcessState, "%v", err)
	return out.String(), cmd.ProcessState
}

func (b *bundle) command(j job, env ...string) *exec.Cmd {
	b.t.Helper()
	binary, err := drillBinary()
	require.NoError(b.t, err)
	base, err := b.base.Encode()
	require.NoError(b.t, err)
	j.Project, j.Blobs, j.Base = b.Project, b.blobs.Dir, base
	data, err := json.Marshal(j)
	require.NoError(b.t, err)
	file := filepath.Join(filepath.Dir(b.blobs.Dir), "job.json")
	require.NoError(b.t, os.WriteFile(file, data, 0o644))
	cmd := exec.CommandContext(b.t.Context(), binary, file)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// points lists every fault point that a job reaches as name:count.
func (b *bundle) points(j job) []string {
	b.t.Helper()
	list := filepath.Join(b.t.TempDir(), "points")
	out, state := b.child(j, "NEXUS_FAULT_LIST="+list)
	require.True(b.t, state.Success(), out)
	data, err := os.ReadFile(list)
	require.NoError(b.t, err)
	seen := map[string]int{}
	var points []string
	for name := range strings.FieldsSeq(string(data)) {
		seen[name]++
		points = append(points, fmt.Sprintf("%s:%d", name, seen[name]))
	}
	return points
}

// kill runs a job that must die at a point.
func (b *bundle) kill(j job, point string) {
	b.t.Helper()
	out, state := b.child(j, "NEXUS_FAULT_KILL="+point)
	status, ok := state.Sys().(syscall.WaitStatus)
	require.True(b.t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%s: %v: %s", point, state, out)
}

// drill is a project with one of everything and a candidate that touches it.
func drill(t testing.TB) (*bundle, []run.Change, Manifest) {
	t.Helper()
	b := setupInMemory(t, files{
		"calc.py": strings.Repeat("def add(a, b): return a - b\n", 500), "run.sh": "#!/bin/sh\necho a\n", "pkg/__init__.py": "",
		"old/name.py": "x = 1\n", "real.md": "world\n", "link.md": "→real.md", "empty/": "", "out": "→../outside",
	})
	b.chmod("run.sh", 0o755)
	b.base = b.take()
	changes := []run.Change{
		b.modify("calc.py", strings.Repeat("def add(a, b): return a + b\n", 500)), b.modify("run.sh", "#!/bin/sh\necho b\n"),
		b.modify("pkg/__init__.py", "v = 1\n"), b.del("old/name.py"), b.modify("link.md", "there\n"),
		b.create("new/deep/name.py", "x = 1\n"), b.create("new/empty.py", ""),
	}
	next, err := Stage(t.Context(), b.base, changes, b.blobs)
	require.NoError(t, err)
	return b, changes, next
}

// wholeFiles asserts that every file of the project is old or new, never torn.
func (b *bundle) wholeFiles(next Manifest) {
	b.t.Helper()
	for _, e := range b.scan().Entries {
		if e.Type != TypeFile || strings.Contains(e.Path, ".nexus-") || strings.HasPrefix(b.read(e.Path), "mine") {
			continue
		}
		old, _ := b.base.Lookup(e.Path)
		now, _ := next.Lookup(e.Path)
		require.Contains(b.t, []string{old.SHA256, now.SHA256}, e.SHA256, e.Path)
	}
}

func TestKilledApply(t *testing.T) {
	t.Parallel()
	first, changes, _ := drill(t)
	for _, point := range first.points(job{Op: "apply", Changes: changes}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b, changes, next := drill(t)
			b.kill(job{Op: "apply", Changes: changes}, point)
			b.wholeFiles(next)
			b.restored()
			require.NoError(t, b.apply(changes...))
			require.Equal(t, next.Hash(), b.hash(), "apply after restore")

			b, changes, next = drill(t)
			b.kill(job{Op: "apply", Changes: changes}, point)
			b.write(files{"notes.txt": "mine\n"})
			require.NoError(t, b.apply(changes...), "redelivered")
			require.NoError(t, os.Remove(filepath.Join(b.Dir, "notes.txt")))
			require.Equal(t, next.Hash(), b.hash(), "rolls forward")
			b.restored()

			b, changes, next = drill(t)
			b.kill(job{Op: "apply", Changes: changes}, point)
			other := []run.Change{b.modify("calc.py", "other\n")}
			want, err := Stage(t.Context(), b.base, other, b.blobs)
			require.NoError(t, err)
			if err := b.apply(other...); IsKind(err, KindDrift) {
				require.Equal(t, next.Hash(), b.hash(), "the killed call had been complete")
			} else {
				require.NoError(t, err, "another candidate after the crash")
				require.Equal(t, want.Hash(), b.hash())
			}
			b.restored()
		})
	}
}

func TestKilledRestore(t *testing.T) {
	t.Parallel()
	first, changes, _ := drill(t)
	require.NoError(t, first.apply(changes...))
	for _, point := range first.points(job{Op: "restore"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b, changes, next := drill(t)
			require.NoError(t, b.apply(changes...))
			b.kill(job{Op: "restore"}, point)
			b.write(files{"notes.txt": "mine\n", "new/user.txt": "mine too\n"})
			b.wholeFiles(next)
			r := b.restore()
			require.Empty(t, r.Conflicts)
			require.Equal(t, []string{"new", "new/user.txt", "notes.txt"}, r.Foreign)
			require.Equal(t, "mine too\n", b.read("new/user.txt"))
			require.NoError(t, os.RemoveAll(filepath.Join(b.Dir, "new")))
			require.NoError(t, os.Remove(filepath.Join(b.Dir, "notes.txt")))
			b.restored()
			require.NoError(t, b.apply(changes...))
			require.Equal(t, next.Hash(), b.hash(), "apply after restore")
		})
	}
}

// TestKilledTwice kills the clean-up after a crash as well.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"rollback.stage.write:2", "rollback.swap.after:2", "rollback.clear.before:3", "rollback.dirsync.after:2"} {
		for _, op := range []string{"apply", "restore"} {
			probe, changes, _ := drill(t)
			probe.kill(job{Op: "apply", Changes: changes}, first)
			for i, point := range probe.points(job{Op: op, Changes: changes}) {
				if i%9 != 0 {
					continue
				}
				t.Run(first+"/"+op+"/"+point, func(t *testing.T) {
					t.Parallel()
					b, changes, next := drill(t)
					b.kill(job{Op: "apply", Changes: changes}, first)
					b.kill(job{Op: op, Changes: changes}, point)
					b.wholeFiles(next)
					b.restored()
				})
			}
		}
	}
}

// TestUmaskDoesNotChangeTheTree: the hash of a candidate is known before it is
// written.
func TestUmaskDoesNotChangeTheTree(t *testing.T) {
	t.Parallel()
	b, changes, next := drill(t)
	out, state := b.child(job{Op: "apply", Changes: changes, Umask: 0o077})
	require.True(t, state.Success(), out)
	require.Equal(t, next.Hash(), b.hash())
	b.restored()
}
