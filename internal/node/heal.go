package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/oklog/ulid/v2"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Display shows a heal to whoever waits for it.
type Display interface {
	// Note tells a sentence about the command itself.
	Note(text string)
	// Warn tells an error that changes nothing of the run.
	Warn(err error)
	// Event shows an event of the run's log and the state after it.
	Event(ev run.Event, s run.State)
	// Result shows how the run ended, as soon as that is known.
	Result(sum run.Summary)
}

// Heal is one heal of a folder, as the process that waits for it goes through
// it: claim the folder; open the bus; continue or end the run that an earlier
// process left on the folder; hand the task in; follow the run; give the folder
// back; stay for others. When the bus is lost in the middle, Run opens it again
// and goes on from there.
type Heal struct {
	cfg  Config
	task wire.Heal
	show Display
	// key makes the task one, however often it is published.
	key  string
	node *Node
	// owner is the other process that runs the bus; 0 when this one does, or an
	// external server.
	owner  int
	course course
	// submitted is true once the task may be in the queue: from then on a stop
	// cancels the run, and the claim stays.
	submitted bool
	// joined is the run that is followed once its log has begun, seen its
	// newest event that was shown, and stopping is closed to cancel it.
	joined   string
	seen     int
	stopping chan struct{}
}

// NewHeal makes a heal that this process drives, or says why the task is
// refused. show is used from several goroutines.
func NewHeal(cfg Config, task wire.Heal, show Display) (*Heal, error) {
	start, err := rollback.ProcessStart(os.Getpid())
	if err != nil {
		return nil, err
	}
	task.Home = cfg.Rules.Home
	task.Driver = &run.Driver{PID: os.Getpid(), Start: start, Host: task.Home}
	if _, err := cfg.Rules.Admit(tenantLocal, task); err != nil {
		return nil, err
	}
	cfg.Driver = task.Driver
	return &Heal{cfg: cfg, task: task, show: show, key: ulid.Make().String(), course: newCourse(task.Dir)}, nil
}

// reopens bounds how often a heal opens the bus again because the process that
// ran it has ended. Whoever comes first runs it from then on.
const reopens = 5

// ErrStopped says that Stop came before the run began.
var ErrStopped = errors.New("stopped before a run began; the folder is untouched")

// Run heals the folder and returns how the run ended. It must be called once.
// ctx bounds everything; to end a run in an orderly way call Stop.
func (h *Heal) Run(ctx context.Context) (run.Summary, error) {
	id := wire.RunID(tenantLocal, "key", h.key)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := h.course.enter(stageStarting, id, cancel); err != nil {
		return run.Summary{}, err
	}
	prev, err := h.claim(id)
	if err != nil {
		return run.Summary{}, err
	}
	h.course.inherit(prev)
	var sum run.Summary
	for range reopens {
		sum, err = h.once(ctx, starting, id, prev)
		if !errors.Is(err, bus.ErrLost) {
			break
		}
		switch {
		case h.joined != "" && h.owner != 0:
			h.show.Note(fmt.Sprintf("process %d, which ran the bus, has ended; run %s goes on without it", h.owner, h.joined))
		case h.joined != "":
			h.show.Note("the connection to the bus is lost; trying once more")
		}
	}
	if errors.Is(err, bus.ErrLost) {
		err = fmt.Errorf("%w; run 'nexus heal %s' again to continue run %s", err, h.task.Dir, h.course.run())
	}
	return sum, err
}

// once heals with one connection to the bus. starting ends when the heal is
// stopped before its run begins.
func (h *Heal) once(ctx, starting context.Context, id string, prev *rollback.Claim) (sum run.Summary, err error) {
	if h.node, err = Open(starting, h.cfg); err != nil {
		return sum, h.unstarted(starting, id, prev, err)
	}
	var attached bool
	if h.owner, attached = h.node.Attached(); attached && h.task.Policy != "" {
		h.show.Note(fmt.Sprintf("process %d judges by its own rules; those of --policy are added to them", h.owner))
	}
	defer func() {
		if err != nil && h.node.Bus().IsLost() && !errors.Is(err, bus.ErrLost) {
			err = fmt.Errorf("%w (%w)", bus.ErrLost, err)
		}
		if errClose := h.node.Close(); errClose != nil && err == nil {
			h.show.Warn(errClose)
		}
	}()
	adopt := h.joined
	if adopt == "" && prev != nil {
		adopt = prev.Run
	}
	if err := h.node.Start(starting, adopt, false); err != nil {
		return sum, h.unstarted(starting, id, prev, err)
	}
	if h.joined != "" {
		s, err := h.watch(ctx, h.joined, h.event)
		return h.finish(ctx, s, err)
	}
	if prev != nil {
		s, err := h.resume(ctx, id, *prev)
		if err != nil || s.Ended != nil {
			return h.finish(ctx, s, err)
		}
	}
	if !h.submitted {
		if err := h.running(id); err != nil {
			return sum, errors.Join(err, h.cfg.Claims.Release(id))
		}
	}
	h.submitted = true
	if _, err := h.node.Bus().Submit(ctx, tenantLocal, h.key, h.task); err != nil {
		return sum, err
	}
	s, err := h.watch(ctx, id, h.event)
	if errors.Is(err, errRefused) {
		err = errors.Join(err, h.cfg.Claims.Release(id))
	}
	return h.finish(ctx, s, err)
}

// running notes that a run of this heal must be ended from now on.
func (h *Heal) running(id string) error {
	stopping := make(chan struct{})
	h.stopping = stopping
	return h.course.enter(stageRunning, id, func() { close(stopping) })
}

// event shows an event of the run that this heal is about. A run that is
// followed on another bus is read from its first event on again.
func (h *Heal) event(ev run.Event, s run.State) {
	h.joined = s.ID
	if ev.N > h.seen {
		h.seen = ev.N
		h.show.Event(ev, s)
	}
}

// unstarted gives the folder back after a start that failed; the claim of an
// interrupted run stays.
func (h *Heal) unstarted(starting context.Context, id string, prev *rollback.Claim, err error) error {
	if h.submitted || h.joined != "" {
		return fmt.Errorf("%w; run %s has not ended: run 'nexus heal %s' again to continue it", err, h.course.run(), h.task.Dir)
	}
	if starting.Err() != nil {
		err = ErrStopped
	}
	if prev != nil {
		return fmt.Errorf("%w; run %s, which was interrupted, has still to be ended: run 'nexus heal %s' again", err, prev.Run, h.task.Dir)
	}
	return errors.Join(err, h.cfg.Claims.Release(id))
}
