package failure_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/failure"
)

// TestSeries is the table of ARCHITECTURE, row by row: the delay of each
// redelivery without its jitter, and what follows the last one.
func TestSeries(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, c := range []struct {
		category failure.Category
		delays   []time.Duration
		jitter   bool
		then     failure.Action
		orElse   failure.Action
	}{
		{failure.RateLimit, []time.Duration{2 * s, 4 * s, 8 * s, 16 * s, 32 * s}, true, failure.NextSource, failure.Review},
		{failure.Timeout, []time.Duration{10 * s, 20 * s, 30 * s}, false, failure.NextSource, failure.Review},
		{failure.Connection, []time.Duration{2 * s, 4 * s, 8 * s}, true, failure.NextSource, failure.Review},
		{failure.InvalidOutput, []time.Duration{0, 5 * s, 5 * s}, false, failure.NextSource, failure.Review},
		{failure.Sandbox, nil, false, failure.Bury, ""},
		{failure.Security, nil, false, failure.Bury, ""},
		{failure.PatchApply, nil, false, failure.Bury, ""},
		{failure.Unexpected, nil, false, failure.Abort, ""},
		{"flood", nil, false, failure.Abort, ""},
	} {
		t.Run(string(c.category), func(t *testing.T) {
			t.Parallel()
			for again, want := range c.delays {
				d := failure.Dispose(failure.Failure{Category: c.category, Again: again, Run: "run", N: 7})
				if want == 0 {
					require.Equal(t, failure.Again, d.Action)
				} else {
					require.Equal(t, failure.AgainAfter, d.Action)
				}
				if !c.jitter {
					require.Equal(t, want, d.After)
					continue
				}
				require.GreaterOrEqual(t, d.After, want)
				require.Less(t, d.After, want+time.Second)
			}
			last := failure.Dispose(failure.Failure{Category: c.category, Again: len(c.delays), Run: "run", N: 7})
			require.Equal(t, c.then, last.Action)
			require.Equal(t, c.orElse, last.Else)
			require.Zero(t, last.After)
			require.NotEmpty(t, last.Reason)
		})
	}
}

func TestWaitsOfTheServer(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Category: failure.RateLimit, Again: 1, Run: "run", N: 3}

	f.RetryAfter = 7 * time.Second
	d := failure.Policy{Scale: 0.001}.Dispose(f)
	require.Equal(t, failure.AgainAfter, d.Action)
	require.Equal(t, 7*time.Second, d.After, "a server's wait is never scaled")

	f.RetryAfter = time.Hour
	d = failure.Dispose(f)
	require.Equal(t, failure.Park, d.Action)
	require.Equal(t, time.Hour, d.After)

	f.RetryAfter, f.Exhausted = 0, true
	d = failure.Dispose(f)
	require.Equal(t, failure.Park, d.Action)
	require.Equal(t, failure.UnknownReset, d.After)

	f.QuotaReset = 6*time.Hour + 29*time.Minute
	require.Equal(t, f.QuotaReset, failure.Dispose(f).After)

	f.Left = time.Hour
	d = failure.Dispose(f)
	require.Equal(t, failure.NextSource, d.Action, "a wait past the deadline is not begun")
	require.Equal(t, failure.Review, d.Else)

	f.Left, f.Again = 0, 5
	require.Equal(t, failure.NextSource, failure.Dispose(f).Action, "parking is bounded too")
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Category: failure.InvalidOutput, Left: -1}
	require.Equal(t, failure.NextSource, failure.Dispose(f).Action)
	f.Left = 1
	require.Equal(t, failure.Again, failure.Dispose(f).Action)
	f.Again = 1
	require.Equal(t, failure.NextSource, failure.Dispose(f).Action)
}

func TestRefusedByTheModel(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Category: failure.Unexpected, Model: true, Status: 401}
	d := failure.Dispose(f)
	require.Equal(t, failure.NextSource, d.Action)
	require.Equal(t, failure.Abort, d.Else)
	require.Contains(t, d.Reason, "401")
	for _, status := range []int{301, 308, 404, 422} {
		f.Status = status
		d = failure.Dispose(f)
		require.Equal(t, failure.NextSource, d.Action)
		require.Equal(t, failure.Abort, d.Else)
	}
	f.Model = false
	require.Equal(t, failure.Abort, failure.Dispose(f).Action)
}

func TestScale(t *testing.T) {
	t.Parallel()
	f := failure.Failure{Category: failure.Timeout, Again: 2}
	require.Equal(t, 30*time.Millisecond, failure.Policy{Scale: 0.001}.Dispose(f).After)
	require.Equal(t, 30*time.Second, failure.Policy{Scale: 1}.Dispose(f).After)
	require.Equal(t, 30*time.Second, failure.Policy{Scale: -1}.Dispose(f).After)
	require.Positive(t, failure.Policy{Scale: math.Inf(1)}.Dispose(f).After)
}

