package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// attendAfter is how long a job must take to be attended to; most are over by
// then.
const attendAfter = 20 * time.Millisecond

// attend extends the claim on the ask, and ends the work when the run has
// ended, so that nobody computes for a cancelled run, until the returned
// function is called.
func (b *Bus) attend(ctx context.Context, msg jetstream.Msg, job Job, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(attendAfter, b.tune.heartbeat)):
		}
		// The log has the last word, and without hints the heartbeat finds out.
		hints, stop := b.hear(wire.NameOf(job.Run, run.Ended{}.Name()))
		defer stop()
		t := time.NewTicker(b.tune.heartbeat)
		defer t.Stop()
		for over := b.hasEnded(ctx, job); !over; {
			select {
			case <-ctx.Done():
				return
			case <-hints:
				over = b.awaitEnd(ctx, job)
			case now := <-t.C:
				if job.pulse.stopped(now) {
					end(errStalled)
					return
				}
				if err := msg.InProgress(); err != nil {
					job.Log.Debug().Err(err).Msg("heartbeat")
				}
				over = b.hasEnded(ctx, job)
			}
		}
		end(errRunEnded)
	})
	return func() { cancel(); wg.Wait() }
}

// hasEnded reports whether the log holds the end of the job's run. The asks
// of the closing phase come after it.
func (b *Bus) hasEnded(ctx context.Context, j Job) bool {
	s, err := b.stream(ctx, streamRuns)
	if err != nil {
		return false
	}
	msg, err := s.GetLastMsgForSubject(ctx, wire.NameOf(j.Run, run.Ended{}.Name()))
	if err != nil {
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			j.Log.Debug().Err(err).Msg("end of the run")
		}
		return false
	}
	addr, err := wire.ParseEvent(msg.Subject)
	return err == nil && j.N < addr.N
}

// hintLooks is how often the log is looked at after a hint, each time after
// twice as long as before; later a heartbeat looks.
const (
	hintLooks = 9
	hintPause = time.Millisecond
)

// awaitEnd looks until an announced end is in the log.
func (b *Bus) awaitEnd(ctx context.Context, j Job) bool {
	pause := hintPause
	for range hintLooks {
		if b.hasEnded(ctx, j) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		pause *= 2
	}
	return false
}
