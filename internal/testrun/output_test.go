package testrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/testrun"
)

func TestOutputPastItsTotalIsALimit(t *testing.T) {
	t.Parallel()
	plan, err := testrun.Find(t.Context(), write(t, calc()), "yes | head -c 300000000")
	require.NoError(t, err)
	e, out, err := testrun.Run(t.Context(), plan, write(t, calc()), testrun.Options{Tree: "t"})
	require.NoError(t, err)
	require.Equal(t, "output", e.Limit)
	require.Less(t, len(out), 17<<20)
	require.Contains(t, string(out), "bytes dropped")
}

// What a test prints reaches nobody's terminal, log or prompt as it is; the
// whole text stays for the artifact.
func TestTailIsCleanAndTheOutputWhole(t *testing.T) {
	t.Parallel()
	plan, err := machine()
	if err != nil || plan.Runner != testrun.Pytest {
		t.Skip("this machine has no pytest: ", err)
	}
	project := files{"test_o.py": `
def test_o():
    print("\x1b]0;title\x07\x1b[31mred\x1b[0m \u202e backwards", "key", "sk-" + "proj-" + "a1B2" * 12)
    print("start of it", "y" * 3_000_000)
    print("AKIA" + "IOSFODNN7ABCDEFG", "\x9b2J")
    assert False
`}
	plan.Root = write(t, project)
	e, out, err := testrun.Run(t.Context(), plan, write(t, project), testrun.Options{Tree: "t", Timeout: time.Minute})
	require.NoError(t, err)
	require.LessOrEqual(t, len(e.Tail), 8<<10)
	for _, hidden := range []string{"\x1b", "\x07", "\u202e", "\u009b", "AKIAIOSFODNN7ABCDEFG"} {
		require.NotContains(t, e.Tail, hidden)
	}
	require.Contains(t, string(out), "start of it")
	require.NotContains(t, string(out), "bytes dropped")
	require.Greater(t, len(out), 3_000_000)
}
