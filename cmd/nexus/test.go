package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

type testCmd struct {
	Base      string `required:"" predictor:"folder" placeholder:"DIR" help:"The project as it was: its tests, runner and configuration are used."`
	Candidate string `required:"" predictor:"folder" placeholder:"DIR" help:"The project as it is to be judged."`

	Test        testCommand   `placeholder:"CMD" help:"Test command; default: found from the base's own files."`
	Level       string        `enum:",full,user,thin" default:"" placeholder:"LEVEL" help:"Demand a sandbox level: full, user or thin. Default: the best there is."`
	Net         string        `enum:"none,loopback,full" default:"none" help:"What the tests may reach: none, loopback or full."`
	Timeout     time.Duration `placeholder:"D" default:"10m" help:"Time limit of one execution of the suite."`
	TestTimeout time.Duration `placeholder:"D" default:"1m" help:"Time limit of one test, where the runner has one."`
	Output      string        `predictor:"file" placeholder:"FILE" help:"Write everything that the tests printed on the candidate to this file."`
	JSON        bool          `name:"json" help:"Print the verdict as one JSON object."`
}

// Help adds examples to the command's help.
func (testCmd) Help() string {
	return `The suite runs in the sandbox on the base, twice when that is quick, and then on the candidate. Tests, runner and
configuration are the base's; neither folder is written. An exit status alone is never believed: see README.md.

Examples:
  nexus test --base app --candidate app-fixed
  nexus test --base app --candidate app-fixed --test "pytest -q tests/unit" --json
  nexus test --base . --candidate .          what the suite says about itself
  nexus test --base mod --candidate mod2 --test "go test ./..." --output log.txt

Verdicts: passed, failed, untrusted, limit, timeout, infrastructure.
Exit status: 0 passed, 2 any other verdict, 1 wrong usage.`
}

// testReport is what --json prints.
type testReport struct {
	Verdict  run.VerdictKind `json:"verdict"`
	Reason   string          `json:"reason"`
	Level    string          `json:"level"`
	Runner   string          `json:"runner"`
	Weak     bool            `json:"weak"`
	Passed   int             `json:"passed"`
	Failed   []string        `json:"failed"`
	Fixed    []string        `json:"fixed"`
	Broken   []string        `json:"broken"`
	Missing  []string        `json:"missing"`
	Flaky    []string        `json:"flaky"`
	Ignored  []string        `json:"ignored"`
	Seconds  float64         `json:"seconds"`
	Tail     string          `json:"tail"`
	BaseTail string          `json:"base_tail,omitempty"`
}

// Run judges a candidate.
func (c *testCmd) Run(ctx context.Context, e *env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Timeout <= 0 || c.TestTimeout <= 0 {
		return fmt.Errorf("a time limit must be longer than 0")
	}
	for _, dir := range []string{c.Base, c.Candidate} {
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, cause(err))
		} else if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
	}
	t := agents.Trial{
		Base: c.Base, Candidate: c.Candidate, Test: string(c.Test), Timeout: c.Timeout, TestTimeout: c.TestTimeout,
		Level: sandbox.Level(c.Level), Network: sandbox.Network(c.Net),
	}
	got, err := t.Run(ctx)
	if err != nil {
		return err
	}
	if c.Output != "" {
		if err := os.WriteFile(filepath.Clean(c.Output), got.Output, 0o600); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	r := report(got)
	if c.JSON {
		err = json.NewEncoder(e.out).Encode(r)
	} else {
		err = r.print(e.out)
	}
	if err == nil && r.Verdict != run.VerdictPassed {
		err = exitError(2)
	}
	return err
}

func report(got agents.Trialled) testReport {
	list := func(ids []string) []string { return append([]string{}, ids...) }
	v := got.Verdict
	r := testReport{
		Verdict: v.Kind, Reason: v.Reason, Level: v.Level, Runner: v.Runner, Weak: v.Weak, Passed: v.Counts.Passed,
		Failed: list(v.Failed), Fixed: list(v.Fixed), Broken: list(v.Broken), Missing: list(v.Missing), Flaky: list(v.Flaky),
		Ignored: list(got.Ignored), Seconds: got.Seconds, Tail: v.Tail,
	}
	if v.Tail == "" {
		r.BaseTail = got.BaseTail
	}
	return r
}

func (r testReport) print(w io.Writer) error {
	p := &printer{w: w}
	if r.Verdict != run.VerdictPassed && r.Tail+r.BaseTail != "" {
		p.line("%s\n", r.Tail+r.BaseTail)
	}
	for _, l := range []struct {
		name string
		ids  []string
	}{{"fixed", r.Fixed}, {"broken", r.Broken}, {"failed", r.Failed}, {"missing", r.Missing}, {"flaky", r.Flaky}, {"ignored", r.Ignored}} {
		for _, id := range l.ids {
			p.line("%-8s %s", l.name, sandbox.Printable([]byte(id)))
		}
	}
	weak := ""
	if r.Weak {
		weak = ", weak: an exit status and nothing else"
	}
	p.line("%s %s  [%s, level %s, %d passed, %.1f s%s]", mark(r.Verdict == run.VerdictPassed), r.Verdict, r.Runner, r.Level, r.Passed, r.Seconds, weak)
	if r.Reason != "" {
		p.line("  %s", sandbox.Printable([]byte(r.Reason)))
	}
	return p.err
}

// printer keeps the first error of several lines.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, v ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", v...)
	}
}
