package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/fault"
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
	// Handle answers one ask. It must stop when ctx ends, and may be called
	// again for the same ask after a crash.
	Handle func(ctx context.Context, job Job) (run.Answer, error)
	// Close is called when the worker stops. Optional.
	Close func() error
}

// Job is one ask in a worker's hands.
type Job struct {
	Run string
	// N is the number of the ask.
	N   int
	Ask run.Ask
	Log zerolog.Logger
	bus *Bus
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
	l, err := j.bus.ReadLog(ctx, j.Run)
	if err != nil {
		return run.State{}, err
	}
	return l.State()
}

const (
	defaultCap = 15 * time.Minute
	// heartbeat is how often a worker in progress extends its claim.
	heartbeat = 4 * time.Second
	// maxDeliver guards against an ask that kills its worker each time.
	maxDeliver = 6
	// maxOutcome is the largest outcome; the server takes 1 MiB.
	maxOutcome = 900 << 10
)

// durable is the name of the worker's consumer.
func (w Worker) durable() string {
	if w.Home == "" {
		return "worker-" + string(w.Name)
	}
	return "worker-" + string(w.Name) + "-" + w.Home
}

// ProvisionWorker makes the worker's durable consumer. It needs the role
// core; a worker in another process finds its consumer there.
func (b *Bus) ProvisionWorker(ctx context.Context, w Worker) error {
	filters := []string{wire.NameFilter(string(w.Name))}
	if w.Name == run.Rollback {
		filters = append(filters, wire.NameFilter(run.Ended{}.Name()))
	}
	return b.consumer(ctx, streamRuns, jetstream.ConsumerConfig{
		Durable: w.durable(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxDeliver: maxDeliver, MaxAckPending: 1024, FilterSubjects: filters,
	})
}

// Work handles the worker's asks until ctx ends, and returns nil then. Asks
// in hand are given back at once, which costs them no attempt.
func (b *Bus) Work(ctx context.Context, w Worker) (err error) {
	if w.Close != nil {
		defer func() { err = errors.Join(err, w.Close()) }()
	}
	cons, err := b.js.Consumer(ctx, streamRuns, w.durable())
	if err != nil {
		return fmt.Errorf("bus: worker %s: %w", w.Name, err)
	}
	if w.Cap == 0 {
		w.Cap = defaultCap
	}
	ends, err := b.watchEnds()
	if err != nil {
		return fmt.Errorf("bus: worker %s: %w", w.Name, err)
	}
	defer ends.close(b.log)
	g, ctx := errgroup.WithContext(ctx)
	started := time.Now()
	for range max(w.Slots, 1) {
		g.Go(func() error { return b.slot(ctx, cons, w, ends, started) })
	}
	return g.Wait()
}

// slot takes one ask at a time: nothing is prefetched, so no ask waits behind
// another while its time runs out.
func (b *Bus) slot(ctx context.Context, cons jetstream.Consumer, w Worker, ends *ends, started time.Time) error {
	for ctx.Err() == nil {
		msg, err := next(ctx, cons)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded),
			errors.Is(err, jetstream.ErrNoHeartbeat), errors.Is(err, jetstream.ErrNoMessages):
			continue
		case err != nil:
			return fmt.Errorf("bus: worker %s: %w", w.Name, err)
		case msg == nil:
			continue
		}
		if err := b.serve(ctx, w, msg, ends, started); err != nil && ctx.Err() == nil {
			b.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("given back")
			if err := msg.NakWithDelay(retryDelay); err != nil {
				b.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("give back")
			}
		}
	}
	return nil
}

// next pulls one message, or none. A message that arrives while ctx ends is
// given back by the server after its AckWait, or at once by the next owner.
func next(ctx context.Context, cons jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, pullExpiry)
	defer cancel()
	batch, err := cons.Fetch(1, jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(pullHeartbeat))
	if err != nil {
		return nil, err
	}
	msg := <-batch.Messages()
	if msg == nil {
		return nil, batch.Error()
	}
	return msg, nil
}

// serve handles one ask: check, work, publish the outcome, acknowledge.
func (b *Bus) serve(ctx context.Context, w Worker, msg jetstream.Msg, ends *ends, started time.Time) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	if home := wire.Header(msg.Headers()).Get(wire.HomeHeader); w.Home != "" && home != w.Home {
		return msg.DoubleAck(ctx)
	}
	job, err := b.job(w, msg)
	if errors.Is(err, errNothing) {
		return msg.DoubleAck(ctx)
	}
	if err != nil {
		return b.poison(ctx, msg, job.Run, job.N, err)
	}
	if meta.NumDelivered > 1 || meta.Timestamp.Before(started) {
		pending, err := job.Pending(ctx)
		if err != nil {
			return err
		}
		if !pending {
			return msg.DoubleAck(ctx)
		}
	}
	jobCtx, cancel := context.WithTimeoutCause(ctx, w.Cap, errCap)
	defer cancel()
	done := ends.watch(job, cancel)
	stop := keepAlive(jobCtx, msg, b.log)
	ans, err := protect(jobCtx, w, job)
	stop()
	done()
	if ctx.Err() != nil {
		return msg.Nak()
	}
	if cause := context.Cause(jobCtx); err != nil && errors.Is(cause, errCap) {
		err = failure.New(failure.Timeout, string(w.Name), fmt.Errorf("no answer within %s", w.Cap))
	}
	if err := b.publishOutcome(ctx, string(w.Name), job.Run, job.N, outcomeOf(w, ans, err)); err != nil {
		return err
	}
	fault.Point("bus.worker.ack." + string(w.Name))
	err = msg.DoubleAck(ctx)
	fault.Point("bus.worker.acked." + string(w.Name))
	return err
}

