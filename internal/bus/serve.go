package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// desk is a worker at work.
type desk struct {
	bus *Bus
	w   Worker
	// since is when the worker began: an older ask may have been in
	// somebody's hands.
	since time.Time
}

// serve handles one ask: check, work, publish the outcome, acknowledge. The
// acknowledgement is not waited for: should it get lost, the ask comes again
// and the log says that it is answered.
func (d *desk) serve(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	home := wire.Header(msg.Headers()).Get(wire.HomeHeader)
	if d.w.Home != "" && home != "" && home != d.w.Home {
		return msg.Ack()
	}
	job, err := d.job(msg)
	if err == nil && d.w.Home != home && d.w.Home != "" {
		err = fmt.Errorf("%w: an ask without a home", wire.ErrMalformed)
	}
	if errors.Is(err, errNothing) {
		return msg.Ack()
	}
	if err != nil {
		if known := wire.Known(msg.Data()); known != nil {
			err = known
		}
		return d.bus.unfit(ctx, msg, job.Run, job.N, err)
	}
	try := 0
	if d.had(meta) {
		pending, err := job.Pending(ctx)
		if err != nil {
			return err
		}
		if !pending {
			return msg.Ack()
		}
		spent := false
		if try, spent, err = d.bus.begin(ctx, job); err != nil {
			return err
		}
		if spent {
			return d.lost(msg, try)
		}
	}
	err = d.work(ctx, msg, job)
	if err != nil && try > 0 {
		d.untry(ctx, job, try-1)
	}
	return err
}

// had reports whether somebody may have had the ask in hand: it was delivered
// before, or it is older than this worker or its connection.
func (d *desk) had(meta *jetstream.MsgMetadata) bool {
	back := d.bus.back.Load()
	return meta.NumDelivered > 1 || meta.Timestamp.Before(d.since) ||
		(back > 0 && meta.Timestamp.Before(time.Unix(0, back).Add(maxSkew)))
}

// maxSkew is how far the clocks of server and worker may differ.
const maxSkew = time.Minute

// lost refuses an ask for good; the sweeper hears of it.
func (d *desk) lost(msg jetstream.Msg, tries int) error {
	if err := msg.TermWithReason(fmt.Sprintf("%d workers were lost over this ask", tries)); err != nil {
		return fmt.Errorf("bus: %w", err)
	}
	return errSettled
}

// untry takes a try back that ended in an orderly way.
func (d *desk) untry(ctx context.Context, job Job, n int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := d.bus.putTries(ctx, job, n); err != nil {
		job.Log.Warn().Err(err).Msg("a shutdown counts as a try")
	}
}

// work calls the handler and states the outcome. An error gives the ask back.
func (d *desk) work(ctx context.Context, msg jetstream.Msg, job Job) error {
	jobCtx, cancel := context.WithTimeoutCause(ctx, d.w.Cap, errCap)
	defer cancel()
	jobCtx, end := context.WithCancelCause(jobCtx)
	defer end(nil)
	job.pulse = &pulse{}
	stop := d.bus.attend(jobCtx, msg, job, end)
	ans, err := d.protect(jobCtx, job)
	stop()
	switch cause := context.Cause(jobCtx); {
	case errors.Is(cause, errRunEnded):
		return msg.Ack() // nobody waits for an answer any more
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil && errors.Is(cause, errCap):
		err = failure.New(failure.Timeout, string(d.w.Name), fmt.Errorf("no answer within %s", d.w.Cap))
	case err != nil && errors.Is(cause, errStalled):
		err = failure.New(failure.Timeout, string(d.w.Name), errStalled)
	}
	if ctx.Err() != nil { // it is done in spite of the shutdown
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		ctx = c
	}
	if err := d.bus.publishOutcome(ctx, string(d.w.Name), job.Run, job.N, outcomeOf(d.w, ans, err)); err != nil {
		return err
	}
	fault.Point("bus.worker.ack." + string(d.w.Name))
	err = msg.Ack()
	fault.Point("bus.worker.acked." + string(d.w.Name))
	return err
}

var (
	// errNothing says that an event asks its consumer for nothing: an
	// approved run is not rolled back.
	errNothing  = errors.New("bus: nothing is asked")
	errCap      = errors.New("bus: the hard limit of an attempt")
	errRunEnded = errors.New("bus: the run has ended")
	errStalled  = errors.New("bus: the work made no progress")
)

// job decodes the ask; the ended event of a run is the ask of rollback.
func (d *desk) job(msg jetstream.Msg) (Job, error) {
	addr, err := wire.ParseEvent(msg.Subject())
	if err != nil {
		return Job{}, err
	}
	b, name := d.bus, string(d.w.Name)
	j := Job{Run: addr.Run, N: addr.N, bus: b, Log: b.log.With().Str("run", addr.Run).Str("worker", name).Int("ask", addr.N).Logger()}
	ev, err := wire.DecodeEvent(addr, msg.Data())
	if err != nil {
		return j, err
	}
	if ev.Decider > run.Decider {
		return j, wire.ErrNewer
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
func (d *desk) protect(ctx context.Context, job Job) (ans run.Answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			job.Log.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("worker panicked")
			err = failure.New(failure.Unexpected, string(d.w.Name), fmt.Errorf("internal error: %v", r))
		}
	}()
	return d.w.Handle(ctx, job)
}
