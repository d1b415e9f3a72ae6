package node

import (
	"fmt"
	"sync"

	"nexuscore.dev/nexus/internal/rollback"
)

// stage is how far a heal has come, as far as a stop is concerned.
type stage int

const (
	// stageStarting: no run of this heal is open or in the queue.
	stageStarting stage = iota
	// stageRunning: a run is, and must be ended.
	stageRunning
	// stageStaying: the run is over; this process serves others.
	stageStaying
)

// course is what a heal does now and how that is stopped. It is used from
// several goroutines.
type course struct {
	dir string

	mu    sync.Mutex
	stage stage
	// id is the run in work; prev the interrupted one that comes first.
	id, prev string
	stop     func()
	stopped  bool
}

func newCourse(dir string) course { return course{dir: dir, stop: func() {}} }

// enter begins a stage, in which a stop calls stop. It fails with ErrStopped
// when a stop was asked for already; staying is a stage of its own, which the
// stop of the run does not end.
func (c *course) enter(s stage, id string, stop func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == stageStaying {
		c.stopped = false
	}
	if c.stopped {
		return ErrStopped
	}
	c.stage, c.id, c.stop = s, id, stop
	return nil
}

// inherit notes the run that must be ended first.
func (c *course) inherit(prev *rollback.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if prev != nil {
		c.prev = prev.Run
	}
}

func (c *course) run() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

func (c *course) isStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// Stop asks the heal to end in an orderly way: before its run is open nothing
// is begun; an open run is cancelled, which puts the folder back as it was; a
// process that stays for others leaves them. It returns at once. It reports
// false when that was asked for before: then all that is left is to leave, and
// Remains says what that means.
func (h *Heal) Stop() bool {
	c := &h.course
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.stopped = true
	c.stop()
	return true
}

// Ending says what Stop would mean now.
func (h *Heal) Ending() string {
	c := &h.course
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.stage {
	case stageStaying:
		return "this heal is done; the commands that wait for other runs go on without this process"
	case stageRunning:
		return "the run ends and the folder is put back as it was"
	case stageStarting:
	}
	return "no run is begun"
}

// Remains says what is left to do when this process ends now.
func (h *Heal) Remains() string {
	c := &h.course
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stage == stageStaying:
		return "left at once: " + ErrOthers.Error()
	case c.stage == stageRunning:
		return fmt.Sprintf("left at once: run %s has not ended; 'nexus heal %s' continues it or puts the folder back", c.id, c.dir)
	case c.prev != "":
		return fmt.Sprintf("left at once: run %s, which was interrupted, has still to be ended; run 'nexus heal %s' again", c.prev, c.dir)
	}
	return "left at once: no run has begun, and the folder is untouched"
}
