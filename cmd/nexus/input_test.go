package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
)

// Bad input gets a clear error that says what to do, and leaves nothing
// behind.
func TestBadInput(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		make func(w *world) string
		args []string
		want string
	}{
		{"missing folder", func(w *world) string { return filepath.Join(w.dir, "nowhere") }, nil, "no such file"},
		{"a file", func(w *world) string { return filepath.Join(w.project("calc"), "calc.py") }, nil, "not a folder"},
		{"empty folder", func(w *world) string {
			dir := filepath.Join(w.dir, "void")
			require.NoError(w.t, os.Mkdir(dir, 0o755))
			return dir
		}, nil, "empty"},
		{"no tests", func(w *world) string {
			dir := filepath.Join(w.dir, "bare")
			w.write(dir, "main.py", "print('hi')\n")
			return dir
		}, nil, "no tests found"},
		{"no such test command", func(w *world) string { return w.project("calc") }, []string{"--test", "no-such-runner -q"}, "not found"},
		{"a target outside", func(w *world) string { return w.project("calc") }, []string{"--target", "../x.py"}, "leaves the folder"},
		{"a missing target", func(w *world) string { return w.project("calc") }, []string{"--target", "clac.py"}, "clac.py is not there"},
		{"a test as target", func(w *world) string { return w.project("calc") }, []string{"--target", "test_calc.py"}, "is protected"},
		{"git's own as target", func(w *world) string { return w.project("calc") }, []string{"--target", ".git/config"}, ".git"},
		{"model without a model", func(w *world) string { return w.project("calc") }, []string{"--source", "model"}, "NEXUS_MODEL_BASE_URL"},
		{"unknown source", func(w *world) string { return w.project("calc") }, []string{"--source", "magic"}, "model"},
		{"no test command", func(w *world) string { return w.project("calc") }, []string{"--test", " "}, "leave --test out"},
		{"fewer than no calls", func(w *world) string { return w.project("calc") }, []string{"--max-calls", "-1"}, `0 or more, not "-1"`},
		{"less than no time", func(w *world) string { return w.project("calc") }, []string{"--timeout", "-3s"}, "time limit"},
		{"bad time limit", func(w *world) string { return w.project("calc") }, []string{"--timeout=-3s"}, "time limit"},
		{"state inside the project", func(w *world) string { return w.project("calc") }, []string{"--state", "calc/state"}, "in one another"},
		{"project inside the state", func(w *world) string { return w.project("calc") }, []string{"--state", "."}, "in one another"},
		{"no server", func(w *world) string { return w.project("calc") }, []string{"--nats", "nats://127.0.0.1:1"}, "connect"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := c.make(w)
			for i, a := range c.args {
				if i > 0 && c.args[i-1] == "--state" {
					c.args[i] = filepath.Join(w.dir, a)
				}
			}
			r := w.nexus(append([]string{"heal", dir}, c.args...)...)
			require.Equal(t, 1, r.exit, "%s%s", r.out, r.err)
			require.Contains(t, r.out+r.err, c.want)
			require.NotContains(t, r.err, "goroutine")
			left, err := filepath.Glob(filepath.Join(dir, ".nexus*"))
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoDirExists(t, filepath.Join(dir, "state"))
		})
	}
}

// Odd but legal folders are healed, and nothing in them is touched but the
// fix.
func TestOddFolders(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w *world, dir string){
		"names that are not UTF-8": func(w *world, dir string) { w.write(dir, "caf\xe9.txt", "x") },
		"a FIFO":                   func(w *world, dir string) { require.NoError(w.t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)) },
		"a symlink loop":           func(w *world, dir string) { require.NoError(w.t, os.Symlink("loop", filepath.Join(dir, "loop"))) },
		"a nested repository":      func(w *world, dir string) { w.write(dir, "sub/.git/HEAD", "ref: refs/heads/main\n") },
		"an ignored folder":        func(w *world, dir string) { w.write(dir, ".nexusignore", "data/\n"); w.write(dir, "data/big.bin", "x") },
		"Windows line ends": func(w *world, dir string) {
			w.write(dir, "calc.py", strings.ReplaceAll(calcBroken, "\n", "\r\n"))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := w.project("calc")
			change(w, dir)
			broken, err := os.ReadFile(filepath.Join(dir, "calc.py"))
			require.NoError(t, err)
			sum, r := w.heal(dir, "--source", "engine")
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			fixed, err := os.ReadFile(filepath.Join(dir, "calc.py"))
			require.NoError(t, err)
			require.Equal(t, strings.Replace(string(broken), "a - b", "a + b", 1), string(fixed))
			require.Equal(t, []string{"calc.py"}, sum.Files)
		})
	}
}

// Test runs that misbehave end the run within its limits, with the folder as
// it was.
func TestHostileTests(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"hangs":            "import time\ntime.sleep(600)\n",
		"prints 200 MB":    "for _ in range(200):\n    print('x' * (1 << 20))\nraise SystemExit(1)\n",
		"kills its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
		"ends at once":     "import os\nos._exit(0)\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := w.project("calc")
			w.write(dir, "test_calc.py", body+calcTests)
			before := w.tree(dir)
			sum, r := w.heal(dir, "--source", "engine", "--timeout", "20s")
			require.NotEqual(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, before, w.tree(dir))
			require.Equal(t, before, sum.FinalTree, "%s\n%s", r.out, r.err)
			require.Less(t, len(r.out), 1<<20)
		})
	}
}

// A second heal of the same folder, or of one inside it, is refused with the
// id of the run that works there.
func TestSecondHealIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(`hang "def"`)
	dir := w.project("calc")
	first := w.background("heal", dir, "--source", "model")
	<-m.Arrived()
	for _, again := range []string{dir, filepath.Join(dir, "pkg"), w.dir} {
		w.write(again, "note.txt", "")
		r := w.nexus("heal", again, "--state", t.TempDir())
		require.Equal(t, 1, r.exit, r.out)
		require.Contains(t, r.err, "busy")
		require.Regexp(t, `run [a-z2-7]{26}`, r.err)
	}
	require.NoError(t, first.Process.Signal(syscall.SIGINT))
	require.Error(t, first.Wait())
	require.Equal(t, 2, first.ProcessState.ExitCode())
	require.Contains(t, first.Stdout.(*buffer).String(), "cancelled by the user")
	w.clean(dir)
}
