package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/archive"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

type doctorCmd struct {
	Dir    string `arg:"" optional:"" predictor:"folder" help:"A project folder: say how its tests would be run. Without one, what this machine offers to every project."`
	Common common `embed:""`
}

// check prints one line after the other.
type check struct{ e *env }

func (c check) row(ok bool, name, format string, v ...any) {
	fmt.Fprintf(c.e.out, "%s %-10s %s\n", mark(ok), name, fold(fmt.Sprintf(format, v...), 13, c.e.width))
}

func (c check) more(format string, v ...any) {
	fmt.Fprintf(c.e.out, "             %s\n", fold(fmt.Sprintf(format, v...), 13, c.e.width))
}

// Run says what is there.
func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	k := check{e}
	k.row(true, "nexus", "%s", node.Version())
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	if err := c.bus(ctx, k, cfg); err != nil {
		return err
	}
	k.sandbox(ctx)
	if cfg.Model != nil {
		k.row(true, "model", "%s", cfg.Model.Name)
	} else {
		k.row(false, "model", "none: only the built-in engine looks for fixes; set NEXUS_MODEL_BASE_URL and NEXUS_MODEL for more")
	}
	if c.Dir == "" {
		return k.runners(ctx)
	}
	return k.project(ctx, c.Dir)
}

