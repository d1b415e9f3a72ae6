package rollback

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/rollback/rollbacktest"
	"nexuscore.dev/nexus/internal/run"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(drillDir())
		os.Exit(code)
	}))
}

// bundle is one project with its snapshot and the places outside it.
type bundle struct {
	Project
	t     testing.TB
	blobs rollbacktest.Blobs
	base  Manifest
}

// files describes a tree: name → content. A name that ends in "/" is a folder,
// a content that begins with "→" the target of a link.
type files map[string]string

func setup(t testing.TB, tree files) *bundle {
	t.Helper()
	return setupIn(t, t.TempDir(), t.TempDir(), tree)
}

// setupInMemory is setup on a file system where an fsync costs nothing, if
// there is one: drills start hundreds of projects.
func setupInMemory(t testing.TB, tree files) *bundle {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "nexus-drill-") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return setup(t, tree)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	project := filepath.Join(dir, "project")
	require.NoError(t, os.Mkdir(project, 0o755))
	return setupIn(t, project, dir, tree)
}

func setupIn(t testing.TB, dir, outside string, tree files) *bundle {
	t.Helper()
	b := &bundle{t: t, blobs: rollbacktest.Blobs{Dir: filepath.Join(outside, "blobs")}}
	require.NoError(t, os.Mkdir(b.blobs.Dir, 0o700))
	b.Project = Project{
		Dir: dir, Run: "run1",
		Journal: filepath.Join(outside, "journal", "run1.jsonl"),
		Saved:   filepath.Join(outside, "saved"),
	}
	b.write(tree)
	b.base = b.take()
	return b
}

func (b *bundle) write(tree files) {
	b.t.Helper()
	for p, text := range tree {
		full := filepath.Join(b.Dir, p)
		if strings.HasSuffix(p, "/") {
			require.NoError(b.t, os.MkdirAll(full, 0o755))
			continue
		}
		require.NoError(b.t, os.MkdirAll(filepath.Dir(full), 0o755))
		if target, ok := strings.CutPrefix(text, "→"); ok {
			require.NoError(b.t, os.Symlink(target, full))
			continue
		}
		require.NoError(b.t, os.WriteFile(full, []byte(text), 0o644))
	}
}

func (b *bundle) chmod(p string, mode fs.FileMode) {
	b.t.Helper()
	require.NoError(b.t, os.Chmod(filepath.Join(b.Dir, p), mode))
}

func (b *bundle) take() Manifest {
	b.t.Helper()
	m, err := Take(b.t.Context(), b.Dir, Limits{}, b.blobs)
	require.NoError(b.t, err)
	return m
}

func (b *bundle) scan() Manifest {
	b.t.Helper()
	m, err := Scan(b.t.Context(), b.Dir, Limits{})
	require.NoError(b.t, err)
	return m
}

// hash is the tree hash on the disk now, of an empty project too.
func (b *bundle) hash() string {
	b.t.Helper()
	return b.snapshot().Hash()
}

// snapshot is scan for a project that may have become empty.
func (b *bundle) snapshot() Manifest {
	b.t.Helper()
	m, err := scan(b.t.Context(), b.Dir, scanOptions{tolerant: true})
	require.NoError(b.t, err)
	return m
}

func (b *bundle) read(p string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Dir, p))
	require.NoError(b.t, err)
	return string(data)
}

func (b *bundle) put(text string) string {
	b.t.Helper()
	ref, err := b.blobs.Put(b.t.Context(), []byte(text))
	require.NoError(b.t, err)
	return ref.SHA256
}

func (b *bundle) modify(p, text string) run.Change {
	actual, err := b.base.Resolve(p)
	require.NoError(b.t, err)
	e, ok := b.base.Lookup(actual)
	require.True(b.t, ok, p)
	return run.Change{Path: p, Op: run.OpModify, Base: e.SHA256, New: b.put(text)}
}

func (b *bundle) create(p, text string) run.Change {
	return run.Change{Path: p, Op: run.OpCreate, New: b.put(text)}
}

func (b *bundle) del(p string) run.Change {
	e, ok := b.base.Lookup(p)
	require.True(b.t, ok, p)
	return run.Change{Path: p, Op: run.OpDelete, Base: e.SHA256}
}

func (b *bundle) apply(changes ...run.Change) error {
	return b.Apply(b.t.Context(), changes, b.blobs)
}

func (b *bundle) restore() Report {
	b.t.Helper()
	r, err := b.Restore(b.t.Context(), b.base, b.blobs)
	require.NoError(b.t, err)
	return r
}

// restored asserts a restore that proves the base byte for byte.
func (b *bundle) restored() Report {
	b.t.Helper()
	r := b.restore()
	require.Equal(b.t, r.Base, r.After, "%+v differs %v", r, b.base.Differs(b.scan()))
	require.Empty(b.t, r.Conflicts)
	require.Equal(b.t, b.base.Hash(), b.hash())
	return r
}

func requireKind(t testing.TB, err error, k Kind) {
	t.Helper()
	require.Error(t, err)
	require.True(t, IsKind(err, k), "%v is not %q", err, k)
}

// fails is requireKind and proves that the project is as it was.
func (b *bundle) fails(err error, k Kind) {
	b.t.Helper()
	requireKind(b.t, err, k)
	require.Equal(b.t, b.base.Hash(), b.hash())
}
