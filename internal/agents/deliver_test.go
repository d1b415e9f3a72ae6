package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// delivery is a run that waits for deliver, with a candidate of real changes.
func (b *bench) delivery(mode run.DeliverMode, change ...func(*run.DeliverInput)) (*deliverer, bus.Job) {
	b.t.Helper()
	origin, tree := b.snapshot()
	c := b.staged(origin, b.modify(origin, "calc.py", fixed), b.create("pkg/new.py", "x = 1\n", 0o644))
	in := &run.DeliverInput{Dir: b.dir, Origin: tree, Candidate: &c, Mode: mode}
	for _, f := range change {
		f(in)
	}
	d := &deliverer{store: b.store, projects: projects{b.state}, patches: filepath.Join(b.state, "patches")}
	return d, b.pending(run.Deliver, run.Ask{Deliver: in})
}

func deliver(t *testing.T, d *deliverer, j bus.Job) *run.DeliverAnswer {
	t.Helper()
	ans, err := d.handle(t.Context(), j)
	require.NoError(t, err)
	return ans.Deliver
}

func TestDeliverApplies(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverApply)
	c := j.Ask.Deliver.Candidate
	for range 2 { // a redelivery finds everything done
		ans := deliver(t, d, j)
		require.Equal(t, run.DeliverApply, ans.Delivered)
		require.Equal(t, c.Hash, ans.Candidate)
		require.Equal(t, c.Tree.Hash, ans.After)
		require.Equal(t, ans.After, b.hash())
		require.Equal(t, fixed, b.read("calc.py"))
		require.Equal(t, "mine", b.read("notes.txt"))
		require.Contains(t, []string{before, ans.After}, ans.Before)
	}
	left, err := filepath.Glob(filepath.Join(b.dir, ".nexus*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestDeliverRollsForward: what a kill in the middle left is completed by the
// next delivery.
func TestDeliverRollsForward(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	d, j := b.delivery(run.DeliverApply)
	c := j.Ask.Deliver.Candidate
	b.write(files{"calc.py": fixed}) // the first of two files
	ans := deliver(t, d, j)
	require.Empty(t, ans.Drift)
	require.Equal(t, c.Tree.Hash, ans.After)
	require.Equal(t, ans.After, b.hash())
}

// TestDeliverAndDrift: what the user did meanwhile is never overwritten, and
// then nothing at all is written.
func TestDeliverAndDrift(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string) (path string){
		"edited": func(t *testing.T, dir string) string {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "calc.py"), []byte("theirs\n"), 0o644))
			return "calc.py"
		},
		"deleted": func(t *testing.T, dir string) string {
			require.NoError(t, os.Remove(filepath.Join(dir, "calc.py")))
			return "calc.py"
		},
		"chmod": func(t *testing.T, dir string) string {
			require.NoError(t, os.Chmod(filepath.Join(dir, "calc.py"), 0o600))
			return "calc.py"
		},
		"a link out": func(t *testing.T, dir string) string {
			require.NoError(t, os.Remove(filepath.Join(dir, "calc.py")))
			require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "calc.py")))
			return "calc.py"
		},
		"created": func(t *testing.T, dir string) string {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "pkg"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "pkg/new.py"), []byte("theirs\n"), 0o644))
			return "pkg/new.py"
		},
	} {
		b := newBench(t, calc())
		d, j := b.delivery(run.DeliverApply)
		path := change(t, b.dir)
		before := b.hash()
		ans := deliver(t, d, j)
		require.Equal(t, []string{path}, ans.Drift, name)
		require.Equal(t, run.DeliverNone, ans.Delivered, name)
		require.Empty(t, ans.Candidate, name)
		require.Equal(t, before, b.hash(), name)
	}
}

