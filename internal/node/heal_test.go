package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

func TestHealOfAGreenFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("answer.txt", "good\n")
	before := p.tree()
	h, d := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Approved, sum.State, sum.Reason)
	require.Equal(t, before, p.tree())
	require.Equal(t, &sum, d.result)
	require.Equal(t, "opened", d.events[0])
	require.Equal(t, "closed", d.events[len(d.events)-1])
	require.Empty(t, d.warned)
	require.Empty(t, p.claims(), "the folder is given back")
	require.Contains(t, h.Remains(), "other runs are still open")
}

func TestHealThatFindsNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	before := p.tree()
	h, d := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.NeedsHumanReview, sum.State, sum.Reason)
	require.Equal(t, 2, d.result.Status())
	require.True(t, sum.Proven)
	require.Equal(t, before, p.tree())
	require.Empty(t, p.claims())
}

// TestBusyFolder: what another process works on is refused, and its claim
// stays as it is; so does one that cannot be read.
func TestBusyFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d, end := driver(t)
	defer end()
	p.claimed(p.dir, "theirs", d)
	h, _ := p.heal(p.task())
	_, err := h.Run(t.Context())
	var busy *rollback.BusyError
	require.ErrorAs(t, err, &busy)
	require.ErrorContains(t, err, "nexus run cancel theirs")
	require.Equal(t, []string{"theirs"}, p.claims())
	require.NoDirExists(t, filepath.Join(p.cfg.State, "jetstream"), "nothing was begun")

	torn := []byte(`{"v":1,"claims":[{"dir":"/x","ru`)
	require.NoError(t, os.WriteFile(p.cfg.Claims.Path, torn, 0o600))
	h, _ = p.heal(p.task())
	_, err = h.Run(t.Context())
	require.True(t, rollback.IsKind(err, rollback.KindRegistry), "%v", err)
	require.ErrorContains(t, err, p.cfg.Claims.Path)
	data, err := os.ReadFile(p.cfg.Claims.Path)
	require.NoError(t, err)
	require.Equal(t, torn, data, "nothing is lost")
}

// TestInterruptedRunGoesOn: the same settings continue the run of a dead
// process, others end it first.
func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	for _, step := range []run.Worker{run.Snapshot, run.Test, run.Debugger} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			id := p.interrupted(p.task(), step)
			before := p.tree()
			h, d := p.heal(p.task())
			sum, err := h.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, id, sum.Run)
			require.Equal(t, run.NeedsHumanReview, sum.State, sum.Reason)
			require.Contains(t, d.notes[0], "continuing run "+id+", which was interrupted at step "+string(step))
			require.Equal(t, before, p.tree())
			require.Empty(t, p.claims())
		})
	}
}

func TestInterruptedRunIsEndedFirst(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	id := p.interrupted(p.task(), run.Test)
	p.write("answer.txt", "good\n")
	other := p.task()
	other.Deliver = "none"
	h, d := p.heal(other)
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, id, sum.Run)
	require.Equal(t, run.Approved, sum.State)
	require.Contains(t, d.notes[0], "ending run "+id+" first")
	require.Empty(t, p.claims())
	s := p.state(id)
	require.Equal(t, run.NeedsHumanReview, s.Ended.State)
	require.True(t, s.Settled.Proven)
}

// TestInterruptedBeforeTheQueue: a process that died between its claim and
// its task has left nothing.
func TestInterruptedBeforeTheQueue(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("answer.txt", "good\n")
	d, end := driver(t)
	p.claimed(p.dir, "never", d)
	end()
	h, shown := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Approved, sum.State)
	require.Empty(t, shown.notes)
	require.Empty(t, p.claims())
}

