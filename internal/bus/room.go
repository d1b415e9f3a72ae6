package bus

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull says that the log has no room for further runs.
var ErrFull = errors.New("bus: the log of runs is 80 % full and takes no new task; what you can do: remove old runs ('nexus gc'), work with another state folder (--state DIR), or on an external server raise the limit of the stream RUNS (nats stream edit RUNS --max-bytes)")

// gauge remembers for a moment whether RUNS is full.
type gauge struct {
	mu   sync.Mutex
	at   time.Time
	full bool
}

// Full reports whether the log has no room for further runs. The last fifth
// is kept for the runs under way and their rollbacks. The answer may be a few
// seconds old.
func (b *Bus) Full(ctx context.Context) (bool, error) {
	b.gauge.mu.Lock()
	defer b.gauge.mu.Unlock()
	if now := time.Now(); now.Sub(b.gauge.at) > b.tune.fullFor {
		s, err := b.stream(ctx, streamRuns)
		if err != nil {
			return false, err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return false, err
		}
		room := info.Config.MaxBytes
		b.gauge.full = room > 0 && info.State.Bytes >= uint64(room)/5*4
		b.gauge.at = now
	}
	return b.gauge.full, nil
}

// awaitRoom returns when there is room for a further run, or ctx ends. When
// nobody can tell, the append will.
func (b *Bus) awaitRoom(ctx context.Context) error {
	for told := false; ; told = true {
		full, err := b.Full(ctx)
		if err != nil {
			b.log.Debug().Err(err).Msg("space of the log")
		}
		if !full || err != nil {
			return ctx.Err()
		}
		if !told {
			b.log.Warn().Msg("the log of runs is 80 % full: tasks wait")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.tune.fullFor):
		}
	}
}