// TestDeliverAndMoves: the tests have not seen what changed beside the
// candidate, so it is not delivered, in any way; in place it is taken back.
func TestDeliverAndMoves(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, file, text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for name, change := range map[string]func(t *testing.T, dir string) (path string){
		"edited": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "notes.txt"), "theirs")
			return "notes.txt"
		},
		"created": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "conftest.py"), "")
			return "conftest.py"
		},
		"deleted": func(t *testing.T, dir string) string {
			require.NoError(t, os.Remove(filepath.Join(dir, "notes.txt")))
			return "notes.txt"
		},
		"a second name": func(t *testing.T, dir string) string {
			require.NoError(t, os.Link(filepath.Join(dir, "calc.py"), filepath.Join(dir, "other.py")))
			return "other.py"
		},
		"a file of the candidate too": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "calc.py"), "theirs")
			write(t, filepath.Join(dir, "z.py"), "theirs")
			return "z.py"
		},
	} {
		for _, mode := range []run.DeliverMode{run.DeliverApply, run.DeliverNone, run.DeliverPatch} {
			for _, written := range []bool{false, true} { // in place, or by a delivery that was killed
				b := newBench(t, calc())
				d, j := b.delivery(mode, func(in *run.DeliverInput) { in.InPlace = written && mode != run.DeliverApply })
				path := change(t, b.dir)
				before := b.hash()
				if c := j.Ask.Deliver.Candidate; written && !strings.Contains(name, "candidate") && name != "a second name" {
					require.NoError(t, d.projects.of(j.Run, b.dir).Apply(t.Context(), c.Changes, b.store))
				}
				ans := deliver(t, d, j)
				require.Equal(t, run.DeliverAnswer{Delivered: run.DeliverNone, Moved: []string{path}}, *ans, name)
				require.Equal(t, before, b.hash(), name)
				require.NoDirExists(t, d.patches)
			}
		}
	}
	// Beside a conflict with what the run wrote a move is nothing to go on with.
	b := newBench(t, calc())
	d, j := b.delivery(run.DeliverApply)
	require.NoError(t, d.projects.of(j.Run, b.dir).Apply(t.Context(), j.Ask.Deliver.Candidate.Changes, b.store))
	b.write(files{"calc.py": fixed + "# theirs", "notes.txt": "theirs"})
	ans := deliver(t, d, j)
	require.Equal(t, run.DeliverAnswer{Delivered: run.DeliverNone, Drift: []string{"calc.py"}}, *ans)
	require.Equal(t, fixed+"# theirs", b.read("calc.py"))

	b = newBench(t, calc())
	d, j = b.delivery(run.DeliverApply)
	left := filepath.Join(b.dir, ".nexus-0123abcd-1-0.x")
	write(t, left, "of another run")
	require.NotEmpty(t, deliver(t, d, j).Moved)
	require.NoError(t, os.Remove(left))

	b = newBench(t, calc())
	d, j = b.delivery(run.DeliverNone)
	j.Ask.Deliver.Candidate = nil
	b.write(files{"calc.py": "theirs"})
	require.Equal(t, []string{"calc.py"}, deliver(t, d, j).Moved)
}

// TestDeliverNothing: a dry run and a project that is green write nothing and
// prove that.
func TestDeliverNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverNone)
	ans := deliver(t, d, j)
	require.Equal(t, run.DeliverAnswer{Delivered: run.DeliverNone, Candidate: j.Ask.Deliver.Candidate.Hash, Before: before, After: before}, *ans)
	j.Ask.Deliver.Candidate = nil
	ans = deliver(t, d, j)
	require.Equal(t, run.DeliverAnswer{Delivered: run.DeliverNone, Before: before, After: before}, *ans)
	require.Equal(t, before, b.hash())
	require.NoDirExists(t, d.patches)
}

func TestDeliverAPatchFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverPatch)
	for range 2 {
		ans := deliver(t, d, j)
		require.Equal(t, run.DeliverPatch, ans.Delivered)
		require.Equal(t, before, ans.Before)
		require.Equal(t, before, ans.After)
		text, err := os.ReadFile(ans.Patch)
		require.NoError(t, err)
		require.Contains(t, string(text), "+    return a + b")
		require.Contains(t, string(text), "pkg/new.py")
		require.Equal(t, before, b.hash())
	}
	j.Ask.Deliver.Candidate.Diff.SHA256 = strings.Repeat("0", 64)
	_, err := d.handle(t.Context(), j)
	require.True(t, rollback.IsKind(err, rollback.KindBlob), "%v", err)
}