// TestStateFolderIsGone: a run whose state folder was removed cannot be
// continued by anybody; that is an error once, and the folder is free again.
func TestStateFolderIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("answer.txt", "good\n")
	d, end := driver(t)
	p.claimed(p.dir, "old", d)
	end()
	p.cfg.State = filepath.Join(t.TempDir(), "new")
	p.cfg.Rules.State = p.cfg.State
	h, _ := p.heal(p.task())
	_, err := h.Run(t.Context())
	require.ErrorContains(t, err, "--state", "the old state folder is there and can continue it")
	all, err := p.cfg.Claims.List()
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(all[0].State))
	h, _ = p.heal(p.task())
	_, err = h.Run(t.Context())
	require.ErrorContains(t, err, "the state of run old, which was interrupted on this folder, is gone")
	require.Empty(t, p.claims(), "a person was told, and the folder is free")
	h, _ = p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Approved, sum.State)
}

// TestOwnStateFolderIsGone: the same where the new run has the folder that was
// removed.
func TestOwnStateFolderIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("answer.txt", "good\n")
	d, end := driver(t)
	p.claimed(p.dir, "old", d)
	end()
	require.NoError(t, os.RemoveAll(p.cfg.State))
	h, _ := p.heal(p.task())
	_, err := h.Run(t.Context())
	require.ErrorContains(t, err, "is gone")
	require.Empty(t, p.claims())
}

// TestStateFolderIsANewOne: the same where the command has made the folder
// again, as it does before it looks.
func TestStateFolderIsANewOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	id := p.interrupted(p.task(), run.Test)
	require.NoError(t, os.RemoveAll(p.cfg.State))
	dir, err := StateDir(p.cfg.State)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, homeFile), []byte("here"), 0o600))
	h, _ := p.heal(p.task())
	_, err = h.Run(t.Context())
	require.ErrorContains(t, err, "the state of run "+id+", which was interrupted on this folder, is gone")
	require.Empty(t, p.claims())
}

// started runs a heal, which must not fail, beside the test.
func started(t *testing.T, h *Heal) <-chan run.Summary {
	t.Helper()
	done := make(chan run.Summary, 1)
	go func() {
		sum, err := h.Run(t.Context())
		assert.NoError(t, err)
		done <- sum
	}()
	return done
}

// TestAttachedHealTakesOver: when the process that runs the bus ends, a heal
// that waits for its run goes on with it, and shows no event twice; a stop
// meanwhile still cancels the run.
func TestAttachedHealTakesOver(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{false, true} {
		p := newPlace(t)
		before := p.tree()
		owner := p.open(func(c *Config) { c.Workers = []run.Worker{run.Snapshot} })
		require.NoError(t, owner.Start(t.Context(), "", false))
		h, d := p.heal(p.task())
		done := started(t, h)
		d.until(t, string(run.Test))
		if stop {
			hold, err := rollback.Lock(p.dir) // the end of the run has to wait for it
			require.NoError(t, err)
			require.NoError(t, owner.Close())
			require.True(t, h.Stop())
			require.NoError(t, hold())
		} else {
			require.NoError(t, owner.Close())
		}
		sum := <-done
		require.Equal(t, run.NeedsHumanReview, sum.State, sum.Reason)
		if stop {
			require.Contains(t, sum.Reason, "cancelled by the user")
		}
		require.Equal(t, before, p.tree())
		require.Empty(t, p.claims())
		require.Contains(t, d.notes[0], "which ran the bus, has ended; run "+sum.Run+" goes on without it")
		require.Equal(t, 1, strings.Count(strings.Join(d.events, " "), "opened"))
	}
}

// TestStopWhileReopening: the task is in the queue when the process that runs
// the bus ends; a stop then cancels the run, whoever opens it.
func TestStopWhileReopening(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	before := p.tree()
	owner := p.open(func(c *Config) { c.NoConductor = true }) // the task stays in the queue
	require.NoError(t, owner.Start(t.Context(), "", false))
	h, _ := p.heal(p.task())
	done := started(t, h)
	require.Eventually(t, func() bool {
		n, err := owner.Bus().QueuedTasks(t.Context())
		return err == nil && n == 1
	}, patience, time.Millisecond)
	require.Contains(t, h.Ending(), "the folder is put back")
	require.True(t, h.Stop())
	require.NoError(t, owner.Close())
	sum := <-done
	require.Equal(t, run.NeedsHumanReview, sum.State)
	require.Contains(t, sum.Reason, "cancelled by the user")
	require.Empty(t, sum.Tries)
	require.Equal(t, before, p.tree())
	require.Empty(t, p.claims())
}

