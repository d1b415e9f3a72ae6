package agents

import (
	"context"
	"errors"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// debugger answers run.DebugInput with run.DebugAnswer: raw proposals of one
// source, best first. The source "model" needs a model; "engine" and "person"
// need none.
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
	case run.SourcePerson:
		ans, err = d.askPerson(ctx, job.Ask.Debug)
	default:
		err = fmt.Errorf("debugger: unknown source %q", src)
	}
	if err != nil {
		return run.Answer{}, err
	}
	ans.Reason = run.CutText(ans.Reason, run.MaxText)
	return run.Answer{Debug: ans}, nil
}

// askPerson passes on the difference that a person approved or wrote.
func (d *debugger) askPerson(ctx context.Context, in *run.DebugInput) (*run.DebugAnswer, error) {
	text := in.Given
	switch {
	case text != nil:
		if _, err := rollback.Read(ctx, d.store, text.SHA256); err != nil {
			return nil, fmt.Errorf("debugger: the approved difference: %w", err)
		}
	case in.Patch != "":
		ref, err := d.store.Put(ctx, []byte(in.Patch))
		if err != nil {
			return nil, fmt.Errorf("debugger: %w", err)
		}
		text = &ref
	default:
		return nil, errors.New("debugger: the decision brought no difference along")
	}
	p := run.Proposal{Text: *text, Format: patch.FormatDiff, Finish: "stop", Note: "by a person"}
	return &run.DebugAnswer{Proposals: []run.Proposal{p}}, nil
}
