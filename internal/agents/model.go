package agents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// Model is a configured model and what must never leave with a request.
type Model struct {
	Client llm.Model
	Name   string
	// Secrets are exact values that are masked, such as the API key.
	Secrets []string
	// Recordings is the folder where answers are kept for each run, so that a
	// crash does not pay for the same answer twice.
	Recordings string
}

// Sizes of a request's context, in bytes; the second one is for a model that
// refused the first as too long.
const (
	contextBytes      = 96 << 10
	smallContextBytes = 16 << 10
)

func (d *debugger) askModel(ctx context.Context, job bus.Job) (*run.DebugAnswer, error) {
	in := job.Ask.Debug
	if d.model == nil {
		return &run.DebugAnswer{Reason: "no model is configured: set " + llm.EnvBaseURL + " and " + llm.EnvModel}, nil
	}
	base, err := rollback.Load(ctx, d.store, in.Base)
	if err != nil {
		return nil, err
	}
	budget := llm.NewBudget(math.MaxInt, 0)
	if in.Calls != nil {
		budget = llm.NewBudget(*in.Calls, 0)
	}
	model := d.model.chain(job.Run, budget)
	req, answer, err := d.converse(ctx, model, base, job.Ask)
	calls := budget.Used()
	var spent *llm.SpentError
	switch {
	case errors.As(err, &spent):
		return &run.DebugAnswer{Reason: spent.Error(), Calls: calls}, nil
	case err != nil:
		return nil, &modelError{err, calls}
	}
	ans := &run.DebugAnswer{
		Calls: calls, Reason: answer.Reason,
		PromptTokens: answer.Usage.Prompt, AnswerTokens: answer.Usage.Completion,
	}
	ref, err := d.store.Put(ctx, []byte(req.System+"\n\n"+req.Prompt))
	if err != nil {
		return nil, err
	}
	ans.Request = &ref
	switch {
	case answer.Finish == llm.FinishRefused:
		ans.Reason = "the model refused: " + answer.Reason
		return ans, nil
	case answer.Text == "":
		ans.Reason = "the model's answer is empty"
		return ans, nil
	}
	text, err := d.store.Put(ctx, []byte(answer.Text))
	if err != nil {
		return nil, err
	}
	ans.Proposals = []run.Proposal{{Text: text, Format: "auto", Finish: answer.Finish, Note: d.model.Name}}
	return ans, nil
}

// converse asks once, and once more with less context when the request was
// too long for the model. The request that it returns has its secrets masked.
func (d *debugger) converse(ctx context.Context, model llm.Model, base rollback.Manifest, ask run.Ask) (llm.Request, llm.Answer, error) {
	mask := llm.NewRedactor(d.model.Secrets...)
	req, err := d.request(ctx, base, ask, contextBytes)
	if err != nil {
		return req, llm.Answer{}, err
	}
	answer, err := model.Ask(ctx, req)
	if llm.ContextTooLong(err) {
		small, err2 := d.request(ctx, base, ask, smallContextBytes)
		if err2 != nil {
			return req, answer, err2
		}
		if small.Prompt != req.Prompt {
			req = small
			answer, err = model.Ask(ctx, req)
		}
	}
	req.Prompt = mask.Redact(req.Prompt)
	return req, answer, err
}

// chain puts the decorators round the client for one run.
func (m *Model) chain(runID string, budget *llm.Budget) llm.Model {
	store := recordings{filepath.Join(m.Recordings, runID)}
	return llm.Redacting(llm.Recording(llm.Budgeted(m.Client, budget), store, m.Name), llm.NewRedactor(m.Secrets...))
}

// modelError is a failed request with the number of calls that it took.
type modelError struct {
	error
	calls int
}

// Unwrap returns the cause.
func (e *modelError) Unwrap() error { return e.error }

// ModelCalls is how many calls were made.
func (e *modelError) ModelCalls() int { return e.calls }

// recordings keeps the answers of one run as files.
type recordings struct{ dir string }

// Get implements llm.Store.
func (r recordings) Get(_ context.Context, key string) ([]byte, bool, error) {
	data, err := os.ReadFile(filepath.Join(r.dir, key+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// Put implements llm.Store.
func (r recordings) Put(_ context.Context, key string, data []byte) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	fault.Point("agents.recording")
	err := renameio.WriteFile(filepath.Join(r.dir, key+".json"), data, 0o600)
	fault.Point("agents.recorded")
	return err
}
