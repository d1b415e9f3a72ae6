package rollback

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

const reportText = ReportMark + "\n# Run\n"

// TestAReportIsNoPartOfTheTree: what a run proved about a folder stays true
// when its report is written into it.
func TestAReportIsNoPartOfTheTree(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "sub/" + ReportName: reportText})
	before := b.hash()
	for _, text := range []string{reportText, reportText + "again\n"} {
		ok, err := PlaceReport(b.Dir, []byte(text))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, text, b.read(ReportName))
		require.Equal(t, before, b.hash())
	}
	info, err := os.Stat(filepath.Join(b.Dir, ReportName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(NewFileMode), info.Mode())
	names, err := filepath.Glob(filepath.Join(b.Dir, ".nexus*"))
	require.NoError(t, err)
	require.Empty(t, names)
	_, deeper := b.scan().Lookup("sub/" + ReportName)
	require.True(t, deeper, "only the file at the top is ours")
	require.NoError(t, b.apply(b.modify("a.py", "2\n")))
	b.restored()
	require.Equal(t, reportText+"again\n", b.read(ReportName))
}

// TestAReportThatIsNotOurs: a file of the user's stays, and counts.
func TestAReportThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(*bundle){
		"a file":           func(b *bundle) { b.write(files{ReportName: "mine\n"}) },
		"a shorter file":   func(b *bundle) { b.write(files{ReportName: ReportMark[:9]}) },
		"a link":           func(b *bundle) { b.write(files{"x": reportText, ReportName: "→x"}) },
		"a link elsewhere": func(b *bundle) { b.write(files{ReportName: "→/dev/null"}) },
		"a folder":         func(b *bundle) { b.write(files{ReportName + "/": ""}) },
	} {
		b := setup(t, files{"a.py": "1\n"})
		make(b)
		before := b.scan()
		_, there := before.Lookup(ReportName)
		require.True(t, there, name)
		ok, err := PlaceReport(b.Dir, []byte(reportText))
		require.NoError(t, err, name)
		require.False(t, ok, name)
		require.Equal(t, before.Hash(), b.hash(), name)
	}
}

func TestAReportThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	_, err := PlaceReport(b.Dir, []byte("no mark"))
	require.ErrorContains(t, err, "mark")
	_, err = PlaceReport(filepath.Join(b.Dir, "nowhere"), []byte(reportText))
	requireKind(t, err, KindMissing)
	_, err = PlaceReport(filepath.Join(b.Dir, "a.py"), []byte(reportText))
	requireKind(t, err, KindNotFolder)
	require.Equal(t, b.base.Hash(), b.hash())
}

// TestANamedReportTemp: on a file system without unnamed files, what a kill
// left behind is taken over and is no part of the tree.
func TestANamedReportTemp(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n"})
	b.write(files{reportTemp: "torn"})
	require.Equal(t, b.base.Hash(), b.hash())
	top, err := os.Open(b.Dir)
	require.NoError(t, err)
	defer top.Close()
	for _, text := range []string{reportText, reportText + "again"} {
		require.NoError(t, writeReport(top, []byte(text), true))
		require.Equal(t, text, b.read(ReportName))
	}
	require.NoFileExists(t, filepath.Join(b.Dir, reportTemp))
	require.Equal(t, b.base.Hash(), b.hash())
}

// TestChmodIsDrift: a user's chmod of a file that the run wants to write is an
// edit like any other; it is neither overwritten nor undone.
func TestChmodIsDrift(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	modify := func(p, text string) run.Change {
		c := b.modify(p, text)
		c.Mode, c.BaseMode = 0o644, 0o644
		return c
	}
	b.chmod("a.py", 0o600)
	before := b.hash()
	err := b.apply(modify("a.py", "2\n"), modify("b.py", "2\n"))
	requireKind(t, err, KindDrift)
	require.ErrorContains(t, err, "a.py")
	require.NotContains(t, err.Error(), "b.py")
	require.Equal(t, before, b.hash())
	r := b.restore()
	require.Equal(t, []string{"a.py"}, r.Foreign)
	require.Equal(t, before, b.hash())

	b.chmod("a.py", 0o644)
	require.NoError(t, b.apply(modify("a.py", "2\n")))
	b.chmod("a.py", 0o600)
	now := b.hash()
	requireKind(t, b.apply(modify("a.py", "2\n")), KindDrift)
	r = b.restore()
	require.Equal(t, []string{"a.py"}, r.Conflicts, "the content is the run's, the mode the user's")
	require.Equal(t, now, r.Before)
	require.Equal(t, b.base.Hash(), r.Base)
	require.Equal(t, b.hash(), r.After)
	require.Equal(t, "1\n", b.read("a.py"))
	info, err := os.Stat(filepath.Join(b.Dir, "a.py"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// TestADeletedFileWithANewMode: what a candidate deletes is looked at too.
func TestADeletedFileWithANewMode(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "b.py": "1\n"})
	c := b.del("a.py")
	c.BaseMode = 0o644
	b.chmod("a.py", 0o755)
	requireKind(t, b.apply(c), KindDrift)
	require.Equal(t, "1\n", b.read("a.py"))
}

// TestDiffKnowsBothModes: the changes that deliver writes say what the mode
// was.
func TestDiffKnowsBothModes(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "gone.py": "1\n"})
	b.write(files{"a.py": "2\n", "new.py": "1\n"})
	b.chmod("a.py", 0o755)
	require.NoError(t, os.Remove(filepath.Join(b.Dir, "gone.py")))
	diff, err := Diff(b.base, b.scan())
	require.NoError(t, err)
	modes := map[string][2]uint32{}
	for _, c := range diff {
		modes[c.Path] = [2]uint32{c.BaseMode, c.Mode}
	}
	require.Equal(t, map[string][2]uint32{"a.py": {0o644, 0o755}, "gone.py": {0o644, 0}, "new.py": {0, 0o644}}, modes)
}
