package bus

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// ConductorConfig is what a conductor is told.
type ConductorConfig struct {
	// Intake turns a received task into the task of a run, or says why it is
	// refused. Every way in passes it.
	Intake func(tenant string, h wire.Heal) (run.Task, error)
	// Settled is called after a run has settled; it may be called again for
	// the same run. Optional.
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

// laneCount is how many runs are worked on at the same time. All messages of
// a run go through one lane, in order.
const laneCount = 8

// NewConductor makes a conductor on the connection of role core.
func NewConductor(b *Bus, cfg ConductorConfig) (*Conductor, error) {
	tasks, err := wire.NewTasks()
	if err != nil {
		return nil, err
	}
	c := &Conductor{bus: b, cfg: cfg, tasks: tasks}
	for range laneCount {
		c.lanes = append(c.lanes, &lane{c: c, runs: map[string]*entry{}, in: make(chan work)})
	}
	return c, nil
}

// work is one message for a lane; do must acknowledge it.
type work struct {
	msg jetstream.Msg
	do  func(ctx context.Context, l *lane) error
}

// Run consumes until ctx ends, and returns nil then. What was not
// acknowledged is delivered again to the next conductor.
func (c *Conductor) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range c.lanes {
		g.Go(func() error { return l.run(ctx) })
	}
	read := map[string]func(context.Context, jetstream.Msg) error{
		streamTasks: c.task, streamOutcomes: c.outcome, streamTimers: c.timer,
	}
	for stream, handle := range read {
		g.Go(func() error { return c.bus.consume(ctx, stream, durableConductor, handle) })
	}
	g.Go(func() error { return c.bus.consume(ctx, streamAdvisories, "sweeper", c.bus.sweep) })
	return g.Wait()
}

// pull options: few messages in flight, and a lost pull is noticed soon.
const (
	pullMessages  = 64
	pullExpiry    = 5 * time.Second
	pullHeartbeat = time.Second
	ackWait       = 15 * time.Second
	// retryDelay is how long a message rests that could not be handled
	// because the bus or the disk did not take the answer.
	retryDelay = time.Second
)

// consume hands the messages of a durable consumer to handle, one by one,
// until ctx ends. handle must acknowledge; an error gives the message back.
func (b *Bus) consume(ctx context.Context, stream, durable string, handle func(context.Context, jetstream.Msg) error) error {
	cons, err := b.js.Consumer(ctx, stream, durable)
	if err != nil {
		return fmt.Errorf("bus: consumer %s of %s: %w", durable, stream, err)
	}
	it, err := cons.Messages(jetstream.PullMaxMessages(pullMessages), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat))
	if err != nil {
		return fmt.Errorf("bus: consume %s: %w", stream, err)
	}
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	for {
		msg, err := it.Next()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			continue
		case err != nil:
			return fmt.Errorf("bus: consume %s: %w", stream, err)
		}
		if err := handle(ctx, msg); err != nil && ctx.Err() == nil {
			b.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("given back")
			if err := msg.NakWithDelay(retryDelay); err != nil {
				b.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("give back")
			}
		}
	}
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
	tenant, kind, err := wire.ParseTask(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	got, err := c.tasks.Decode(wire.Header(msg.Headers()), kind, msg.Data())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	key := got.Key
	if len(key) == 0 {
		key = []string{"sequence", meta.Timestamp.UTC().Format(time.RFC3339Nano), strconv.FormatUint(meta.Sequence.Stream, 10)}
	}
	id := wire.RunID(tenant, key...)
	task, err := c.cfg.Intake(tenant, got.Heal)
	if err != nil {
		return c.bus.refuse(ctx, msg, id, err)
	}
	return c.dispatch(ctx, id, work{msg, func(ctx context.Context, l *lane) error { return l.open(ctx, id, task) }})
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
	return msg.TermWithReason("refused")
}

// outcome records a fact about a run.
func (c *Conductor) outcome(ctx context.Context, msg jetstream.Msg) error {
	addr, err := wire.ParseOutcome(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	o, err := wire.DecodeOutcome(msg.Data())
	if err != nil {
		return c.bus.poison(ctx, msg, addr.Run, addr.N, err)
	}
	if (o.Order != nil) != (addr.Name == string(run.ByOperator)) {
		return c.bus.poison(ctx, msg, addr.Run, addr.N, errors.New("orders come from the operator, answers from workers"))
	}
	fact := run.Fact{By: run.By(addr.Name), Ask: addr.N, Answer: o.Answer, Failure: o.Failure, Order: o.Order}
	return c.dispatch(ctx, addr.Run, work{msg, func(ctx context.Context, l *lane) error { return l.advance(ctx, addr.Run, &fact) }})
}

// timer records that a timer fired, if the run still waits for it.
func (c *Conductor) timer(ctx context.Context, msg jetstream.Msg) error {
	id, name, err := wire.ParseTimer(msg.Subject())
	if err != nil {
		return c.bus.poison(ctx, msg, "", 0, err)
	}
	fact := run.Fact{By: run.ByClock, Timer: name}
	return c.dispatch(ctx, id, work{msg, func(ctx context.Context, l *lane) error { return l.advance(ctx, id, &fact) }})
}

// Order tells a run something before Run is called; an owner does so for the
// runs that it finds.
func (c *Conductor) Order(ctx context.Context, id string, o run.Order) error {
	l := &lane{c: c, runs: map[string]*entry{}}
	return l.advance(ctx, id, &run.Fact{By: run.ByOperator, Order: &o})
}

// Recover completes what a crash left undone in an open run: it appends the
// decided events that the log lacks and arms the timers.
func (c *Conductor) Recover(ctx context.Context, id string) error {
	l := &lane{c: c, runs: map[string]*entry{}}
	return l.advance(ctx, id, nil)
}

// sweep turns an advisory about a lost ask into a failure of its run, so that
// no run waits for ever.
func (b *Bus) sweep(ctx context.Context, msg jetstream.Msg) error {
	adv, err := parseAdvisory(msg.Data())
	if err != nil {
		return b.poison(ctx, msg, "", 0, err)
	}
	s, err := b.js.Stream(ctx, adv.Stream)
	if err != nil {
		return fmt.Errorf("bus: sweep: %w", err)
	}
	lost, err := s.GetMsg(ctx, adv.StreamSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return msg.DoubleAck(ctx) // its run was removed
	}
	if err != nil {
		return fmt.Errorf("bus: sweep: %w", err)
	}
	addr, err := wire.ParseEvent(lost.Subject)
	if err != nil {
		return b.poison(ctx, msg, "", 0, err)
	}
	reason := adv.text()
	letter := Letter{
		Category: "lost", Reason: reason, Run: addr.Run, Ask: addr.N, Worker: strings.TrimPrefix(adv.Consumer, "worker-"),
		Subject: lost.Subject, Stream: adv.Stream, Sequence: adv.StreamSeq, At: time.Now().UTC(), Payload: lost.Data,
	}
	if err := b.bury(ctx, letter); err != nil {
		return err
	}
	fail := wire.Outcome{Failure: &run.Failure{Category: "unexpected", Op: "sweeper", Message: reason}}
	if err := b.publishOutcome(ctx, string(run.BySweeper), addr.Run, addr.N, fail); err != nil {
		return err
	}
	return msg.DoubleAck(ctx)
}
