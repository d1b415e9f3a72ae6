package agents

import (
	"context"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
)

func (d *debugger) askEngine(ctx context.Context, job bus.Job) (*run.DebugAnswer, error) {
	return &run.DebugAnswer{Reason: "nothing"}, nil
}
