package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// hung starts a heal whose model does not answer, and waits until it asks.
func (w *world) hung(dir string, args ...string) *exec.Cmd {
	w.t.Helper()
	m := w.script(`hang "def"`, answer("no idea"))
	cmd := w.background(append([]string{"heal", dir, "--source", "model"}, args...)...)
	<-m.Arrived()
	return cmd
}

// Every signal that asks a command to end cancels the run and puts the folder
// back, not Ctrl-C alone.
func TestHealIsStoppedBySignals(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := w.project("calc")
			before := w.tree(dir)
			cmd := w.hung(dir, "--in-place")
			require.NoError(t, cmd.Process.Signal(s))
			require.Error(t, cmd.Wait())
			out := cmd.Stdout.(*buffer).String()
			require.Equal(t, 2, cmd.ProcessState.ExitCode(), out)
			require.Contains(t, out, "stopping ("+s.String()+")")
			require.Contains(t, out, "cancelled by the user")
			require.Equal(t, before, w.tree(dir))
			w.clean(dir)
		})
	}
}

// A second signal leaves at once and says what is left to do; the next heal
// does it.
func TestHealIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	before := w.tree(dir)
	cmd := w.hung(dir)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		require.NoError(t, cmd.Process.Signal(s))
	}
	require.Error(t, cmd.Wait())
	errs := cmd.Stderr.(*buffer).String()
	if cmd.ProcessState.ExitCode() == 1 { // else the first one was faster
		require.Regexp(t, `left at once: run [a-z2-7]{26} has not ended; 'nexus heal `+dir+`' continues it`, errs)
	}
	sum, r := w.heal(dir, "--source", "engine", "--dry-run")
	require.Equal(t, run.Approved, sum.State, r.out)
	require.Equal(t, before, w.tree(dir))
	w.clean(dir)
}

// A signal while nobody answers on the bus, before a run is open, begins
// nothing and says so; a second one leaves.
func TestHealIsStoppedBeforeItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	state := filepath.Join(w.dir, "xdg", "nexus")
	require.NoError(t, os.MkdirAll(state, 0o700))
	lock := exec.CommandContext(t.Context(), "flock", filepath.Join(state, "owner.lock"), "cat")
	in, err := lock.StdinPipe()
	require.NoError(t, err)
	lockOut := &buffer{}
	lock.Stdout = lockOut
	if err := lock.Start(); err != nil {
		t.Skip("this machine has no flock command")
	}
	_, err = in.Write([]byte("held"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return lockOut.String() == "held" }, 10*time.Second, 5*time.Millisecond)
	cmd := w.background("heal", dir)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(w.dir, "claims.json"))
		return err == nil && strings.Contains(string(text), dir)
	}, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, cmd.Stderr.(*buffer).String(), "stopped before a run began; the folder is untouched")
	w.clean(dir)
	require.NoError(t, in.Close())
	require.NoError(t, lock.Wait())
}

// A reader of the output that ends does not end the heal.
func TestHealOutlivesItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	r, out, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, "heal", dir, "--source", "engine")
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, out, out
	require.NoError(t, r.Close())
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	require.NoError(t, cmd.Wait())
	text, err := os.ReadFile(filepath.Join(dir, "calc.py"))
	require.NoError(t, err)
	require.Equal(t, calcFixed, string(text))
	w.clean(dir)
}

// The streams are removed while a run in place is interrupted: the next heal
// puts the folder back by the journal, says so, and heals.
func TestKilledAndTheStreamsAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(wrong)), "answer times=* "+`"I do not know."`)
	dir := w.project("calc")
	before := w.tree(dir)
	args := []string{"--source", "model", "--in-place", "--test", "python3 -m unittest"}
	r := w.with([]string{fault.EnvKill + "=rollback.journal.close.after"}, append([]string{"heal", dir}, args...)...)
	require.Equal(t, -1, r.exit, "the point was not reached: %s%s", r.out, r.err)
	require.NotEqual(t, before, w.tree(dir), "the candidate stands in the folder")
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "xdg", "nexus", "jetstream")))
	sum, r := w.heal(dir, args...)
	require.Contains(t, r.out, "put back by its journal alone")
	require.Equal(t, run.NeedsHumanReview, sum.State, r.out)
	require.Equal(t, before, sum.BaseTree)
	require.Equal(t, before, w.tree(dir))
	w.clean(dir)
}

// Two state folders below two XDG_STATE_HOMEs see each other's claims, and a
// registry that cannot be read is told and left as it is.
func TestHealAndTheRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	cmd := w.hung(dir)
	r := w.with([]string{"XDG_STATE_HOME=" + filepath.Join(w.dir, "other")}, "heal", dir)
	require.Equal(t, 1, r.exit, r.out)
	require.Regexp(t, `is busy: run [a-z2-7]{26} works on`, r.err)
	claims := filepath.Join(w.dir, "claims.json")
	whole, err := os.ReadFile(claims)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(claims, whole[:len(whole)/2], 0o600))
	r = w.nexus("heal", dir, "--state", filepath.Join(w.dir, "third"))
	require.Equal(t, 1, r.exit, r.out)
	require.Contains(t, r.err, claims+" says which folders runs work on, and cannot be understood. It was not changed")
	half, err := os.ReadFile(claims)
	require.NoError(t, err)
	require.Equal(t, string(whole[:len(whole)/2]), string(half))
	// The run under way ends as ever; its claim is there again with the file.
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), cmd.Stderr.(*buffer).String())
	require.Contains(t, cmd.Stderr.(*buffer).String(), claims)
	require.NoError(t, os.WriteFile(claims, whole, 0o600))
	sum, r := w.heal(dir, "--source", "engine")
	require.Equal(t, run.Approved, sum.State, r.out)
	w.clean(dir)
}