// TestStopBeforeTheRun: a stop while the bus is not reached yet begins
// nothing, and says so.
func TestStopBeforeTheRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	owner, err := bus.Own(p.cfg.State) // somebody owns the state folder and does not answer
	require.NoError(t, err)
	defer func() { require.NoError(t, owner.Release()) }()
	h, _ := p.heal(p.task())
	done := make(chan error, 1)
	go func() {
		_, err := h.Run(context.Background())
		done <- err
	}()
	require.Eventually(t, func() bool { return len(p.claims()) == 1 }, patience, time.Millisecond)
	require.Contains(t, h.Remains(), "no run has begun")
	require.True(t, h.Stop())
	require.False(t, h.Stop())
	require.ErrorIs(t, <-done, ErrStopped)
	require.Empty(t, p.claims(), "the folder is given back")
}

// TestStopWithAnInterruptedRun keeps the claim of the run that comes first.
func TestStopWithAnInterruptedRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	id := p.interrupted(p.task(), run.Test)
	owner, err := bus.Own(p.cfg.State)
	require.NoError(t, err)
	h, _ := p.heal(p.task())
	done := make(chan error, 1)
	go func() {
		_, err := h.Run(context.Background())
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(h.Remains(), id) }, patience, time.Millisecond)
	require.Contains(t, h.Remains(), id)
	require.True(t, h.Stop())
	err = <-done
	require.ErrorIs(t, err, ErrStopped)
	require.ErrorContains(t, err, id)
	require.Equal(t, []string{id}, p.claims())
	require.NoError(t, owner.Release())
	d, end := driver(t) // this process, had it ended
	end()
	p.claimed(p.dir, id, d)
	h, _ = p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, id, sum.Run)
}

// TestStopOfARun cancels it and puts the folder back; what is left to do
// changes with what the heal does.
func TestStopOfARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("check.sh", "echo waits; sleep 600\n")
	before := p.tree()
	h, d := p.heal(p.task())
	done := make(chan run.Summary, 1)
	go func() {
		sum, _ := h.Run(context.Background())
		done <- sum
	}()
	d.until(t, string(run.Test))
	require.True(t, h.Stop())
	require.False(t, h.Stop(), "the second one can only leave")
	require.Contains(t, h.Remains(), "has not ended")
	sum := <-done
	require.Equal(t, run.NeedsHumanReview, sum.State)
	require.Contains(t, sum.Reason, "cancelled by the user")
	require.True(t, sum.Proven)
	require.Equal(t, before, p.tree())
	require.Empty(t, p.claims())
}

// TestStopAtOnce: a stop at the very beginning is no race.
func TestStopAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h, _ := p.heal(p.task())
	require.True(t, h.Stop())
	_, err := h.Run(t.Context())
	require.ErrorIs(t, err, ErrStopped)
	require.Empty(t, p.claims())
}

// TestBusyOwner: nobody works beside a process that must be alone, and hears
// what it does; afterwards the state folder is as free as before.
func TestBusyOwner(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	alone := p.cfg
	alone.Busy = "tidies up"
	n, err := Open(t.Context(), alone)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, p.cfg)
	require.ErrorIs(t, err, errBusy)
	require.ErrorContains(t, err, fmt.Sprintf("process %d tidies up", os.Getpid()))
	require.NoError(t, n.Close())
	n, err = Open(t.Context(), p.cfg)
	require.NoError(t, err)
	require.NoError(t, n.Close())
}