// bus looks at server, state and claims.
func (c *doctorCmd) bus(ctx context.Context, k check, cfg node.Config) (err error) {
	n, err := c.Common.open(ctx, k.e)
	if err != nil {
		k.row(false, "bus", "%v", err)
		return exitError(1)
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	where := ""
	if pid, attached := n.Attached(); attached {
		where = fmt.Sprintf(", run by process %d", pid)
	}
	k.row(true, "bus", "nats-server %s%s", n.Bus().ServerVersion(), where)
	if err := k.state(ctx, n.Bus(), cfg.State); err != nil {
		k.row(false, "state", "%v", err)
		return nil //nolint:nilerr // it is told; the other rows follow
	}
	if last, err := n.Bus().LastBurst(ctx); err != nil || !last.At.IsZero() {
		if err != nil {
			k.row(false, "failures", "%v", err)
		} else {
			k.row(false, "failures", "%s", burstText(last))
		}
	}
	claims, err := cfg.Claims.List()
	if err != nil {
		k.row(false, "claims", "%v", err)
		return nil //nolint:nilerr // it is told; the other rows follow
	}
	k.row(true, "claims", "%s: %d folder(s) in work", cfg.Claims.Path, len(claims))
	for _, x := range claims {
		if !x.Alive() {
			k.more("run %s on %s was interrupted: 'nexus heal %s --state %s' ends it", x.Run, clean(x.Dir), clean(x.Dir), clean(x.State))
		}
	}
	return nil
}

// state says how large each part of the state is, and when gc would help.
func (c check) state(ctx context.Context, b *bus.Bus, dir string) error {
	usage, err := b.Usages(ctx)
	if err != nil {
		return err
	}
	old, err := b.ClosedBefore(ctx, time.Now().Add(-gcAge))
	if err != nil {
		return err
	}
	var streams, folders []string
	full := int64(0)
	for _, u := range usage {
		if held := int64(u.Bytes); held > 0 { //nolint:gosec // no stream is that large
			streams = append(streams, u.Name+" "+size(held))
			if u.Name == usage[0].Name && u.MaxBytes > 0 {
				full = held * 100 / u.MaxBytes
			}
		}
	}
	for _, name := range append(archive.Folders(), "tmp") {
		if held := onDisk(filepath.Join(dir, name)); held > 0 {
			folders = append(folders, name+" "+size(held))
		}
	}
	c.row(full < fullLog, "state", "%s: %s on the disk", dir, size(onDisk(dir)))
	for _, part := range []struct {
		what  string
		sizes []string
	}{{"streams", streams}, {"folders", folders}} {
		if len(part.sizes) > 0 {
			c.more("%s: %s", part.what, strings.Join(part.sizes, ", "))
		}
	}
	if full >= nearFullLog {
		c.more("the log of runs is %d %% full; at %d %% no new task is taken: 'nexus gc --older 7d' makes room", full, fullLog)
	}
	if old > 0 {
		c.more("%d run(s) were closed more than 30 days ago: 'nexus gc --dry-run' says what can go", old)
	}
	return nil
}

// The log of runs takes no new task at fullLog percent; doctor says so before.
const (
	fullLog     = 80
	nearFullLog = 60
)

// onDisk is the size of all files in a folder; what goes away meanwhile does
// not count.
func onDisk(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // every error is a file that does not count
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// levels says what each level of isolation means, best first.
var levels = []struct {
	level sandbox.Level
	text  string
}{
	{sandbox.LevelVM, "a kernel of its own (gVisor): only when NEXUS_SANDBOX_LEVEL or --level asks for it"},
	{sandbox.LevelFull, "as user, with a cgroup: memory, processes and processor time are bounded by the kernel"},
	{sandbox.LevelUser, "namespaces of its own: tests see only the staged copy and the tools, no home, no network, no other process"},
	{sandbox.LevelThin, "Landlock and seccomp: tests cannot write outside the staged copy or reach the network, but see the machine's names and processes; for your own folders only"},
	{sandbox.LevelNone, "nothing can be isolated: no test is run, so nothing can be healed"},
}

func (c check) sandbox(ctx context.Context) {
	rep := sandbox.Detect(ctx, "")
	c.row(rep.Level != sandbox.LevelNone, "sandbox", "level %s", rep.Level)
	describeSandbox(c.e, rep)
	for _, l := range levels {
		sign := " "
		if l.level == rep.Level {
			sign = "*"
		}
		fmt.Fprintf(c.e.out, "             %s %-5s %s\n", sign, l.level, fold(l.text, 21, c.e.width))
	}
}

// runners lists what can run the tests of projects here.
func (c check) runners(ctx context.Context) error {
	known, err := c.interpreters(ctx)
	if err == nil {
		var more []string
		more, err = c.toolchains(ctx)
		known = append(known, more...)
	}
	switch {
	case err != nil:
		c.row(false, "runners", "%v", err)
		return exitError(1)
	case len(known) == 0:
		c.row(false, "runners", "none: only test commands known by their exit status can be run, and a person must confirm their fixes")
	default:
		c.row(true, "runners", "%s: test by test; any other command by its exit status, which a person must confirm", strings.Join(known, ", "))
	}
	return nil
}

// interpreters lists the interpreters, and the runners that they have.
func (c check) interpreters(ctx context.Context) (known []string, err error) {
	pytest, python := "", false
	err = testrun.Interpreters(ctx, func(path string, in *testrun.Interpreter, problem error) {
		switch {
		case problem != nil:
			c.row(false, "python", "%s: %s", clean(path), clean(problem.Error()))
			return
		case in.Pytest == "":
			c.row(agents.EngineRunsUnder(in), "python", "%s, %s: runs unittest; it has no pytest%s", in.Version, clean(in.Path), tooOldToRepair(in))
		default:
			pytest = cmp.Or(pytest, in.Pytest)
			c.row(agents.EngineRunsUnder(in), "python", "%s, %s: runs pytest %s and unittest%s", in.Version, clean(in.Path), in.Pytest, tooOldToRepair(in))
		}
		python = true
	})
	switch {
	case !python:
		c.row(false, "python", "none: projects in Python cannot be tested; install Python 3, or name an interpreter in %s", testrun.EnvPython)
		return nil, err
	case pytest == "":
		c.row(false, "pytest", "none: projects that need it cannot be tested; install it into the project's .venv, or name an interpreter in %s", testrun.EnvPython)
		return []string{"unittest"}, err
	}
	return []string{"pytest " + pytest, "unittest"}, err
}

// tooOldToRepair says what an interpreter that runs tests still cannot do.
func tooOldToRepair(in *testrun.Interpreter) string {
	if agents.EngineRunsUnder(in) {
		return ""
	}
	return "; too old for the engine, so only a model repairs projects under it"
}

// toolchains lists the other toolchains, and the runners that come with them.
func (c check) toolchains(ctx context.Context) (known []string, err error) {
	say := map[string][2]string{
		"go":   {"go test", "projects in Go"},
		"node": {"node --test", "projects in JavaScript"},
	}
	err = testrun.Toolchains(ctx, func(name string, tool *testrun.Tool, problem error) {
		if problem != nil {
			c.row(false, name, "%s cannot be tested: %s", say[name][1], clean(problem.Error()))
			return
		}
		c.row(true, name, "%s, %s: runs %s", strings.TrimPrefix(tool.Version, "go"), clean(tool.Path), say[name][0])
		known = append(known, say[name][0])
		if name == "node" {
			c.more("and jest or vitest, where a project has installed them")
			known = append(known, "jest", "vitest")
		}
	})
	return known, err
}

// project says how the tests of a folder would be run.
func (c check) project(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: %w", dir, cause(err))
	}
	plan, err := testrun.Find(ctx, dir, "")
	if err != nil {
		c.row(false, "tests", "%v", err)
		return exitError(1)
	}
	if plan.Python != nil && !agents.EngineRunsUnder(plan.Python) {
		c.row(false, "tests", "%s%s; name a newer one in %s", plan, tooOldToRepair(plan.Python), testrun.EnvPython)
	} else {
		c.row(true, "tests", "%s", plan)
	}
	if plan.Note != "" {
		c.more("%s", plan.Note)
	}
	if list := os.Getenv("PYTHONPATH"); list != "" && plan.Python != nil {
		c.more("PYTHONPATH is set here, but tests do not see it; where imports need it: --test %q", "PYTHONPATH="+clean(list)+" "+command(plan))
	}
	return nil
}

// command is how a person asks for the runner of a plan.
func command(plan testrun.Plan) string {
	if plan.Runner == testrun.Unittest {
		return "python -m unittest"
	}
	return plan.Runner
}
