package failure

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Action is what happens after a failure.
type Action string

// The actions.
const (
	// Again: ask once more at once, with the reason quoted.
	Again Action = "again"
	// AgainAfter: ask once more when Disposition.After has passed.
	AgainAfter Action = "again_after"
	// Park: the run rests until Disposition.After has passed; no worker and
	// no call is spent before that.
	Park Action = "park"
	// NextSource: this source is done; the next one is asked, and when there
	// is none Disposition.Else follows.
	NextSource Action = "next_source"
	// Review: the run ends and a person decides.
	Review Action = "review"
	// Bury: dead letter, then Review.
	Bury Action = "bury"
	// Abort: dead letter, and the run ends as ERROR.
	Abort Action = "abort"
)

// Failure is one failed ask as the log knows it.
type Failure struct {
	Category Category
	// Again counts the redeliveries so far of this category for this ask.
	Again int
	// RetryAfter is the wait that the other side asked for, 0 for none.
	RetryAfter time.Duration
	// Exhausted is true for a used-up quota; QuotaReset is the time until it
	// is renewed, 0 when unknown.
	Exhausted  bool
	QuotaReset time.Duration
	// Model is true when a model raised it, Status its HTTP status: a
	// model's 4xx or redirect ends that source, not the run.
	Model  bool
	Status int
	// Left is the time until the run's deadline, 0 for no deadline, negative
	// when it has passed. A wait that does not fit into it is not begun.
	Left time.Duration
	// Run and N seed the jitter.
	Run string
	N   int
}

// Disposition is the answer of Dispose.
type Disposition struct {
	Action Action
	// Else follows when Action is NextSource and there is no next source.
	Else Action
	// After is the wait of AgainAfter and Park.
	After time.Duration
	// Reason is one sentence for the log and for people.
	Reason string
}

// Waits that Policy does not scale.
const (
	// ParkAfter is the longest wait for which a run stays active; a server
	// that asks for more parks it.
	ParkAfter = 5 * time.Minute
	// UnknownReset is how long a run is parked for a used-up quota whose
	// renewal is unknown.
	UnknownReset = time.Hour
	maxJitter    = time.Second
)

// Policy tunes Dispose. The zero value is the default.
type Policy struct {
	// Scale multiplies the delays of the series and their jitter; 0 stands
	// for 1. A wait that a server asked for is never scaled.
	Scale float64
}

// Dispose answers what follows a failure, under the default policy.
func Dispose(f Failure) Disposition { return Policy{}.Dispose(f) }

// Dispose answers what follows a failure. It is a function of f alone: the
// same failure of the same ask has the same delay on every host.
func (p Policy) Dispose(f Failure) Disposition {
	r := f.Category.known()
	switch {
	case r.again == 0:
		return r.over(f, "is never tried again")
	case f.Again >= r.again:
		return r.over(f, fmt.Sprintf("was tried again %d of %d times", f.Again, r.again))
	}
	d := p.wait(f, r)
	if f.Left < 0 || f.Left > 0 && d.After >= f.Left {
		return r.over(f, fmt.Sprintf("would wait %s, past the run's deadline", d.After.Round(time.Millisecond)))
	}
	return d
}

// over is the end of the redeliveries.
func (r *row) over(f Failure, why string) Disposition {
	d := Disposition{Action: r.spent, Else: r.orElse, Reason: string(r.category) + " " + why}
	if r.category == Unexpected && f.Model && f.Status >= 300 && f.Status < 500 {
		d.Action, d.Else = NextSource, Abort
		d.Reason = fmt.Sprintf("the model's server refused the request (HTTP %d)", f.Status)
	}
	return d
}

func (p Policy) wait(f Failure, r *row) Disposition {
	count := fmt.Sprintf("%s, redelivery %d of %d", r.category, f.Again+1, r.again)
	switch {
	case f.Exhausted || f.QuotaReset > 0:
		after := f.QuotaReset
		if after <= 0 {
			after = max(f.RetryAfter, UnknownReset)
		}
		return Disposition{Action: Park, After: after, Reason: count + ": the quota is used up"}
	case f.RetryAfter > ParkAfter:
		return Disposition{Action: Park, After: f.RetryAfter, Reason: count + ": the server asks for a long wait"}
	case f.RetryAfter > 0:
		return Disposition{Action: AgainAfter, After: f.RetryAfter, Reason: count + ": the server asks for this wait"}
	}
	after := p.delay(f, r)
	if after == 0 {
		return Disposition{Action: Again, Reason: count}
	}
	return Disposition{Action: AgainAfter, After: after, Reason: count}
}

// delay is the element of the category's series for the next redelivery.
func (p Policy) delay(f Failure, r *row) time.Duration {
	series := r.series()
	var d time.Duration
	for range max(f.Again, 0) + 1 {
		d = series.NextBackOff()
	}
	if r.jitter {
		d += jitter(f.Run, f.N)
	}
	if p.Scale > 0 {
		d = time.Duration(math.Min(float64(d)*p.Scale, float64(math.MaxInt64/2)))
	}
	return d
}

// jitter spreads the asks of many runs over a second, the same way each time.
func jitter(run string, n int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(run + "/" + strconv.Itoa(n))) // a hash.Hash never returns an error
	return time.Duration(h.Sum64() % uint64(maxJitter))
}

// epoch is the clock of a series, which must not depend on the time.
type epoch struct{}

func (epoch) Now() time.Time { return time.Time{} }

// exponential is 2, 4, 8 … seconds.
func exponential() backoff.BackOff {
	b := &backoff.ExponentialBackOff{
		InitialInterval: 2 * time.Second, Multiplier: 2, MaxInterval: time.Hour,
		Stop: backoff.Stop, Clock: epoch{},
	}
	b.Reset()
	return b
}

// steps is an arithmetic series: first, first+by, first+2·by …, at most max.
type steps struct{ first, by, max, next time.Duration }

// NextBackOff returns the next element.
func (s *steps) NextBackOff() time.Duration {
	d := s.next
	s.next = min(s.next+s.by, s.max)
	return d
}

// Reset starts over.
func (s *steps) Reset() { s.next = s.first }

// linear is 10, 20, 30 … seconds.
func linear() backoff.BackOff {
	const step = 10 * time.Second
	return &steps{step, step, time.Hour, step}
}

// atOnceThenFive is 0, 5, 5 … seconds.
func atOnceThenFive() backoff.BackOff {
	return &steps{0, 5 * time.Second, 5 * time.Second, 0}
}