// TestDisposeProperties: it is pure, always answers, and every series ends.
func TestDisposeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := failure.Failure{
			Category:   failure.Category(rapid.SampledFrom(append(failure.Categories(), "", "flood")).Draw(t, "category")),
			Again:      rapid.IntRange(-3, 12).Draw(t, "again"),
			RetryAfter: time.Duration(rapid.Int64().Draw(t, "retry")),
			Exhausted:  rapid.Bool().Draw(t, "exhausted"),
			QuotaReset: time.Duration(rapid.Int64().Draw(t, "reset")),
			Left:       time.Duration(rapid.Int64().Draw(t, "left")),
			Model:      rapid.Bool().Draw(t, "model"),
			Status:     rapid.IntRange(-1, 700).Draw(t, "status"),
			Run:        rapid.String().Draw(t, "run"), N: rapid.Int().Draw(t, "n"),
		}
		d := failure.Dispose(f)
		require.Equal(t, d, failure.Dispose(f))
		require.NotEmpty(t, d.Reason)
		require.GreaterOrEqual(t, d.After, time.Duration(0))
		waits := d.Action == failure.AgainAfter || d.Action == failure.Park
		require.Equal(t, waits, d.After > 0)
		require.Equal(t, d.Action == failure.NextSource, d.Else != "")
		if f.Again >= 5 {
			require.NotContains(t, []failure.Action{failure.Again, failure.AgainAfter, failure.Park}, d.Action)
		}
		if waits && f.Left != 0 {
			require.Less(t, d.After, f.Left)
		}
	})
}

func TestJitterSpreads(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for n := range 50 {
		seen[failure.Dispose(failure.Failure{Category: failure.Connection, Run: "run", N: n}).After] = true
	}
	require.Len(t, seen, 50)
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 21, 7, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 7 ": 7 * time.Second, "0": 0, "1.5": 1500 * time.Millisecond,
		"Wed, 21 Oct 2026 07:28:00 GMT":     28 * time.Minute,
		"Wednesday, 21-Oct-26 07:28:00 GMT": 28 * time.Minute,
		"Wed Oct 21 07:28:00 2026":          28 * time.Minute,
		"Wed, 21 Oct 2026 09:28:00 +0200":   28 * time.Minute,
		"Wed, 21 Oct 2026 06:00:00 GMT":     0,
	} {
		got, ok := failure.ParseRetryAfter(header, now)
		require.True(t, ok, header)
		require.Equal(t, want, got, header)
	}
	for _, bad := range []string{"", "abc", "-1", "NaN", "Inf", "-Inf", "99999999999999999999", "1e300", "Wed, 21 Oct 2096 07:28:00 GMT", "7s"} {
		got, ok := failure.ParseRetryAfter(bad, now)
		require.False(t, ok, bad)
		require.Zero(t, got, bad)
	}
}

func TestParseReset(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 21, 7, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"weekly limit reached. resets in 6h29m":       6*time.Hour + 29*time.Minute,
		"Please try again in 20s.":                    20 * time.Second,
		"Please try again in 1m26.4s. Visit the page": 86400 * time.Millisecond,
		"Please retry after 12 seconds.":              12 * time.Second,
		"quota resets in 1 day, 2 hours":              26 * time.Hour,
		"try again in 250ms":                          250 * time.Millisecond,
		"Your limit resets at 2026-10-21T07:28:00Z":   28 * time.Minute,
		"resets at 2026-10-21 07:28 UTC":              28 * time.Minute,
		"resets at 2026-10-21T09:28:00+02:00":         28 * time.Minute,
		"resets at 2026-10-20 07:28":                  0,
		"resets in 5m " + string(make([]byte, 8000)):  5 * time.Minute,
	} {
		got, ok := failure.ParseReset(text, now)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", "rate limit", "resets in soon", "resets at 2026-99-99 07:28", "resets in " + string(make([]byte, 9)), "try again in 99999999999999d", "try again in " + strings.Repeat("9", 400) + "h"} {
		_, ok := failure.ParseReset(bad, now)
		require.False(t, ok, bad)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	now := time.Date(2026, 10, 21, 7, 0, 0, 0, time.UTC)
	for _, s := range []string{"7", "-1", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT", "resets in 6h29m", "resets at 2026-10-21T07:28:00Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const year = 366 * 24 * time.Hour
		for _, parse := range []func(string, time.Time) (time.Duration, bool){failure.ParseRetryAfter, failure.ParseReset} {
			d, ok := parse(s, now)
			require.True(t, d >= 0 && d <= year && (ok || d == 0), "%q: %v", s, d)
		}
	})
}
