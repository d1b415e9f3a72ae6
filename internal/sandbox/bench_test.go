//go:build linux

package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// way is one way to run a command.
type way struct {
	name string
	run  func(ctx context.Context, dir string, argv []string) error
}

// ways are those that this machine has: a bare fork first, bubblewrap where it
// is installed, and every level.
func ways(b *testing.B, grants []string) []way {
	b.Helper()
	out := []way{{"bare", func(ctx context.Context, dir string, argv []string) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = dir
		return cmd.Run()
	}}}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		out = append(out, way{"bwrap", func(ctx context.Context, dir string, argv []string) error {
			args := []string{
				"--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
				"--tmpfs", "/tmp", "--bind", dir, dir, "--chdir", dir,
			}
			return exec.CommandContext(ctx, bwrap, append(args, argv...)...).Run()
		}})
	} else {
		b.Log("no bubblewrap here to compare with: apt-get install bubblewrap")
	}
	for _, level := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelUser, sandbox.LevelThin} {
		if got := sandbox.Detect(b.Context(), level); got.Level != level {
			b.Logf("no level %s: %v", level, got.Missing)
			continue
		}
		out = append(out, way{string(level), func(ctx context.Context, dir string, argv []string) error {
			// The toolchain keeps its own bytecode, as in a run of tests.
			_, err := sandbox.Run(ctx, sandbox.Spec{
				Dir: dir, Argv: argv, Level: level, ReadOnly: grants, Env: []string{"PYTHONPYCACHEPREFIX="},
			})
			return err
		}})
	}
	return out
}

// compare runs the command in every way in turn, so that all of them meet the
// same load, and reports the medians in milliseconds.
func compare(b *testing.B, dir string, argv []string, grants ...string) {
	b.Helper()
	list := ways(b, grants)
	times := make([][]time.Duration, len(list))
	for b.Loop() {
		for i, w := range list {
			start := time.Now()
			require.NoError(b, w.run(b.Context(), dir, argv))
			times[i] = append(times[i], time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, w := range list {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2].Microseconds())/1000, w.name+"-ms")
	}
}

// BenchmarkStartup is the price of a run of nothing.
func BenchmarkStartup(b *testing.B) { compare(b, b.TempDir(), []string{"/bin/true"}) }

// BenchmarkOneTest is the price of a suite of one test.
func BenchmarkOneTest(b *testing.B) {
	python := os.Getenv("NEXUS_PYTHON")
	if python == "" {
		b.Skip("NEXUS_PYTHON names no interpreter with pytest")
	}
	dir := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(dir, "test_one.py"), []byte("def test_one():\n    assert 1 + 1 == 2\n"), 0o600))
	compare(b, dir, []string{python, "-m", "pytest", "-q", "-p", "no:cacheprovider"}, filepath.Dir(filepath.Dir(python)))
}
