package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Worker describes a consumer that answers asks.
type Worker struct {
	Name run.Worker
	// Home binds the worker to the projects of one host; empty serves all.
	Home string
	// Slots is how many asks it handles at the same time; default 1.
	Slots int
	// Cap is the hard limit of one attempt; default 15 minutes.
	Cap time.Duration
	// Handle answers one ask. It must stop when ctx ends: the process stops,
	// the run has ended, the cap is reached, or the progress that it promised
	// did not come (see Job.Progress). It may be called again for
	// the same ask after a crash.
	Handle func(ctx context.Context, job Job) (run.Answer, error)
	// Close is called when the worker stops. Optional.
	Close func() error
}

// Job is one ask in a worker's hands.
type Job struct {
	Run string
	// N is the number of the ask.
	N     int
	Ask   run.Ask
	Log   zerolog.Logger
	bus   *Bus
	pulse *pulse
}

// Progress says that the work has moved on, and that it will say so again
// within next. The heartbeat of an ask lasts until then: a handler that is
// stuck loses the ask before its cap is reached. One that never calls it has
// until its cap; so has a Job that came from no bus.
func (j Job) Progress(next time.Duration) {
	if j.pulse != nil {
		j.pulse.extend(time.Now(), next)
	}
}

// Pending reads the log again and reports whether the run still waits for
// this ask. Whoever is about to write a project calls it under the lock of
// the folder.
func (j Job) Pending(ctx context.Context) (bool, error) {
	s, err := j.State(ctx)
	return err == nil && s.Waits(j.N), err
}

// State folds the run's log as it is now.
func (j Job) State(ctx context.Context) (run.State, error) {
	l, err := j.bus.currentLog(ctx, j.Run)
	if err != nil {
		return run.State{}, err
	}
	return l.State()
}

const (
	defaultCap   = 15 * time.Minute
	workerPrefix = "worker-"
)

// durable is the name of the worker's consumer.
func (w Worker) durable() string {
	if w.Home == "" {
		return workerPrefix + string(w.Name)
	}
	return workerPrefix + string(w.Name) + "-" + w.Home
}

// ProvisionWorker makes the worker's durable consumer. It needs the role
// core; a worker in another process finds its consumer there.
func (b *Bus) ProvisionWorker(ctx context.Context, w Worker) error {
	filters := []string{wire.NameFilter(string(w.Name))}
	if w.Name == run.Rollback {
		filters = append(filters, wire.NameFilter(run.Ended{}.Name()))
	}
	return b.consumer(ctx, streamRuns, jetstream.ConsumerConfig{
		Durable: w.durable(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.tune.ackWait,
		MaxDeliver: b.tune.maxDeliver, MaxAckPending: 1024, FilterSubjects: filters,
	})
}

// Work handles the worker's asks until ctx ends, and returns nil then. Asks
// in hand are given back at once, which costs them no attempt. It fails with
// ErrLost when the bus is gone.
func (b *Bus) Work(ctx context.Context, w Worker) (err error) {
	if w.Close != nil {
		defer func() { err = errors.Join(err, w.Close()) }()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer b.onLost(func() { cancel(ErrLost) })()
	if err := b.workAt(ctx, w); err != nil {
		return b.orLost(err)
	}
	if errors.Is(context.Cause(ctx), ErrLost) {
		return ErrLost
	}
	return nil
}

func (b *Bus) workAt(ctx context.Context, w Worker) error {
	cons, err := b.js.Consumer(ctx, streamRuns, w.durable())
	if err != nil {
		return ended(ctx, fmt.Errorf("bus: worker %s: %w", w.Name, err))
	}
	if w.Cap == 0 {
		w.Cap = defaultCap
	}
	// The server's clock, as the events' times are the server's.
	d := &desk{bus: b, w: w, since: cons.CachedInfo().TimeStamp}
	g, ctx := errgroup.WithContext(ctx)
	for range max(w.Slots, 1) {
		// Each slot fetches one ask when it is free: no ask waits behind
		// another one while its time runs out.
		g.Go(func() error { return b.feed(ctx, feeder{cons: cons, ahead: 1, do: d.serve}) })
	}
	return g.Wait()
}
