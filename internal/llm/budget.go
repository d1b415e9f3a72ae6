package llm

import (
	"context"
	"fmt"
	"sync"

	"nexuscore.dev/nexus/internal/failure"
)

// Budget counts the paid calls of one run. A nil *Budget has no limit.
type Budget struct {
	mu        sync.Mutex
	max, used int
}

// NewBudget allows most calls, of which used are already spent (as the log of
// the run knows). A most of 0 allows no call at all.
func NewBudget(most, used int) *Budget { return &Budget{max: most, used: used} }

// Used is the number of calls spent.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// SpentError is the refusal of a call that the budget does not allow.
type SpentError struct{ Max, Used int }

// Error says what the limit is.
func (e *SpentError) Error() string {
	return fmt.Sprintf("budget limit exceeded: %d of %d model calls are used", e.Used, e.Max)
}

// take reserves one call before it is made; a failed call stays spent,
// because it may have been paid.
func (b *Budget) take() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used >= b.max {
		e := failure.New(failure.Unexpected, op, &SpentError{b.max, b.used})
		e.Origin = failure.OriginModel
		return e
	}
	b.used++
	return nil
}

// Budgeted asks next as long as b allows. A call that is refused returns a
// *failure.Error round a *SpentError, and next is not asked.
func Budgeted(next Model, b *Budget) Model {
	return Func(func(ctx context.Context, req Request) (Answer, error) {
		if err := b.take(); err != nil {
			return Answer{}, err
		}
		return next.Ask(ctx, req)
	})
}
