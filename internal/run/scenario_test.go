package run_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/run/runtest"
)

// TestScenarios plays testdata/scenario/*.txt; testdata/scenario/README.md
// explains the language. -rewrite writes what happens now into the files.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenario/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			p := &play{}
			datadriven.RunTest(t, file, p.do)
			p.verify(t)
		})
	}
}

// play is one scenario: commands of the file against a run.
type play struct {
	r *runtest.Run
	// done are the runs before r.
	done []*runtest.Run
}

func (p *play) do(t *testing.T, d *datadriven.TestData) string {
	before := 0
	if p.r != nil {
		before = len(p.r.Log)
	}
	switch d.Cmd {
	case "open":
		if p.verify(t); p.r != nil {
			p.done = append(p.done, p.r)
		}
		p.r, before = runtest.New("scenario"), 0
		require.NoError(t, p.r.Open(task(t, d)))
	case "wait":
		span, err := time.ParseDuration(d.CmdArgs[0].Key)
		require.NoError(t, err)
		p.r.Now = p.r.Now.Add(span)
	case "recover":
		s, err := run.FoldAll(p.r.ID, p.r.Log)
		require.NoError(t, err)
		p.r.State = s
		require.NoError(t, p.r.Drain())
	case "attempts":
		return attempts(p.r.State)
	default:
		if !p.tell(t, d) {
			return "dropped: the run does not wait for it"
		}
	}
	return p.since(before)
}

// verify replays the scenario's run: the log must lead to the same commands.
func (p *play) verify(t *testing.T) {
	t.Helper()
	if p.r == nil {
		return
	}
	diffs, err := run.Verify(p.r.ID, p.r.Log)
	require.NoError(t, err)
	require.Empty(t, diffs)
}

// tell states the fact of the command and reports whether the run waited for
// it. With crash nothing is appended after its event.
func (p *play) tell(t *testing.T, d *datadriven.TestData) bool {
	f := p.fact(t, d)
	for _, timer := range p.r.State.Timers() {
		if timer.Name == f.Timer && timer.At.After(p.r.Now) {
			p.r.Now = timer.At
		}
	}
	f.At = p.r.Now
	switch {
	case !p.r.State.Awaits(f):
		return false
	case d.HasArg("crash"):
		require.NoError(t, p.r.Record(f))
	default:
		require.NoError(t, p.r.Tell(f))
	}
	return true
}

func (p *play) fact(t *testing.T, d *datadriven.TestData) run.Fact {
	n, ask := p.r.Pending()
	if d.HasArg("ask") {
		d.ScanArgs(t, "ask", &n)
		ask, _ = p.r.Log[n-1].Command.(run.Ask)
	}
	f := run.Fact{By: run.By(d.Cmd), Ask: n}
	switch d.Cmd {
	case "fire":
		f.By, f.Ask, f.Timer = run.ByClock, 0, d.CmdArgs[0].Key
	case "order":
		f.By, f.Ask = run.ByOperator, 0
		f.Order = &run.Order{Kind: run.OrderKind(d.CmdArgs[0].Key), Reason: d.Input}
		if d.HasArg("driver") {
			f.Order.Driver = &run.Driver{PID: 7, Start: 8, Host: "here"}
		}
	case "fail":
		f.By, f.Failure = run.By(ask.Worker), failed(t, d)
	default:
		f.Answer = answer(t, d, ask)
	}
	f.By = run.By(arg(d, "by", string(f.By)))
	return f
}

// since shows the events after the first n, and what the run waits for.
func (p *play) since(n int) string {
	var out []string
	for _, e := range p.r.Log[n:] {
		out = append(out, fmt.Sprintf("%d %s", e.N, line(e)))
	}
	if w := p.waits(); w != "" {
		out = append(out, "   waits for "+w)
	}
	return strings.Join(out, "\n")
}

func (p *play) waits() string {
	var out []string
	for _, n := range sortedKeys(p.r.State.Pending) {
		out = append(out, fmt.Sprintf("%s (%d)", p.r.State.Pending[n].Worker, n))
	}
	for _, t := range p.r.State.Timers() {
		if t.Name != run.TimerDeadline || len(out) == 0 {
			out = append(out, fmt.Sprintf("%s in %s", t.Name, t.At.Sub(p.r.Now).Round(time.Second)))
		}
	}
	if p.r.State.Parked {
		out = append(out, "somebody to resume it")
	}
	return strings.Join(out, ", ")
}

