package testrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

// A test that never ends is red by itself; the others keep their outcomes.
func TestOneEndlessTest(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"python3 -m unittest", ""} {
		dir := write(t, files{"test_loop.py": `import unittest


class T(unittest.TestCase):
    def test_a(self):
        pass

    def test_loop(self):
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    def test_z(self):
        pass
`})
		plan := find(t, dir, command)
		e, out, err := testrun.Run(t.Context(), plan, dir, testrun.Options{Tree: "t", TestTimeout: time.Second, Timeout: time.Minute})
		require.NoError(t, err)
		require.True(t, e.Completed, string(out))
		require.False(t, e.Timeout)
		v := run.JudgeBase(e)
		require.Equal(t, run.VerdictFailed, v.Kind, v.Reason)
		require.Len(t, v.Failed, 1)
		require.Contains(t, v.Failed[0], "test_loop")
		require.Equal(t, 2, v.Counts.Passed)
		require.Contains(t, e.Tail, "took longer than 1 s")
	}
}
