package failure

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait that is believed.
const maxWait = 366 * 24 * time.Hour

// ParseRetryAfter reads a Retry-After header: seconds or an HTTP date, relative
// to now. A date in the past is no wait. What is negative, longer than a year
// or anything else is ignored.
func ParseRetryAfter(header string, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return seconds2wait(seconds)
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC1123Z, time.RFC850, time.ANSIC} {
		if t, err := time.Parse(layout, text); err == nil {
			return until(t, now)
		}
	}
	return 0, false
}

func seconds2wait(s float64) (time.Duration, bool) {
	if math.IsNaN(s) || s < 0 || s > maxWait.Seconds() {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}

func until(t, now time.Time) (time.Duration, bool) {
	d := t.Sub(now)
	if d > maxWait {
		return 0, false
	}
	return max(d, 0), true
}

var (
	waitIn = regexp.MustCompile(`(?i)\b(?:resets?|try again|retry|renews?|available)(?: \w+)? (?:in|after)[: ]+((?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[ ,]*|\d+(?:\.\d+)?[dhms])+)`)
	waitAt = regexp.MustCompile(`(?i)\b(?:resets?|try again|retry|renews?|available)(?: \w+)? (?:at|on)[: ]+(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?UTC|[+-]\d\d:\d\d)?)`)
	unit   = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?) ?(ms|d|h|m|s)`)
)

// ParseReset finds the wait that a sentence of a provider states, relative to
// now: "resets in 6h29m", "try again in 1m26.4s", "resets at
// 2026-10-21T07:28:00Z". A time without a zone is UTC.
func ParseReset(text string, now time.Time) (time.Duration, bool) {
	const most = 4096
	if len(text) > most {
		text = text[:most]
	}
	if m := waitIn.FindStringSubmatch(text); m != nil {
		return sum(m[1])
	}
	m := waitAt.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	stamp := strings.Replace(strings.TrimSuffix(strings.TrimSuffix(m[1], "UTC"), " "), " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, stamp); err == nil {
			return until(t, now)
		}
	}
	return 0, false
}

// sum adds up a duration such as "6h29m", "1 day 2 hours" or "86.4s".
func sum(text string) (time.Duration, bool) {
	units := map[string]float64{"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
	total := 0.0
	for _, m := range unit.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, false
		}
		total += n * units[strings.ToLower(m[2])]
	}
	return seconds2wait(total)
}
