package agents

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// TestProtectedOfALargeProject: the list of thousands of files is one name in
// an event, and comes back as it was.
func TestProtectedOfALargeProject(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	var paths []string
	for i := range 9_000 {
		paths = append(paths, fmt.Sprintf("tests/test_%05d.py", i))
	}
	ref := b.guarded(paths...)
	got, err := loadProtected(t.Context(), b.store, ref)
	require.NoError(t, err)
	require.Equal(t, paths, got.list())
	none, err := loadProtected(t.Context(), b.store, b.guarded())
	require.NoError(t, err, "a project may have no such file")
	require.Empty(t, none.list())
}

// TestProtectedThatCannotBeRead: a list that is missing, damaged, or another
// document is no list, not an empty one.
func TestProtectedThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	ref := b.guarded("a.py")
	for name, c := range map[string]struct {
		store rollback.Blobs
		ref   *run.Ref
	}{
		"no name":          {b.store, nil},
		"an empty name":    {b.store, &run.Ref{}},
		"lost":             {b.store, &run.Ref{SHA256: strings.Repeat("3", 64)}},
		"damaged":          {failing{Blobs: b.store, fake: map[string]string{ref.SHA256: `["b.py"]`}}, ref},
		"cut off":          {failing{Blobs: b.store, fake: map[string]string{ref.SHA256: `["a.`}}, ref},
		"nothing in it":    {b.store, &run.Ref{SHA256: noBytes}},
		"null":             {b.store, refTo(b.put("null"))},
		"another document": {b.store, refTo(b.put(`{"a.py": true}`))},
		"numbers":          {b.store, refTo(b.put(`[1, 2]`))},
		"not read":         {failing{Blobs: b.store, err: map[string]error{ref.SHA256: errors.New("no")}}, ref},
	} {
		got, err := loadProtected(t.Context(), c.store, c.ref)
		require.ErrorContains(t, err, "list of protected files", name)
		require.Nil(t, got, name)
	}
}

func refTo(r run.Ref) *run.Ref { return &r }

// TestTouched: by its own name or by a link's, and nothing else.
func TestTouched(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"a.py": "1", "b.py": "1", "sub/c.py": "1", "alias.py": "→a.py", "dir": "→sub", "out": "→../elsewhere"})
	m, _ := b.snapshot()
	p := protection{"a.py": true, "sub/c.py": true}
	for path, want := range map[string]bool{
		"a.py": true, "alias.py": true, "dir/c.py": true, "sub/c.py": true,
		"b.py": false, "sub/d.py": false, "A.py": false, "out/a.py": false, "new.py": false,
	} {
		got := p.touched(m, []run.Change{{Path: "b.py"}, {Path: path}})
		require.Equal(t, want, got == path, path)
	}
	require.Empty(t, p.touched(m, nil))
	require.Empty(t, protection(nil).touched(m, []run.Change{{Path: "a.py"}}))
}

// TestProtectedFiles: what the ids name, what is named like a test, and the
// runner's configuration; nothing that is not in the project.
func TestProtectedFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"a.py": "", "checks/behaviour.py": "", "test_a.py": "", "setup.py": "", "tox.ini": ""})
	m, _ := b.snapshot()
	got := protected(m, run.Evidence{Collected: []string{"checks/behaviour.py::test", "gone.py::test", "test_a.py::T::x"}})
	require.Equal(t, []string{"checks/behaviour.py", "test_a.py", "tox.ini"}, got)
}

// TestRefusable: what no tree can take is a word on the candidate; what the
// store or the disk did is not.
func TestRefusable(t *testing.T) {
	t.Parallel()
	for kind, want := range map[rollback.Kind]bool{
		rollback.KindUnsafe: true, rollback.KindChange: true, rollback.KindDrift: true, rollback.KindLimit: true,
		rollback.KindBlob: false, rollback.KindManifest: false, rollback.KindUnreadable: false, rollback.KindWrite: false,
	} {
		err := fmt.Errorf("candidate: %w", &rollback.Error{Kind: kind, Paths: []string{"a.py"}})
		require.Equal(t, want, refusable(err) != "", string(kind))
	}
	require.Empty(t, refusable(nil))
	require.Empty(t, refusable(errors.New("no")))
}
