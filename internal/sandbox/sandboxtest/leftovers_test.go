//go:build linux

package sandboxtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// untidy are commands that leave something behind, each in its own way.
var untidy = []string{
	`true`,
	`(setsid sh -c 'trap "" TERM HUP; sleep 59.17' &); echo done`,
	`mkdir -p a/b "$TMPDIR/x/y"; touch "$TMPDIR/x/y/z" /dev/shm/q; chmod 0 a "$TMPDIR/x"; exit 3`,
	`for i in 1 2 3 4 5; do sleep 59.17 & done; kill -9 $$`,
	`ipcmk -M 4096 -Q -S 1; sleep 59.17 & sleep 59.17`,
	`mkfifo f; exec 9<>f; cat f & sleep 59.17`,
}

// runs is how often each level runs: make hostile asks for 500.
func runs(t *testing.T) int {
	t.Helper()
	text := os.Getenv("NEXUS_HOSTILE_RUNS")
	if text == "" {
		return 2 * len(untidy)
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestNothingIsLeft(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			if got := sandbox.Detect(t.Context(), level); got.Level != level {
				t.Skipf("this machine grants no level %s: %v", level, got.Missing)
			}
			temp := t.TempDir()
			runOnce(t, level, temp, 0) // what is opened once stays open
			before := machine(t, temp)
			for i := range runs(t) {
				runOnce(t, level, temp, i)
			}
			require.Eventually(t, func() bool { return slices.Equal(before, machine(t, temp)) }, time.Second, 5*time.Millisecond,
				"before: %v\nafter: %v", before, machine(t, temp))
		})
	}
}

func runOnce(t *testing.T, level sandbox.Level, temp string, i int) {
	t.Helper()
	dir, err := sandbox.MakeTemp("") // t.TempDir would pile up
	require.NoError(t, err)
	res, err := sandbox.Run(t.Context(), sandbox.Spec{
		Dir: dir, Argv: []string{"/bin/sh", "-c", untidy[i%len(untidy)]}, Level: level, Temp: temp, Timeout: 200 * time.Millisecond,
	})
	require.NoError(t, err)
	require.Equal(t, level, res.Level)
	require.NoError(t, sandbox.RemoveTemp(dir))
}

// machine lists what a run could leave: processes below this one, mounts,
// cgroups with the sandbox's name, things in the temporary folder, shared
// memory, and this process's own descriptors.
func machine(t *testing.T, temp string) []string {
	t.Helper()
	var out []string
	list := func(kind, pattern string, want func(path string) bool) {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, p := range paths {
			if want(p) {
				out = append(out, kind+" "+p)
			}
		}
	}
	list("process", "/proc/[0-9]*/stat", func(p string) bool {
		b, err := os.ReadFile(p)
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		return err == nil && len(f) > 1 && f[1] == strconv.Itoa(os.Getpid())
	})
	list("sleep", "/proc/[0-9]*/cmdline", func(p string) bool {
		b, err := os.ReadFile(p)
		return err == nil && string(b) == "sleep\x0059.17\x00"
	})
	list("temp", filepath.Join(temp, "*"), func(string) bool { return true })
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	out = append(out, fmt.Sprintf("descriptors %d", len(fds)))
	for _, name := range []string{"/proc/self/mountinfo", "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem"} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%s %d lines", name, strings.Count(string(b), "\n")))
	}
	return append(out, cgroups(t)...)
}

// cgroups lists the control groups of this process's runs.
func cgroups(t *testing.T) []string {
	t.Helper()
	var out []string
	mine := fmt.Sprintf("nexus-sandbox-%d-", os.Getpid())
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), mine) {
			out = append(out, "cgroup "+path)
		}
		return nil //nolint:nilerr // groups of others come and go
	})
	require.NoError(t, err)
	return out
}
