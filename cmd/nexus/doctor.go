package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

type doctorCmd struct {
	Dir    string `arg:"" optional:"" help:"A project folder: say how its tests would be run."`
	Common common `embed:""`
}

// Run says what is there.
func (c *doctorCmd) Run(ctx context.Context, e *env) (err error) {
	row := func(ok bool, name, format string, v ...any) {
		fmt.Fprintf(e.out, "%s %-10s %s\n", mark(ok), name, fmt.Sprintf(format, v...))
	}
	row(true, "nexus", "%s", version())
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	n, err := c.Common.open(ctx, e)
	if err != nil {
		row(false, "bus", "%v", err)
		return exitError(1)
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if pid, attached := n.Attached(); attached {
		row(true, "bus", "nats-server %s, run by process %d", n.Bus().ServerVersion(), pid)
	} else {
		row(true, "bus", "nats-server %s", n.Bus().ServerVersion())
	}
	if usage, err := n.Bus().Usages(ctx); err == nil {
		total := uint64(0)
		for _, u := range usage {
			total += u.Bytes
		}
		row(true, "state", "%s, %s in %d streams", cfg.State, size(int64(total)), len(usage))
	} else {
		row(false, "state", "%v", err)
	}
	rep := sandbox.Detect(ctx, "")
	row(rep.Level != sandbox.LevelNone, "sandbox", "level %s", rep.Level)
	for _, m := range rep.Missing {
		fmt.Fprintf(e.out, "             %s\n", m)
	}
	if cfg.Model != nil {
		row(true, "model", "%s", cfg.Model.Name)
	} else {
		row(false, "model", "none: only the built-in engine looks for fixes; set NEXUS_MODEL_BASE_URL and NEXUS_MODEL for more")
	}
	if c.Dir == "" {
		return nil
	}
	plan, err := testrun.Find(ctx, c.Dir, "")
	if err != nil {
		row(false, "tests", "%v", err)
		return exitError(1)
	}
	row(true, "tests", "%s", plan)
	if plan.Note != "" {
		fmt.Fprintf(e.out, "             %s\n", plan.Note)
	}
	_, err = os.Stat(c.Dir)
	return err
}
