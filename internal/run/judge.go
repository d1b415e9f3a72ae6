package run

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Judge says what an execution proves about a candidate, given the execution
// of the same suite on the base tree. It is total and depends on nothing but
// its arguments; the order of lists does not matter.
//
// The verdict is VerdictPassed only when the evidence is complete and agrees
// with itself, and every test that was red on the base passed, every test
// that passed on the base passed again, every test that the base collected
// was reported, and nothing is red. Skipped, expected to fail and missing are
// not passed. A test about which the base said nothing (it was never reached)
// must pass too, unless its own marks skip it. A sign of deceit that the base
// does not show, or a test that is green only in the process of the code under
// test, makes the evidence untrusted.
//
// A base that ran into its time limit or another limit is a base like others:
// what it reported counts. Ids that the base names as flaky are left out.
// The Evidence and Output references of the verdict are left empty.
func Judge(base, got Evidence) Verdict {
	v := verdictOf(got)
	v.Flaky = sortedUnique(base.Flaky)
	c := compare(base, got)
	c.fill(&v)
	v.Kind, v.Reason = decide(base, got, c)
	return v.cut(MaxIDs, MaxText)
}

// JudgeBase says what the baseline proves: VerdictPassed when nothing is red,
// so that nothing is to be done, VerdictFailed with the red ids otherwise.
// The other kinds are as for Judge.
func JudgeBase(base Evidence) Verdict {
	v := verdictOf(base)
	v.Flaky = sortedUnique(base.Flaky)
	c := compare(Evidence{Flaky: base.Flaky}, base)
	c.fill(&v)
	v.Fixed, v.Broken, v.Missing, v.Counts.New = nil, nil, nil, 0
	v.Kind, v.Reason = decideBase(base, c)
	return v.cut(MaxIDs, MaxText)
}

// FlakyIDs lists the ids whose outcome differs between two executions of the
// same suite on the same tree. A test that is red both times, in whatever way,
// is not flaky. A second execution that was cut short proves nothing: then
// none is.
func FlakyIDs(first, second Evidence) []string {
	if !second.Completed || second.Timeout || second.Limit != "" || second.Signal != "" ||
		second.Infrastructure != "" || len(second.Tampered) > 0 {
		return nil
	}
	red := func(o Outcome) bool { return o == OutcomeFailed || o == OutcomeError }
	var out []string
	for id, o := range first.Outcomes {
		if p, ok := second.Outcomes[id]; !ok || (p != o && (!red(p) || !red(o))) {
			out = append(out, id)
		}
	}
	for id := range second.Outcomes {
		if _, ok := first.Outcomes[id]; !ok {
			out = append(out, id)
		}
	}
	return sortedUnique(out)
}

func verdictOf(e Evidence) Verdict {
	return Verdict{Tree: e.Tree, Level: e.Level, Runner: e.Runner, Weak: e.Weak, Tail: e.Tail, Seconds: e.Seconds}
}

func red(o Outcome) bool {
	switch o {
	case OutcomePassed, OutcomeSkipped, OutcomeXFailed, OutcomeXPassed:
		return false
	default:
		// An unknown outcome is nobody's pass.
		return true
	}
}

// comparison holds what differs between two executions, flaky ids left out.
type comparison struct {
	failed, fixed, broken, missing []string
	passed, skipped                int
	// fresh counts the ids that are red now and were not on the base.
	fresh int
	// reds counts the ids that are red now, unreported those that were
	// collected now and not reported.
	reds       int
	unreported []string
}

func compare(base, got Evidence) comparison {
	flaky := setOf(base.Flaky)
	var c comparison
	for id, o := range got.Outcomes {
		if flaky[id] {
			continue
		}
		switch {
		case red(o):
			c.failed = append(c.failed, id)
		case o == OutcomePassed:
			c.passed++
		case o == OutcomeSkipped:
			c.skipped++
		}
	}
	c.reds = len(c.failed)
	for _, id := range got.Collected {
		if _, ok := got.Outcomes[id]; !ok && !flaky[id] {
			c.unreported = append(c.unreported, id)
		}
	}
	c.againstBase(base, got, flaky)
	c.failed, c.fixed = sortedUnique(c.failed), sortedUnique(c.fixed)
	c.broken, c.missing = sortedUnique(c.broken), sortedUnique(c.missing)
	c.unreported = sortedUnique(c.unreported)
	c.fresh = newlyRed(base, got, flaky)
	return c
}

// newlyRed counts the tests that are red now and were not on the base. A base
// that was cut short says nothing about a test that it does not report, and
// the tests of a file that could not be collected there were red with it.
func newlyRed(base, got Evidence, flaky map[string]bool) int {
	collected := setOf(base.Collected)
	var lost []string
	for id, o := range base.Outcomes {
		if red(o) && !collected[id] {
			lost = append(lost, id)
		}
	}
	n := 0
	for id, o := range got.Outcomes {
		was, known := base.Outcomes[id]
		switch {
		case !red(o), flaky[id], known && red(was), !known && !base.Completed:
		case !known && slices.ContainsFunc(lost, func(file string) bool { return inFile(file, id) }):
		default:
			n++
		}
	}
	return n
}

