package main

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
)

type replayCmd struct {
	ID     string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	Verify bool   `default:"true" help:"Fold the log again and compare every decision, byte for byte. This is the default, and there is no other mode."`
	Common common `embed:""`
}

// Run decides a recorded run again.
func (c *replayCmd) Run(ctx context.Context, e *env) error {
	return c.Common.read(ctx, e, c.ID, func(e *env, _ *node.Node, log bus.Log, s run.State) error {
		diffs, err := run.Verify(s.ID, log.Events)
		if err != nil {
			return err
		}
		if len(diffs) == 0 {
			fmt.Fprintf(e.out, "run %s: %d events, every decision is the same (%s)\n", s.ID, len(log.Events), run.Summarise(s).State)
			return nil
		}
		for _, d := range diffs {
			fmt.Fprintln(e.out, d)
		}
		return exitError(2)
	})
}
