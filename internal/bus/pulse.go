package bus

import (
	"sync"
	"time"
)

// pulse is the progress that a handler has promised.
type pulse struct {
	mu sync.Mutex
	// until is when the next word is due, zero while none was promised.
	until time.Time
}

// extend promises the next word within next. Of several that work on one ask
// the most patient one counts.
func (p *pulse) extend(now time.Time, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if due := now.Add(next); due.After(p.until) {
		p.until = due
	}
}

// stopped reports whether a promised word did not come.
func (p *pulse) stopped(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.until.IsZero() && now.After(p.until)
}