// againstBase looks at every id that the base knew, and at those it did not.
func (c *comparison) againstBase(base, got Evidence, flaky map[string]bool) {
	known := map[string]bool{}
	collected, declared := setOf(base.Collected), setOf(got.Declared)
	for _, id := range append(slices.Clone(base.Collected), keys(base.Outcomes)...) {
		if known[id] || flaky[id] {
			continue
		}
		known[id] = true
		o, reported := base.Outcomes[id]
		switch {
		case !collected[id] && reported && red(o):
			c.wholeFile(id, got)
			continue
		case !collected[id] && reported && o == OutcomeSkipped && reportedIn(id, got):
			// A file that skipped itself as a whole, and no longer does.
			continue
		}
		c.oneTest(id, o, reported, got, declared)
	}
	for id, o := range got.Outcomes {
		if !known[id] && !flaky[id] && o != OutcomePassed && !red(o) && !declared[id] && c.unknownMustPass(id, base, collected) {
			c.failed = append(c.failed, id)
		}
	}
}

// oneTest compares a test that the base collected or reported.
func (c *comparison) oneTest(id string, was Outcome, reported bool, got Evidence, declared map[string]bool) {
	now, ok := got.Outcomes[id]
	wasRed := reported && red(was)
	switch {
	case ok && now == OutcomePassed:
		if wasRed {
			c.fixed = append(c.fixed, id)
		}
		return
	case !ok:
		c.missing = append(c.missing, id)
	case wasRed, !reported && !declared[id]:
		c.failed = append(c.failed, id)
	}
	if was == OutcomePassed && reported {
		c.broken = append(c.broken, id)
	}
}

// wholeFile compares what was red on the base without having been collected. A
// file that could not be loaded is fixed when its tests were found and at least
// one of them passed, a test that came up while others ran when it passed.
func (c *comparison) wholeFile(id string, got Evidence) {
	switch o, ok := got.Outcomes[id]; {
	case ok && o == OutcomePassed:
		c.fixed = append(c.fixed, id)
		return
	case ok:
		c.failed = append(c.failed, id)
		return
	}
	for test, o := range got.Outcomes {
		if o == OutcomePassed && inFile(id, test) {
			c.fixed = append(c.fixed, id)
			return
		}
	}
	c.missing = append(c.missing, id)
}

// reportedIn reports whether any test of the file was reported.
func reportedIn(file string, got Evidence) bool {
	for id := range got.Outcomes {
		if inFile(file, id) {
			return true
		}
	}
	return false
}

// unknownMustPass reports whether a test that is new now has to pass: its
// file could not be collected on the base, or the base never got so far. A
// test that is new although the base saw everything is nobody's promise, and
// only must not be red.
func (c *comparison) unknownMustPass(id string, base Evidence, collected map[string]bool) bool {
	if len(base.Collected) == 0 && (base.Timeout || base.Limit != "") {
		return true
	}
	for file, o := range base.Outcomes {
		if red(o) && !collected[file] && inFile(file, id) {
			return true
		}
	}
	return false
}

// inFile reports whether a test id belongs to the file, folder, conftest.py
// or package that an error of collection named.
func inFile(file, id string) bool {
	if strings.HasPrefix(id, file+"::") || strings.HasPrefix(id, file+"/") {
		return true
	}
	switch path.Base(file) {
	case "conftest.py", "__init__.py":
		dir := path.Dir(file)
		return dir == "." || strings.HasPrefix(id, dir+"/")
	}
	return false
}

func (c comparison) fill(v *Verdict) {
	v.Failed, v.Fixed, v.Broken, v.Missing = c.failed, c.fixed, c.broken, c.missing
	v.Counts = Counts{
		Passed: c.passed, Skipped: c.skipped, Failed: len(c.failed),
		Fixed: len(c.fixed), Broken: len(c.broken), Missing: len(c.missing), New: c.fresh,
	}
}

// unfinished answers for an execution that did not come to its own end, or is no
// evidence at all. An empty kind means that it did and may be.
func unfinished(e Evidence) (VerdictKind, string) {
	switch {
	case e.Tree == "":
		return VerdictUntrusted, "the evidence names no tree"
	case e.Infrastructure != "":
		return VerdictInfrastructure, e.Infrastructure
	case len(e.Tampered) > 0:
		return VerdictUntrusted, "tampering: " + strings.Join(sortedUnique(e.Tampered), "; ")
	case e.Timeout:
		return VerdictTimeout, "the time limit ended the test run" + after(e.Seconds)
	case e.Limit != "":
		return VerdictLimit, "a limit ended the test run: " + e.Limit
	default:
		return "", ""
	}
}

