package rollback

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

func TestApplyAndRestore(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		b := setup(t, files{"calc.py": "a - b\n", "pkg/__init__.py": "", "old/name.py": "x = 1\n", "empty/": ""})
		b.plain = plain
		changes := []run.Change{
			b.modify("calc.py", "a + b\n"), b.modify("pkg/__init__.py", "y\n"),
			b.del("old/name.py"), b.create("new/deep/name.py", "x = 1\n"), b.create("new/empty.py", ""),
		}
		want, err := Stage(t.Context(), b.base, changes, b.blobs)
		require.NoError(t, err)
		require.NoError(t, b.apply(changes...))
		require.Equal(t, want.Hash(), b.scan().Hash(), want.Differs(b.scan()))
		require.NoError(t, b.apply(changes...), "a second delivery")
		require.Equal(t, want.Hash(), b.scan().Hash())
		r := b.restored()
		require.Len(t, r.Restored, 5)
		require.Empty(t, b.restored().Restored, "a second restore changes nothing")
		require.NoError(t, b.apply(changes...), "apply after restore")
		require.Equal(t, want.Hash(), b.scan().Hash())
		b.restored()
	}
}

func TestStackedCandidates(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n"), b.create("helper/util.py", "u\n")))
	b.write(files{"helper/__pycache__/util.cpython-311.pyc": "cache"})
	require.NoError(t, b.apply(
		run.Change{Path: "a.py", Op: run.OpModify, Base: hashOf([]byte("2\n")), New: b.put("3\n")},
		run.Change{Path: "helper/util.py", Op: run.OpDelete, Base: hashOf([]byte("u\n"))},
	))
	require.NoDirExists(t, filepath.Join(b.Dir, "helper"), "a folder of the run goes when it is empty")
	require.Equal(t, "3\n", b.read("a.py"))
	b.restored()
}

func TestApplyRefusesWithoutAWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, files{
		"a.py": "1\n", "out.md": "→../../etc/passwd", "abs.md": "→/etc/passwd", "loop": "→loop", "dangling.md": "→none.md",
		"link.md": "→a.py", "dir/x.py": "x\n", "venv/pyvenv.cfg": "", "venv/lib.py": "l\n", ".nexusignore": "data/\n",
		"data/x.bin": "x", "node_modules/m.js": "m", "hard.py": "h\n",
	})
	require.NoError(t, os.Link(filepath.Join(b.Dir, "hard.py"), filepath.Join(b.Dir, "hard2.py")))
	b.base = b.take()
	one, two := b.put("1\n"), b.put("2\n")
	for name, c := range map[string]struct {
		changes []run.Change
		kind    Kind
	}{
		"outside":         {[]run.Change{b.create("../x", "x")}, KindChange},
		"absolute":        {[]run.Change{b.create("/tmp/x", "x")}, KindChange},
		"unclean":         {[]run.Change{b.create("a/./x", "x")}, KindChange},
		"itself":          {[]run.Change{b.create(".", "x")}, KindChange},
		"nul":             {[]run.Change{b.create("a\x00b", "x")}, KindChange},
		"set-id":          {[]run.Change{{Path: "n.py", Op: run.OpCreate, New: one, Mode: 0o4755}}, KindChange},
		"unknown op":      {[]run.Change{{Path: "n.py", Op: "move", New: one}}, KindChange},
		"no base":         {[]run.Change{{Path: "a.py", Op: run.OpModify, New: one}}, KindChange},
		"delete with new": {[]run.Change{{Path: "a.py", Op: run.OpDelete, Base: one, New: one}}, KindChange},
		"twice":           {[]run.Change{b.create("n", "x"), b.create("n", "y")}, KindChange},
		"file and folder": {[]run.Change{b.create("n", "x"), b.create("n/m", "y")}, KindChange},
		"twice by a link": {[]run.Change{b.modify("a.py", "2\n"), b.modify("link.md", "3\n")}, KindChange},
		"exclusions":      {[]run.Change{b.modify(".nexusignore", "")}, KindChange},
		"git":             {[]run.Change{b.create("sub/.git/hooks/pre-commit", "x")}, KindUnsafe},
		"cache":           {[]run.Change{b.create("__pycache__/x.py", "x")}, KindUnsafe},
		"pyc":             {[]run.Change{b.create("x.pyc", "x")}, KindUnsafe},
		"dependency":      {[]run.Change{b.create("node_modules/m2.js", "x")}, KindUnsafe},
		"environment":     {[]run.Change{b.create("venv/lib2.py", "x")}, KindUnsafe},
		"ignored":         {[]run.Change{b.create("data/y.bin", "x")}, KindUnsafe},
		"hard link":       {[]run.Change{b.modify("hard.py", "2\n")}, KindUnsafe},
		"link outside":    {[]run.Change{{Path: "out.md", Op: run.OpModify, Base: one, New: two}}, KindUnsafe},
		"absolute link":   {[]run.Change{{Path: "abs.md", Op: run.OpModify, Base: one, New: two}}, KindUnsafe},
		"loop":            {[]run.Change{{Path: "loop", Op: run.OpModify, Base: one, New: two}}, KindUnsafe},
		"through a loop":  {[]run.Change{b.create("loop/x.py", "x")}, KindUnsafe},
		"dangling":        {[]run.Change{b.create("dangling.md", "x")}, KindUnsafe},
		"delete of a link": {
			[]run.Change{{Path: "link.md", Op: run.OpDelete, Base: one}}, KindUnsafe,
		},
		"create over a file":  {[]run.Change{b.create("a.py", "x")}, KindDrift},
		"modify of nothing":   {[]run.Change{{Path: "none.py", Op: run.OpModify, Base: one, New: two}}, KindDrift},
		"modify of a folder":  {[]run.Change{{Path: "dir", Op: run.OpModify, Base: one, New: two}}, KindDrift},
		"below a file":        {[]run.Change{b.create("a.py/x.py", "x")}, KindDrift},
		"other base":          {[]run.Change{{Path: "a.py", Op: run.OpModify, Base: two, New: b.put("3\n")}}, KindDrift},
		"one of two is wrong": {[]run.Change{b.modify("a.py", "2\n"), {Path: "dir/x.py", Op: run.OpDelete, Base: one}}, KindDrift},
		"content is not there": {
			[]run.Change{{Path: "n.py", Op: run.OpCreate, New: hashOf([]byte("nowhere"))}}, KindBlob,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("%v", b.apply(c.changes...))
			b.fails(b.apply(c.changes...), c.kind)
			size := func(string) int64 { return 1 }
			_, err := b.base.With(c.changes, size)
			if c.kind != KindBlob {
				requireKind(t, err, c.kind)
			}
		})
	}
}

func TestDamagedContentIsNeverWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	changes := []run.Change{b.modify("b.py", "3\n"), b.modify("a.py", "2\n")}
	require.NoError(t, os.WriteFile(filepath.Join(b.blobs.Dir, changes[1].New), []byte("other"), 0o600))
	b.fails(b.apply(changes...), KindBlob)

	b = setup(t, files{"a.py": "1\n"})
	change := b.modify("a.py", "2\n")
	require.NoError(t, os.Remove(filepath.Join(b.blobs.Dir, change.Base)))
	b.fails(b.apply(change), KindBlob)
}
