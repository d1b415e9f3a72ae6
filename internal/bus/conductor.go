package bus

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// ConductorConfig is what a conductor is told.
type ConductorConfig struct {
	// Intake turns a received task into the task of a run, or says why it is
	// refused. Every way in passes it. It is not asked again about a task
	// whose run is open.
	Intake func(ctx context.Context, tenant string, h wire.Heal) (run.Task, error)
	// Settled is called after a run has settled; it may be called again for
	// the same run, also after a restart. Optional.
	Settled func(run.State)
}

// Conductor is the only writer of RUNS: it turns tasks, outcomes and fired
// timers into events. Several may run; the compare-and-set keeps them apart.
type Conductor struct {
	bus   *Bus
	cfg   ConductorConfig
	tasks *wire.Tasks
	lanes []*lane
}

const (
	// laneCount is how many runs are worked on at the same time. All
	// messages of a run go through one lane, in order.
	laneCount = 8
	// laneQueue is how many messages wait for a lane, so that one slow run
	// does not hold up the others.
	laneQueue = 16
	// aheadOutcomes and aheadTimers are fetched before they are needed; tasks
	// are not, so that they can wait in their stream.
	aheadOutcomes = 64
	aheadTimers   = 16
)

// NewConductor makes a conductor on the connection of role core.
func NewConductor(b *Bus, cfg ConductorConfig) (*Conductor, error) {
	tasks, err := wire.NewTasks()
	if err != nil {
		return nil, err
	}
	c := &Conductor{bus: b, cfg: cfg, tasks: tasks}
	for range laneCount {
		c.lanes = append(c.lanes, c.lane())
	}
	return c, nil
}

func (c *Conductor) lane() *lane {
	return &lane{c: c, runs: map[string]*entry{}, in: make(chan work, laneQueue)}
}

// Run consumes until ctx ends, and returns nil then. What was not
// acknowledged is given back for the next conductor.
func (c *Conductor) Run(ctx context.Context) error {
	all := ctx
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range c.lanes {
		g.Go(func() error { return l.run(ctx) })
	}
	for _, f := range []struct {
		stream, durable string
		feeder
	}{
		{streamTasks, durableConductor, feeder{ahead: 1, gate: c.bus.awaitRoom, do: c.task}},
		{streamOutcomes, durableConductor, feeder{ahead: aheadOutcomes, do: c.outcome}},
		{streamTimers, durableConductor, feeder{ahead: aheadTimers, do: c.timer}},
		{streamAdvisories, durableSweeper, feeder{ahead: 1, do: c.bus.sweep}},
	} {
		cons, err := c.bus.js.Consumer(ctx, f.stream, f.durable)
		if err != nil {
			g.Go(func() error { return ended(all, fmt.Errorf("bus: consumer %s of %s: %w", f.durable, f.stream, err)) })
			break
		}
		f.cons = cons
		g.Go(func() error { return c.bus.feed(ctx, f.feeder) })
	}
	err := g.Wait()
	for _, l := range c.lanes {
		l.giveBack(ctx)
	}
	return err
}

// dispatch hands work on a run to its lane.
func (c *Conductor) dispatch(ctx context.Context, id string, w work) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never returns an error
	select {
	case c.lanes[h.Sum32()%laneCount].in <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// task opens a run for a task, once, however often the task is published.
func (c *Conductor) task(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bus: task: %w", err)
	}
	if full, err := c.bus.Full(ctx); err == nil && full { // since it was asked for
		return &laterError{c.bus.tune.fullFor}
	}
	tenant, kind, err := wire.ParseTask(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	got, err := c.tasks.Decode(wire.Header(msg.Headers()), kind, msg.Data())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	id := taskRun(tenant, got.Key, meta.Timestamp, meta.Sequence.Stream)
	return c.dispatch(ctx, id, work{msg, func(ctx context.Context, l *lane) error {
		err := l.open(ctx, id, msg, func() (run.Task, error) { return c.cfg.Intake(ctx, tenant, got.Heal) })
		if hopeless(err) {
			return c.bus.unfit(ctx, msg, id, 0, err)
		}
		return err
	}})
}

// refuse buries a task that the rules do not let in.
func (b *Bus) refuse(ctx context.Context, msg jetstream.Msg, id string, cause error) error {
	err := b.bury(ctx, Letter{
		Category: "refused", Reason: cause.Error(), Run: id, Subject: msg.Subject(),
		At: time.Now().UTC(), Payload: msg.Data(),
	})
	if err != nil {
		return err
	}
	if err := msg.TermWithReason("refused"); err != nil {
		return fmt.Errorf("bus: refuse: %w", err)
	}
	return errSettled
}

// outcome records a fact about a run.
func (c *Conductor) outcome(ctx context.Context, msg jetstream.Msg) error {
	addr, err := wire.ParseOutcome(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	o, err := wire.DecodeOutcome(msg.Data())
	if err == nil && (o.Order != nil) != (addr.Name == string(run.ByOperator)) {
		err = errors.New("orders come from the operator, answers from workers")
	}
	if err == nil && (o.Order != nil) != (addr.N == 0) {
		err = errors.New("an order answers no ask, every other outcome does")
	}
	if err != nil {
		return c.bus.poison(ctx, msg, addr.Run, addr.N, err)
	}
	fact := run.Fact{By: run.By(addr.Name), Ask: addr.N, Answer: o.Answer, Failure: o.Failure, Order: o.Order}
	return c.fact(ctx, addr.Run, msg, fact)
}

// timer records that a timer fired, if the run still waits for it.
func (c *Conductor) timer(ctx context.Context, msg jetstream.Msg) error {
	id, name, err := wire.ParseTimer(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	return c.fact(ctx, id, msg, run.Fact{By: run.ByClock, Timer: name})
}

func (c *Conductor) fact(ctx context.Context, id string, msg jetstream.Msg, f run.Fact) error {
	return c.dispatch(ctx, id, work{msg, func(ctx context.Context, l *lane) error {
		err := l.advance(ctx, id, &f)
		switch {
		case errors.Is(err, errUnknownRun):
			return l.stray(msg, f, err)
		case hopeless(err):
			return c.bus.unfit(ctx, msg, id, f.Ask, err)
		}
		return err
	}})
}

// Order tells a run something before Run is called; an owner does so for the
// runs that it finds.
func (c *Conductor) Order(ctx context.Context, id string, o run.Order) error {
	return c.lane().advance(ctx, id, &run.Fact{By: run.ByOperator, Order: &o})
}

// Recover completes what a crash left undone in an open run: it appends the
// decided events that the log lacks and arms the timers.
func (c *Conductor) Recover(ctx context.Context, id string) error {
	return c.lane().advance(ctx, id, nil)
}
