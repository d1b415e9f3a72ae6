package agents

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// debugger answers run.DebugInput with run.DebugAnswer: raw proposals of one
// source, best first. The source "model" needs a model; "engine" needs none.
// Nothing that it says is believed: the gates and the tests decide.
type debugger struct {
	store rollback.Blobs
	stage stager
	model *Model
}

func (d *debugger) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	var ans *run.DebugAnswer
	var err error
	switch src := job.Ask.Debug.Source; src {
	case run.SourceModel:
		ans, err = d.askModel(ctx, job)
	case run.SourceEngine:
		ans, err = d.askEngine(ctx, job)
	default:
		err = fmt.Errorf("debugger: unknown source %q", src)
	}
	if err != nil {
		return run.Answer{}, err
	}
	ans.Reason = run.CutText(ans.Reason, run.MaxText)
	return run.Answer{Debug: ans}, nil
}
