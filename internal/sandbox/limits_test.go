package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// A bomb whose processes end at once, so that no list of them stays true.
func TestCometsAreCaught(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		m := marker(t, level)
		start := time.Now()
		res := py(t, level, `
import os, sys
sys.argv.append("`+m+`")
while True:
    if os.fork(): os._exit(0)
`, timeout(10*time.Second))
		// The command itself ends at once; what it left behind keeps moving.
		require.Equal(t, 0, res.Exit)
		require.Less(t, time.Since(start), 8*time.Second)
		gone(t, m)
	})
}

// Doubling is bounded by depth (at most 511 processes): an unbounded bomb in
// this place once took the whole machine with it when a limit failed.
func TestDoublingForksAreBounded(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `b() { [ $1 -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep 20; }; b 8`, limits(sandbox.Limits{Processes: 100}), timeout(15*time.Second))
		require.Equal(t, sandbox.LimitProcesses, res.Limit)
	})
}

func TestSharedPagesCountOnce(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := py(t, level, `
import os, time
keep = bytearray(60 << 20)
for j in range(0, len(keep), 4096): keep[j] = 1
kids = []
for i in range(5):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.4)
        os._exit(0)
    kids.append(pid)
for pid in kids: os.waitpid(pid, 0)
`, limits(sandbox.Limits{MemoryBytes: 200 << 20}))
		require.Empty(t, res.Limit)
		require.Equal(t, 0, res.Exit, text(res))
	})
}

func TestFileSizeAndCPULimits(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `exec head -c 5000000 /dev/zero > big`, limits(sandbox.Limits{FileSize: 1 << 20}))
		require.Equal(t, sandbox.LimitFileSize, res.Limit)
		res = sh(t, level, `while :; do :; done`, limits(sandbox.Limits{CPU: time.Second}))
		require.Equal(t, sandbox.LimitCPU, res.Limit)
		require.False(t, res.Timeout)
	})
}

// case A158.
func TestEndlessOutputIsBounded(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `echo first; yes`, limits(sandbox.Limits{OutputBytes: 4 << 20, KeepHead: 1000, KeepTail: 2000}))
		require.Equal(t, sandbox.LimitOutput, res.Limit)
		require.Len(t, res.Output.Head, 1000)
		require.Len(t, res.Output.Tail, 2000)
		require.Greater(t, res.Output.Total, int64(4<<20))
		require.Equal(t, res.Output.Total-3000, res.Output.Dropped)
		require.True(t, strings.HasPrefix(text(res), "first\ny\n"))
	})
}

func TestOneHugeLineWithNULAndInvalidUTF8(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		var log counter
		res := sh(t, level, `head -c 50000000 /dev/zero; printf '\377\376end'`, func(s *sandbox.Spec) { s.Log = &log })
		require.Empty(t, res.Limit)
		require.Equal(t, int64(50000005), res.Output.Total)
		require.Equal(t, int64(50000005), int64(log))
		require.LessOrEqual(t, len(res.Output.Head)+len(res.Output.Tail), 1<<20)
		require.Equal(t, "\uFFFD\uFFFDend", sandbox.Printable(res.Output.Tail))
	})
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