func sortedKeys[V any](m map[int]V) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func attempts(s run.State) string {
	var out []string
	for _, a := range s.Attempts {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", a.N, a.Source, a.Status, a.Err)))
	}
	return strings.Join(append(out, fmt.Sprintf("base %s, %d model calls, %d rounds", s.Base.Hash, s.Calls, s.Rounds)), "\n")
}

// line is one event for a reader.
func line(e run.Event) string {
	switch c := e.Command.(type) {
	case run.Ask:
		return string(c.Worker) + askText(c)
	case run.Ended:
		text := fmt.Sprintf("ended %s: %s", c.State, c.Reason)
		if c.Dead != nil {
			text += fmt.Sprintf(" [dead letter: %s of %s (%d)]", c.Dead.Category, c.Dead.Worker, c.Dead.Ask)
		}
		return text
	case run.Settled:
		text := fmt.Sprintf("settled %s: %s to %s", c.State, c.Before, c.After)
		if len(c.Conflicts) > 0 {
			text += fmt.Sprintf(", kept %v", c.Conflicts)
		}
		if !c.Proven {
			text = fmt.Sprintf("settled %s: unproven: %s", c.State, c.Reason)
		}
		return text
	case run.Cancelling:
		return "cancelling: " + c.Reason
	case run.Due:
		return "due: " + e.Fact.Timer
	default:
		return e.Command.Name()
	}
}

func askText(a run.Ask) string {
	var out []string
	switch {
	case a.Test != nil && a.Test.Baseline == nil:
		out = append(out, "the project")
	case a.Test != nil:
		out = append(out, names(a.Test.Candidates))
	case a.Apply != nil:
		out = append(out, names(a.Apply.Candidates)+" to "+a.Apply.Base.Hash)
	case a.Validate != nil:
		out = append(out, strconv.Itoa(len(a.Validate.Proposals))+" proposed")
	case a.Review != nil:
		out = append(out, a.Review.Candidate.Note)
	case a.Deliver != nil:
		out = append(out, string(a.Deliver.Mode))
	case a.Debug != nil:
		out = append(out, debugText(*a.Debug)...)
	}
	if a.Again > 0 {
		out = append(out, fmt.Sprintf("again %d after %q", a.Again, a.Last))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}

func debugText(in run.DebugInput) []string {
	out := []string{fmt.Sprintf("attempt %d by %s on %s with %d red", in.Attempt, in.Source, in.Base.Hash, in.Evidence.Counts.Failed)}
	for i, r := range in.Rejected {
		if i >= len(in.Rejected)-2 {
			out = append(out, strings.TrimRight("beside "+r.Gate+": "+r.Feedback, ": "))
		}
	}
	if n := len(in.Rejected); n > 2 {
		out = append(out, fmt.Sprintf("%d refusals in all", n))
	}
	if in.Hint != "" {
		out = append(out, "hint: "+in.Hint)
	}
	if in.Given != nil {
		out = append(out, "given: "+in.Given.SHA256)
	}
	if in.Patch != "" {
		out = append(out, "patch: "+in.Patch)
	}
	if in.Feedback != "" {
		out = append(out, "feedback: "+in.Feedback)
	}
	if len(in.Tried) > 0 {
		out = append(out, fmt.Sprintf("%d tried", len(in.Tried)))
	}
	if in.Calls != nil {
		out = append(out, fmt.Sprintf("%d calls left", *in.Calls))
	}
	return out
}

func names(cs []run.Candidate) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Note)
	}
	return strings.Join(out, " ")
}

// scenarioRuns plays a scenario and returns its runs.
func scenarioRuns(t *testing.T, name string) []*runtest.Run {
	t.Helper()
	p := &play{}
	datadriven.RunTest(t, filepath.Join("testdata", "scenario", name+".txt"), p.do)
	return append(p.done, p.r)
}