// TestDeliverTakesBackWhatIsInPlace: a run that was tried in the project, and
// is to be delivered otherwise, leaves it as it was.
func TestDeliverTakesBackWhatIsInPlace(t *testing.T) {
	t.Parallel()
	for _, mode := range []run.DeliverMode{run.DeliverNone, run.DeliverPatch} {
		b := newBench(t, calc())
		before := b.hash()
		d, j := b.delivery(mode, func(in *run.DeliverInput) { in.InPlace = true })
		c := j.Ask.Deliver.Candidate
		require.NoError(t, d.projects.of(j.Run, b.dir).Apply(t.Context(), c.Changes, b.store))
		require.Equal(t, c.Tree.Hash, b.hash())
		ans := deliver(t, d, j)
		require.Equal(t, before, ans.After)
		require.Equal(t, before, b.hash())
	}
}

// TestDeliverWhatWasTested: the changes of a candidate lead to another tree
// than the one that was tested; that is no delivery.
func TestDeliverWhatWasTested(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench, in *run.DeliverInput){
		"other content": func(b *bench, in *run.DeliverInput) {
			origin, _ := b.snapshot()
			in.Candidate.Tree = b.staged(origin, b.modify(origin, "calc.py", "other\n"), b.create("pkg/new.py", "x = 1\n", 0o644)).Tree
		},
		"other mode": func(b *bench, in *run.DeliverInput) {
			origin, _ := b.snapshot()
			in.Candidate.Tree = b.staged(origin, b.modify(origin, "calc.py", fixed), b.create("pkg/new.py", "x = 1\n", 0o600)).Tree
		},
		"one file less": func(b *bench, in *run.DeliverInput) {
			origin, _ := b.snapshot()
			in.Candidate.Tree = b.staged(origin, b.modify(origin, "calc.py", fixed)).Tree
		},
	} {
		b := newBench(t, calc())
		d, j := b.delivery(run.DeliverApply, func(in *run.DeliverInput) { change(b, in) })
		_, err := d.handle(t.Context(), j)
		require.ErrorContains(t, err, "is not what was tested", name)
	}
	b := newBench(t, calc())
	d, j := b.delivery(run.DeliverApply)
	j.Ask.Deliver.Candidate.Tree.Hash = strings.Repeat("0", 64)
	_, err := d.handle(t.Context(), j)
	require.True(t, rollback.IsKind(err, rollback.KindManifest), "%v", err)
}

// TestDeliverOnlyWhatIsAsked: a run that was stopped, or has its answer, waits
// for no delivery; whoever still has the ask writes nothing.
func TestDeliverOnlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverApply)
	j.N++
	_, err := d.handle(t.Context(), j)
	require.ErrorIs(t, err, errNotPending)
	require.Equal(t, before, b.hash())
}

// TestDeliverWaitsForTheFolder: somebody else writes the folder right now.
func TestDeliverWaitsForTheFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverApply)
	unlock, err := rollback.Lock(b.dir)
	require.NoError(t, err)
	_, err = d.handle(t.Context(), j)
	require.Equal(t, failure.Connection, failure.Classify(err), "it is tried again: %v", err)
	require.Equal(t, before, b.hash())
	require.NoError(t, unlock())
	require.Empty(t, deliver(t, d, j).Drift)
}

func TestDeliverWithoutItsContents(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	before := b.hash()
	d, j := b.delivery(run.DeliverApply)
	d.store = failing{Blobs: b.store, fake: map[string]string{j.Ask.Deliver.Candidate.Changes[0].New: "x"}}
	_, err := d.handle(t.Context(), j)
	require.True(t, rollback.IsKind(err, rollback.KindBlob), "%v", err)
	require.Equal(t, before, b.hash())
	require.NoError(t, os.RemoveAll(b.dir))
	j.Ask.Deliver.Mode = run.DeliverNone
	_, err = d.handle(t.Context(), j)
	require.True(t, rollback.IsKind(err, rollback.KindMissing), "%v", err)
}
