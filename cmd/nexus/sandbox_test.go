package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// sandboxWorld is a world with a folder to run commands in, where this machine
// grants at least level user.
func sandboxWorld(t *testing.T) (w *world, dir string) {
	t.Helper()
	w = newWorld(t)
	dir = filepath.Join(w.dir, "app")
	w.write(dir, "data.txt", "old\n")
	if r := w.nexus("sandbox", "--dir", dir, "--", "true"); r.exit == exitUnavailable {
		t.Skipf("this machine grants no namespaces: %s", r.err)
	}
	return w, dir
}

func TestSandboxExitStatuses(t *testing.T) {
	t.Parallel()
	w, dir := sandboxWorld(t)
	for _, c := range []struct {
		name string
		args []string
		exit int
		err  string
	}{
		{"its own", []string{"--", "sh", "-c", "exit 7"}, 7, ""},
		{"time", []string{"--timeout", "200ms", "--", "sleep", "60"}, exitTimeout, "timeout"},
		{"memory", []string{"--memory", "40MiB", "--", "python3", "-c", "x = bytearray(90 << 20)"}, exitLimit, "limit memory"},
		{"output", []string{"--output", "1M", "--", "yes"}, exitLimit, "limit output"},
		{"tree", []string{"--tree-size", "1M", "--", "head", "-c", "9000000", "/dev/zero"}, 0, ""},
		{"signal", []string{"--", "sh", "-c", "kill -TERM $$"}, 128 + 15, "SIGTERM"},
		{"no such command", []string{"--", "no-such-command"}, exitNotFound, "not found"},
		{"no such level here", []string{"--level", "vm", "--", "true"}, exitUnavailable, "NEXUS_SANDBOX_RUNSC"},
		{"unknown level", []string{"--level", "best", "--", "true"}, 1, "level"},
		{"no command", nil, 1, "expected"},
		{"bad size", []string{"--memory", "much", "--", "true"}, 1, "no size"},
		{"missing folder", []string{"--dir", "/no/such", "--", "true"}, 1, "no such"},
		{"bad variable", []string{"--env", "X", "--", "true"}, 1, "KEY=VALUE"},
		{"a tree at /usr", []string{"--at", "/usr", "--", "true"}, 1, "/usr"},
	} {
		args := append([]string{"sandbox"}, c.args...)
		if c.name != "missing folder" {
			args = append([]string{"sandbox", "--dir", dir}, c.args...)
		}
		r := w.nexus(args...)
		require.Equal(t, c.exit, r.exit, "%s: %s%s", c.name, r.out, r.err)
		require.Contains(t, r.err, c.err, c.name)
		require.NotContains(t, r.err, "goroutine")
	}
}

func TestSandboxShowsTheFolderAndKeepsIt(t *testing.T) {
	t.Parallel()
	w, dir := sandboxWorld(t)
	before := w.tree(dir)
	tool := filepath.Join(w.dir, "tool")
	w.write(tool, "lib", "lib\n")
	kept := filepath.Join(w.dir, "kept")
	require.NoError(t, os.Mkdir(kept, 0o755))
	r := w.with([]string{"SECRET=x"}, "sandbox", "--dir", dir, "--at", "/srv/someone/app", "--read", tool, "--write", kept, "--protect", "data.txt",
		"--env", "CI=1", "--", "sh", "-c",
		`pwd; echo "CI=$CI SECRET=$SECRET"; cat `+tool+`/lib; echo x > data.txt; cat data.txt; echo y > new; echo z > `+kept+`/out; printf '\033[31mred\033[0m'`)
	require.Equal(t, "/srv/someone/app\nCI=1 SECRET=\nlib\nsh: 1: cannot create data.txt: Read-only file system\nold\nred", r.out)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, before, w.tree(dir))
	b, err := os.ReadFile(filepath.Join(kept, "out"))
	require.NoError(t, err)
	require.Equal(t, "z\n", string(b))
}

func TestSandboxReportsUsageAsJSON(t *testing.T) {
	t.Parallel()
	w, dir := sandboxWorld(t)
	r := w.nexus("sandbox", "--dir", dir, "--json", "--", "sh", "-c", `head -c 2000000 /dev/zero > made; printf '\033[31mhi\n'; exit 4`)
	require.Equal(t, 4, r.exit, r.err)
	require.Empty(t, r.err)
	var rep sandboxReport
	require.NoError(t, json.Unmarshal([]byte(r.out), &rep))
	require.Equal(t, "exited", rep.Outcome)
	require.Equal(t, 4, rep.Exit)
	require.Equal(t, "hi\n", rep.Output)
	require.GreaterOrEqual(t, rep.Usage.TreeBytes, int64(2_000_000))
	require.Equal(t, int64(8), rep.Usage.OutputBytes)
	require.Positive(t, rep.Usage.PeakBytes)
	require.Contains(t, []sandbox.Level{sandbox.LevelFull, sandbox.LevelUser}, rep.Level)
	require.NotEmpty(t, rep.Features.Bounds[sandbox.LimitMemory])
	r = w.nexus("sandbox", "--dir", dir, "--json", "--level", "vm", "--", "true")
	require.NoError(t, json.Unmarshal([]byte(r.out), &rep))
	require.Equal(t, "unavailable", rep.Outcome)
	require.Contains(t, rep.Error, "runsc")
}

func TestDoctorNamesTheSandboxsFeatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.nexus("doctor")
	for _, want := range []string{"level", "tree", "memory", "processes", "network", "signals", "landlock"} {
		require.Contains(t, r.out, want)
	}
}
