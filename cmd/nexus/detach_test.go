package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
)

// away is what heal --detach --json prints.
type away struct {
	Type, Run, Dir, Log string
	PID                 int
}

func (w *world) detach(dir string, args ...string) away {
	w.t.Helper()
	r := w.nexus(append([]string{"heal", dir, "--detach", "--json", "--source", "model"}, args...)...)
	require.Zero(w.t, r.exit, "%s\n%s", r.out, r.err)
	var a away
	require.NoError(w.t, json.Unmarshal([]byte(r.out), &a), r.out)
	require.Equal(w.t, "detached", a.Type)
	require.Equal(w.t, dir, a.Dir)
	w.endLater(a.PID)
	return a
}

// endLater ends a process in the background with the test, where it has not
// ended by itself.
func (w *world) endLater(pid int) {
	w.t.Helper()
	require.Greater(w.t, pid, 1, "no process, but many")
	w.t.Cleanup(func() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == binary {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may end by itself
		}
	})
}

// gone waits until a process has ended. Who reaps it is not ours to say.
func (w *world) gone(pid int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, 20*time.Millisecond)
}

// The caller is back as soon as the run is open. What goes on has a session and
// descriptors of its own, can be watched, and ends with the folder healed.
func TestDetachedHeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(`hang "def"`, answer(fenced(calcFixed)))
	dir := w.project("calc")
	kept, err := os.Create(filepath.Join(w.dir, "open.txt"))
	require.NoError(t, err)
	defer kept.Close()
	caller := exec.CommandContext(t.Context(), binary, "heal", dir, "--detach", "--source", "model", "--timeout", "2m")
	caller.Env, caller.ExtraFiles = w.env, []*os.File{nil, kept}
	out, err := caller.Output()
	require.NoError(t, err)
	require.Regexp(t, `run [a-z2-7]{26} heals .* in the background \(process \d+\)\n +watch +nexus run watch \S{8}\n +cancel +nexus run cancel \S{8}\n +output `, string(out))
	var id, folder string
	var pid int
	_, err = fmt.Sscanf(string(out), "run %s heals %s in the background (process %d)", &id, &folder, &pid)
	require.NoError(t, err)
	w.endLater(pid)
	<-m.Arrived()
	sid, err := unix.Getsid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, sid)
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, links)
	for _, link := range links {
		file, _ := os.Readlink(link) // it may have been closed since
		require.NotContains(t, file, "open.txt")
	}
	r := w.nexus("run", "cancel", id[:8])
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	w.gone(pid)
	text, err := os.ReadFile(filepath.Join(dir, "calc.py"))
	require.NoError(t, err)
	require.Equal(t, calcBroken, string(text))
	w.clean(dir)

	a := w.detach(dir)
	watched := w.nexus("run", "watch", a.Run)
	require.Zero(t, watched.exit, "%s%s", watched.out, watched.err)
	require.Contains(t, watched.out, string(run.Approved))
	w.gone(a.PID)
	require.Equal(t, filepath.Join(w.dir, "xdg", "nexus", "logs", a.Run+".log"), a.Log)
	log, err := os.ReadFile(a.Log)
	require.NoError(t, err)
	require.Contains(t, string(log), `"type":"result"`)
	text, err = os.ReadFile(filepath.Join(dir, "calc.py"))
	require.NoError(t, err)
	require.Equal(t, calcFixed, string(text))
	w.clean(dir)
	require.Zero(t, w.nexus("gc", "--older", "0d", "--dry-run").exit)
}

// What refuses a heal is said to the caller, as without --detach, whoever of
// the two processes finds out.
func TestDetachedHealIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := w.project("busy")
	m := w.script(`hang "def"`, answer("no idea"))
	first := w.detach(busy)
	<-m.Arrived()
	empty := filepath.Join(w.dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o755))
	for _, args := range [][]string{
		{filepath.Join(w.dir, "none")},
		{empty},
		{busy},
		{filepath.Join(busy, "pkg")},
		{busy, "--target", "none.py"},
		{busy, "--policy", "none.yaml"},
		{busy, "--timeout", "-1s"},
	} {
		for _, form := range []string{"--json", "--source=model"} {
			plain := w.nexus(append([]string{"heal", form}, args...)...)
			got := w.nexus(append([]string{"heal", form, "--detach"}, args...)...)
			require.Equal(t, 1, plain.exit, "%v: %s%s", args, plain.out, plain.err)
			require.Equal(t, plain.exit, got.exit, "%v", args)
			require.Equal(t, plain.err, got.err, "%v", args)
			if form == "--json" {
				require.Equal(t, plain.out, got.out, "%v", args)
			}
		}
	}
	require.Zero(t, w.nexus("run", "cancel", first.Run).exit)
	w.gone(first.PID)
	left, err := filepath.Glob(filepath.Join(w.dir, "xdg/nexus/logs/starting-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// Ctrl-C before the run is open ends the background process too, and nothing
// has begun.
func TestDetachIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(calcFixed)))
	dir := w.project("calc")
	before := w.tree(dir)
	state := filepath.Join(w.dir, "state")
	require.NoError(t, os.MkdirAll(state, 0o700))
	owner := flock.New(filepath.Join(state, "owner.lock")) // one that does not answer
	ok, err := owner.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	cmd := w.background("heal", dir, "--detach", "--source", "model", "--state", state)
	claims := filepath.Join(w.dir, "claims.json")
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(claims)
		return err == nil && strings.Contains(string(text), `"run"`)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, cmd.Stdout.(*buffer).String(), "stopping (interrupt)")
	require.Contains(t, cmd.Stderr.(*buffer).String(), "stopped before a run began")
	require.Equal(t, before, w.tree(dir))
	w.clean(dir)
	require.NoError(t, owner.Unlock())
	require.Contains(t, w.nexus("run", "ls", "--state", state).out, "no runs yet")
}
