package sandbox_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	goleak.VerifyTestMain(m)
}

// levels lists the levels that this machine grants.
func levels(t *testing.T) []sandbox.Level {
	t.Helper()
	var out []sandbox.Level
	for _, l := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelUser, sandbox.LevelThin} {
		if sandbox.Detect(t.Context(), l).Level == l {
			out = append(out, l)
		}
	}
	require.NotEmpty(t, out)
	return out
}

// each runs a test at every level.
func each(t *testing.T, f func(t *testing.T, level sandbox.Level)) {
	t.Helper()
	t.Parallel()
	for _, l := range levels(t) {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			f(t, l)
		})
	}
}

// sh runs a shell script in a fresh tree.
func sh(t *testing.T, level sandbox.Level, script string, change ...func(*sandbox.Spec)) sandbox.Result {
	t.Helper()
	temp := t.TempDir()
	spec := sandbox.Spec{
		Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", script}, Level: level,
		Timeout: 20 * time.Second, Temp: temp,
	}
	for _, c := range change {
		c(&spec)
	}
	res, err := sandbox.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, level, res.Level)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "the private folder is gone")
	return res
}

func TestRunReportsExitAndOutput(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `echo out; echo err >&2; exit 7`)
		require.Equal(t, 7, res.Exit)
		require.Empty(t, res.Signal)
		require.Equal(t, "out\nerr\n", string(res.Output.Bytes()))
		require.False(t, res.Timeout)
		require.Empty(t, res.Limit)
	})
}
