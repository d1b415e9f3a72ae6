//go:build linux

package sandbox

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bare runs a script at level thin as on a machine that grants no cgroup:
// the watchdog and the end of the tree are all there is.
func bare(t *testing.T, limits Limits, argv ...string) Result {
	t.Helper()
	spec, err := Spec{Dir: t.TempDir(), Temp: t.TempDir(), Timeout: 15 * time.Second, Limits: limits, Argv: argv}.normalize()
	require.NoError(t, err)
	res, err := runThin(t.Context(), spec, false)
	require.NoError(t, err)
	require.Empty(t, res.Features.Cgroup)
	return res
}

// The bomb doubles eight times and then stays, so that a sandbox that fails
// this does not take the machine with it.
func TestForkBombWithoutCgroup(t *testing.T) {
	t.Parallel()
	res := bare(t, Limits{Processes: 60}, "/bin/sh", "-c",
		`b() { [ $1 -gt 0 ] || exec sleep 5; b $(($1-1)) & b $(($1-1)) & wait; }; b 8`)
	require.Equal(t, LimitProcesses, res.Limit)
	require.Less(t, res.Seconds, 4.0)
}

func TestMemoryWithoutCgroup(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this machine has no /usr/bin/python3")
	}
	res := bare(t, Limits{MemoryBytes: 100 << 20}, "/usr/bin/python3", "-c", `
import os, time
for i in range(3):
    if os.fork() == 0:
        keep = bytearray(50 << 20)
        for j in range(0, len(keep), 4096): keep[j] = 1
        time.sleep(10)
        os._exit(0)
time.sleep(10)
`)
	require.Equal(t, LimitMemory, res.Limit)
}
