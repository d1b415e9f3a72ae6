package agents

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	policyrules "nexuscore.dev/nexus/internal/validate/policy"
)

// policy answers run.ReviewInput with run.ReviewAnswer: rules over the
// difference, fail closed. It needs no model.
type policy struct {
	store rollback.Blobs
	// set is what this process judges by; nil means the default rules.
	set *policyrules.Set
}

func (p *policy) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Review
	ans := &run.ReviewAnswer{Word: run.WordApprove, Candidate: in.Candidate.Hash}
	if in.Candidate.Tree != nil {
		ans.Tree = in.Candidate.Tree.Hash
	}
	found, err := p.judge(ctx, in, ans)
	if err := passing(ctx, err); err != nil {
		return run.Answer{}, err
	}
	ans.Reasons, ans.Notes = say(policyrules.Blocking(found)), say(policyrules.Notes(found))
	if err != nil {
		ans.Reasons = append(ans.Reasons, err.Error())
	}
	if len(ans.Reasons) > 0 {
		ans.Word, ans.Reasons = run.WordHuman, run.CutList(ans.Reasons, maxReasons, run.MaxText)
	}
	return run.Answer{Review: ans}, nil
}

func say(found []policyrules.Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.String())
	}
	return run.CutList(out, maxReasons, run.MaxText)
}

// judge records the rules in ans and holds the change against them.
func (p *policy) judge(ctx context.Context, in *run.ReviewInput, ans *run.ReviewAnswer) ([]policyrules.Finding, error) {
	set, err := policyrules.Of(p.set, in.Policy)
	if err != nil {
		return nil, fmt.Errorf("the rules of the task: %w", err)
	}
	ans.Rules = set.Version()
	if in.Candidate.Tree == nil {
		return nil, fmt.Errorf("the candidate has no tree")
	}
	origin, next, err := trees(ctx, p.store, in.Origin, *in.Candidate.Tree)
	if err != nil {
		return nil, err
	}
	guarded, err := loadProtected(ctx, p.store, in.Protected)
	if err != nil {
		return nil, err
	}
	if path := guarded.touched(origin, in.Candidate.Changes); path != "" {
		return nil, fmt.Errorf("%s is a test or the configuration of the runner", path)
	}
	var changes []policyrules.Change
	for _, ch := range in.Candidate.Changes {
		c := policyrules.Change{Path: ch.Path}
		if c.Old, c.OldMode, err = p.side(ctx, origin, ch.Path); err != nil {
			return nil, err
		}
		if c.New, c.NewMode, err = p.side(ctx, next, ch.Path); err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return set.Judge(ctx, changes)
}

// side is a file of a tree with its mode, nil when there is none.
func (p *policy) side(ctx context.Context, m rollback.Manifest, path string) ([]byte, uint32, error) {
	data, ok, err := content(ctx, p.store, m, path)
	if err != nil || !ok {
		return nil, 0, err
	}
	e, _ := m.Lookup(path)
	return append([]byte{}, data...), e.Mode, nil
}
