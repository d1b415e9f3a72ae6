package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// TestKilledAtTheReport: a process that dies while it writes the report into
// the project leaves no report, the old one or a whole one, nothing beside it,
// and the tree that the run proved.
func TestKilledAtTheReport(t *testing.T) {
	t.Parallel()
	args := []string{"--source", "model", "--test", "python3 -m unittest", "--report"}
	for _, point := range []string{
		"agents.report", "agents.reported", "agents.report.project", "rollback.report.write", "rollback.report.write:2",
		"rollback.report.synced", "rollback.report.name.before", "rollback.report.name.after", "agents.report.placed", "bus.outcome.report",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "NEXUS_DEBUG_MAX_RETRIES=1")
			w.script(handed.script...)
			dir := w.project("calc")
			before := w.tree(dir)
			first := w.with([]string{fault.EnvKill + "=" + point}, append([]string{"heal", dir}, args...)...)
			require.Equal(t, -1, first.exit, "the point was not reached: %s%s", first.out, first.err)
			require.Equal(t, before, w.tree(dir))
			w.wholeReport(dir)
			sum, r := w.heal(dir, args...)
			require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, before, w.tree(dir))
			require.Equal(t, before, sum.FinalTree)
			require.Equal(t, filepath.Join(dir, rollback.ReportName), sum.Report)
			require.Contains(t, w.wholeReport(dir), sum.Run)
			w.clean(dir)
		})
	}
}

// wholeReport reads the report in the project, if there is one: it has its
// beginning and its end, and nothing unfinished lies beside it.
func (w *world) wholeReport(dir string) string {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(w.t, err)
	require.Empty(w.t, left)
	text, err := os.ReadFile(filepath.Join(dir, rollback.ReportName))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(w.t, err)
	require.True(w.t, strings.HasPrefix(string(text), rollback.ReportMark))
	require.Contains(w.t, string(text), "## Artefacts")
	require.True(w.t, strings.HasSuffix(string(text), "`\n"))
	return string(text)
}

// TestReportBesideForeignFiles: what somebody else did to the folder during
// the run is in the report and in the result, and stays.
func TestReportBesideForeignFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(`hang "def"`, answer("I do not know."))
	w.env = append(w.env, "NEXUS_MODEL_IDLE_TIMEOUT=2s")
	dir := w.project("calc")
	cmd := w.background("heal", dir, "--source", "model", "--report")
	<-m.Arrived()
	w.write(dir, "mine.txt", "written meanwhile")
	require.Error(t, cmd.Wait())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	out, _ := cmd.Stdout.(*buffer)
	require.Contains(t, out.String(), "mine.txt was changed by somebody else during the run")
	require.Contains(t, w.wholeReport(dir), "not touched: `mine.txt`")
	require.FileExists(t, filepath.Join(dir, "mine.txt"))
}