// distrust says why evidence that came to its own end is not believed; empty
// means that it is complete and agrees with itself.
func distrust(e Evidence, c comparison) string {
	reds := 0
	for _, o := range e.Outcomes {
		if red(o) {
			reds++
		}
	}
	switch {
	case e.Signal != "":
		return "a signal ended the test run: " + e.Signal
	case !e.Completed:
		return "the test run left no completion record"
	case !e.Canary:
		return "the planted failing test was not reported as failed"
	case len(c.unreported) > 0:
		return "collected but not reported: " + c.unreported[0]
	case reds == 0 && len(e.Outcomes) > 0 && e.Exit != 0:
		return fmt.Sprintf("exit status %d, but no test is red", e.Exit)
	case reds > 0 && e.Exit == 0:
		return fmt.Sprintf("exit status 0, but %d tests are red", reds)
	default:
		return ""
	}
}

// deceit says why a run that looks complete may still be the work of the code
// under test: it did something that the base does not do, or a test is green
// only in the process that this code shares.
func deceit(base, got Evidence) string {
	known := setOf(base.Signs)
	for _, sign := range sortedUnique(got.Signs) {
		if !known[sign] {
			return "the code under test reached for its runner: " + sign
		}
	}
	flaky := setOf(base.Flaky)
	for _, id := range sortedUnique(keys(got.Outcomes)) {
		if got.Outcomes[id] == OutcomePassed && !flaky[id] && greenTogetherOnly(base, got, id) {
			return "green only in the process of the code under test: " + id
		}
	}
	return ""
}

// greenTogetherOnly reports whether a test that passed did not pass apart from
// the code under test, although it can be told apart: on the base it was
// decided by plain data, and did not fail for want of the code's company.
func greenTogetherOnly(base, got Evidence, id string) bool {
	was, is := base.Split[id], got.Split[id]
	switch {
	case is == OutcomePassed, was == OutcomeError, was != OutcomePassed && base.Outcomes[id] == OutcomePassed:
		return false
	case is == "":
		// What could be told apart and no longer can is hidden, not proved.
		return was != ""
	case was == "":
		return is == OutcomeFailed
	}
	return true
}

func decideBase(e Evidence, c comparison) (VerdictKind, string) {
	if kind, reason := unfinished(e); kind != "" {
		return kind, reason
	}
	if e.Weak {
		return decideWeakBase(e)
	}
	if why := distrust(e, c); why != "" {
		return VerdictUntrusted, why
	}
	switch {
	case c.reds > 0:
		return VerdictFailed, plural(c.reds, "test is", "tests are") + " red"
	case len(e.Outcomes) == 0:
		return VerdictUntrusted, "no tests were collected by " + e.Runner + ": name the command that runs them with --test"
	case c.passed == 0:
		return VerdictUntrusted, "nothing verified: no test passed"
	case len(e.Flaky) > 0:
		return VerdictUntrusted, "not always the same: " + e.Flaky[0]
	default:
		return VerdictPassed, ""
	}
}

func decide(base, got Evidence, c comparison) (VerdictKind, string) {
	if kind, reason := unfinished(got); kind != "" {
		return kind, reason
	}
	if why := unusable(base, got); why != "" {
		return VerdictUntrusted, why
	}
	if got.Weak {
		return decideWeak(base, got)
	}
	if why := distrust(got, c); why != "" {
		return VerdictUntrusted, why
	}
	switch {
	case len(c.missing) > 0:
		return VerdictFailed, plural(len(c.missing), "test is", "tests are") + " missing"
	case len(c.broken) > 0:
		return VerdictFailed, plural(len(c.broken), "test was", "tests were") + " green on the base and did not pass"
	case len(c.failed) > 0:
		return VerdictFailed, plural(len(c.failed), "test", "tests") + " did not pass"
	case len(got.Outcomes) == 0:
		return VerdictUntrusted, "no tests were collected"
	case c.passed == 0:
		return VerdictUntrusted, "nothing verified: no test passed"
	}
	if why := deceit(base, got); why != "" {
		return VerdictUntrusted, why
	}
	return VerdictPassed, ""
}

// unusable says why the base is nothing to compare with.
func unusable(base, got Evidence) string {
	if base.Runner != got.Runner || base.Weak != got.Weak {
		return fmt.Sprintf("the base ran under another runner: %s, not %s", base.Runner, got.Runner)
	}
	switch kind, reason := unfinished(base); kind {
	case "", VerdictTimeout, VerdictLimit:
	default:
		return "the baseline is no evidence: " + reason
	}
	if base.Weak || base.Timeout || base.Limit != "" {
		return ""
	}
	if why := distrust(base, compare(Evidence{Flaky: base.Flaky}, base)); why != "" {
		return "the baseline is no evidence: " + why
	}
	return ""
}

// after tells a time that is known.
func after(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(" after %.1f s", seconds)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func setOf(ids []string) map[string]bool {
	m := make(map[string]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

func keys(m map[string]Outcome) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func sortedUnique(ids []string) []string {
	if len(ids) == 0 {
		return nil
	}
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}
