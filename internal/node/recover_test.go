package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// second is another project of the same place.
func (p *place) second() *place {
	p.t.Helper()
	q := &place{t: p.t, cfg: p.cfg, dir: filepath.Join(filepath.Dir(p.dir), "second")}
	q.write("check.sh", "grep -q good answer.txt\n")
	q.write("answer.txt", "bad\n")
	return q
}

// TestRecoverParksAndEnds: the runs of dead processes on other folders are
// parked, or ended where a worker may have written; nobody works on them.
func TestRecoverParksAndEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	parked := p.interrupted(p.task(), run.Debugger)
	q := p.second()
	task := q.task()
	task.InPlace = true
	ended := q.interrupted(task, run.Debugger)
	before := q.tree()

	n := p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", false))
	require.NoError(t, n.AwaitOthers(t.Context(), func(int) {}))
	s, err := n.state(t.Context(), parked)
	require.NoError(t, err)
	require.True(t, s.Parked)
	require.Empty(t, s.Attempts[0].Status, "nobody has worked on it")
	s, err = n.state(t.Context(), ended)
	require.NoError(t, err)
	require.Equal(t, run.NeedsHumanReview, s.Ended.State)
	require.True(t, s.Settled.Proven)
	require.NoError(t, n.Close())
	require.Equal(t, before, q.tree())
	require.Equal(t, []string{parked}, p.claims(), "a parked run keeps its folder")

	h, d := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, parked, sum.Run)
	require.Contains(t, d.notes[0], "continuing run "+parked)
	require.Equal(t, run.NeedsHumanReview, sum.State)
}

// TestRecoverAdopts: the run that is asked for goes on with this process as
// its driver.
func TestRecoverAdopts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	id := p.interrupted(p.task(), run.Debugger)
	d, end := driver(t)
	defer end()
	n := p.open(func(c *Config) { c.Driver = &d })
	require.NoError(t, n.Start(t.Context(), id, false))
	require.NoError(t, n.Bus().Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return !s.Closed }))
	s, err := n.state(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, d, *s.Task.Driver)
	require.NoError(t, n.Close())
}

// TestServiceDrivesWhatNobodyDrives: runs that other systems asked for go on
// under a service, and are parked by any other command.
func TestServiceDrivesWhatNobodyDrives(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.open(func(c *Config) { c.Workers = []run.Worker{run.Snapshot} })
	require.NoError(t, n.Start(t.Context(), "", true))
	id, err := n.Bus().Submit(t.Context(), "local", "k", p.task())
	require.NoError(t, err)
	require.NoError(t, n.Bus().Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return s.Step() != "test" }))
	require.NoError(t, n.Close())

	n = p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", false))
	require.NoError(t, n.AwaitOthers(t.Context(), func(int) {}))
	s, err := n.state(t.Context(), id)
	require.NoError(t, err)
	require.True(t, s.Parked)
	require.NoError(t, n.Close())

	n = p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", true))
	require.NoError(t, n.Bus().Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return !s.Closed }))
	require.NoError(t, n.Close())
	require.Empty(t, p.claims())
}

// TestOwnerStaysForOthers: an owner that is done waits for a run that a live
// process waits for, and ends or parks it when that process dies.
func TestOwnerStaysForOthers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d, end := driver(t)
	defer end()
	n := p.open(func(c *Config) { c.Workers = []run.Worker{run.Snapshot} })
	require.NoError(t, n.Start(t.Context(), "", false))
	task := p.task()
	task.Home, task.Driver = "here", &d
	id, err := n.Bus().Submit(t.Context(), "local", "k", task)
	require.NoError(t, err)
	require.NoError(t, n.Bus().Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return s.Step() != "test" }))

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, n.AwaitOthers(ctx, func(open int) {
		require.Equal(t, 1, open)
		cancel()
	}), ErrOthers, "its driver lives")
	told := 0
	require.NoError(t, n.AwaitOthers(t.Context(), func(int) { told++; end() }))
	require.Equal(t, 1, told)
	s, err := n.state(t.Context(), id)
	require.NoError(t, err)
	require.True(t, s.Parked)
	require.NoError(t, n.Close())
}

// TestOwnerLeavesWhatCameLater: an owner that is done stays for the runs that
// were open then, not for those that began while it stayed.
func TestOwnerLeavesWhatCameLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d, end := driver(t)
	defer end()
	n := p.open(func(c *Config) { c.Workers = []run.Worker{run.Snapshot} })
	require.NoError(t, n.Start(t.Context(), "", false))
	task := p.task()
	task.Home, task.Driver = "here", &d
	waits := func(key string) string {
		id, err := n.Bus().Submit(t.Context(), "local", key, task)
		require.NoError(t, err)
		require.NoError(t, n.Bus().Follow(t.Context(), id, func(_ run.Event, s run.State) bool { return s.N < 1 }))
		return id
	}
	first := waits("first")
	later := ""
	task.Dir = newPlace(t).dir
	require.NoError(t, n.AwaitOthers(t.Context(), func(int) {
		later = waits("later")
		require.NoError(t, n.Bus().Order(t.Context(), first, run.Order{Kind: run.OrderPark, Reason: "enough"}))
	}))
	s, err := n.state(t.Context(), later)
	require.NoError(t, err)
	require.Nil(t, s.Ended)
	require.False(t, s.Parked)
	require.NoError(t, n.Close())
}

// TestAttachedNodeDrivesNothing: a second process of a state folder is a
// client of the first.
func TestAttachedNodeDrivesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", false))
	c := p.open(nil)
	pid, attached := c.Attached()
	require.True(t, attached)
	require.Equal(t, os.Getpid(), pid)
	require.NoError(t, c.Start(t.Context(), "", false))
	require.NoError(t, c.AwaitOthers(t.Context(), nil))
	require.Empty(t, c.Addr())
	p.write("answer.txt", "good\n")
	h, _ := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Approved, sum.State)
	require.NoError(t, c.Close())
	require.NoError(t, n.Close())
}

// TestDeadCommandsTaskIsRefused: nobody waits for a task whose command died
// while it was in the queue.
func TestDeadCommandsTaskIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d, end := driver(t)
	end()
	n := p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", false))
	task := p.task()
	task.Home, task.Driver = "here", &d
	id, err := n.Bus().Submit(t.Context(), "local", "k", task)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		l, err := n.Bus().Refusal(context.Background(), id)
		return err == nil && l != nil && l.Reason == "the command that asked for it has ended"
	}, patience, pollOthers)
	require.NoError(t, n.Close())
}

// TestSettledClaimIsReleased: a crash between the end of a run and the release
// of its folder leaves a claim that means nothing.
func TestSettledClaimIsReleased(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h, _ := p.heal(p.task())
	sum, err := h.Run(t.Context())
	require.NoError(t, err)
	d, end := driver(t)
	end()
	p.claimed(p.dir, sum.Run, d)
	n := p.open(nil)
	require.NoError(t, n.Start(t.Context(), "", false))
	require.NoError(t, n.Close())
	require.Empty(t, p.claims())
}

// TestRefusedByTheIntake: what only the process that runs the bus knows is
// told to the command, and the folder is given back.
func TestRefusedByTheIntake(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	n := p.open(func(c *Config) { c.Rules.Roots = []string{p.cfg.State} })
	require.NoError(t, n.Start(t.Context(), "", true))
	h, _ := p.heal(wire.Heal{Dir: p.dir})
	_, err := h.Run(t.Context())
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "lies below none of the allowed folders")
	require.Empty(t, p.claims())
	require.NoError(t, n.Close())
}