// errNothing says that an event asks its consumer for nothing: an approved run
// is not rolled back.
var errNothing = errors.New("bus: nothing is asked")

var errCap = errors.New("bus: the hard limit of an attempt")

// job decodes the ask; the ended event of a run is the ask of rollback.
func (b *Bus) job(w Worker, msg jetstream.Msg) (Job, error) {
	addr, err := wire.ParseEvent(msg.Subject())
	if err != nil {
		return Job{}, err
	}
	j := Job{Run: addr.Run, N: addr.N, bus: b, Log: b.log.With().Str("run", addr.Run).Str("worker", string(w.Name)).Int("ask", addr.N).Logger()}
	ev, err := wire.DecodeEvent(addr, msg.Data())
	if err != nil {
		return j, err
	}
	switch c := ev.Command.(type) {
	case run.Ask:
		j.Ask = c
	case run.Ended:
		if c.Rollback == nil {
			return j, errNothing
		}
		j.Ask = run.Ask{Worker: run.Rollback, Rollback: c.Rollback}
	default:
		return j, fmt.Errorf("%w: %s is no ask", wire.ErrMalformed, addr.Name)
	}
	return j, nil
}

// protect turns a panic of a handler into a failure.
func protect(ctx context.Context, w Worker, job Job) (ans run.Answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			job.Log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("worker panicked")
			err = failure.New(failure.Unexpected, string(w.Name), fmt.Errorf("internal error: %v", r))
		}
	}()
	return w.Handle(ctx, job)
}

// keepAlive extends the claim on msg until the returned function is called.
func keepAlive(ctx context.Context, msg jetstream.Msg, log zerolog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(heartbeat)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := msg.InProgress(); err != nil {
					log.Debug().Err(err).Str("subject", msg.Subject()).Msg("heartbeat")
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// BadInput marks an error as the task's own fault: the run ends as ERROR with
// its text.
type BadInput struct{ Err error }

// Error implements error.
func (e *BadInput) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BadInput) Unwrap() error { return e.Err }

func outcomeOf(w Worker, ans run.Answer, err error) wire.Outcome {
	if err == nil {
		return wire.Outcome{Answer: &ans}
	}
	f := failure.Convert(err, string(w.Name))
	out := &run.Failure{
		Category: string(f.Category), Op: f.Op, Message: err.Error(), Status: f.Status,
		RetryAfter: f.RetryAfter.Seconds(), Exhausted: f.Exhausted, Quota: f.QuotaReset.Seconds(),
	}
	var bad *BadInput
	out.BadInput = errors.As(err, &bad)
	var counted interface{ ModelCalls() int }
	if errors.As(err, &counted) {
		out.Calls = counted.ModelCalls()
	}
	return wire.Outcome{Failure: out}
}

// publishOutcome states a fact about ask n of a run. The message id makes a
// repeated statement one.
func (b *Bus) publishOutcome(ctx context.Context, by, id string, n int, o wire.Outcome) error {
	body, err := wire.EncodeOutcome(o)
	if err != nil {
		return err
	}
	if len(body) > maxOutcome {
		f := &run.Failure{Category: string(failure.Unexpected), Op: by, Message: fmt.Sprintf("the answer has %d bytes, the limit is %d", len(body), maxOutcome)}
		if body, err = wire.EncodeOutcome(wire.Outcome{Failure: f}); err != nil {
			return err
		}
	}
	key := by + "/" + id + "/" + strconv.Itoa(n)
	msg := &nats.Msg{Subject: wire.OutcomeSubject(by, id, n), Data: body}
	msg.Header = nats.Header(wire.Envelope(by, key, "outcome."+by, id, time.Now()))
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if n > 0 {
		opts = append(opts, jetstream.WithMsgID(key))
	}
	fault.Point("bus.outcome." + by)
	_, err = b.js.PublishMsg(ctx, msg, opts...)
	fault.Point("bus.outcome.stored." + by)
	if err != nil {
		return fmt.Errorf("bus: outcome %s: %w", msg.Subject, err)
	}
	return nil
}
