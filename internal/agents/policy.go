package agents

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// policy answers run.ReviewInput with run.ReviewAnswer: rules over the
// difference, fail closed. It needs no model.
type policy struct{ store rollback.Blobs }

// The built-in rules, by version.
const (
	policyVersion = "builtin-1"
	// maxFiles and maxBytes bound what may be delivered without a person.
	maxFiles = 20
	maxBytes = 1 << 20
)

func (p *policy) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Review
	ans := &run.ReviewAnswer{Word: run.WordApprove, Candidate: in.Candidate.Hash, Rules: policyVersion}
	if in.Candidate.Tree != nil {
		ans.Tree = in.Candidate.Tree.Hash
	}
	reasons, err := p.judge(ctx, in)
	if err := passing(ctx, err); err != nil {
		return run.Answer{}, err
	}
	if err != nil {
		reasons = append(reasons, err.Error())
	}
	if len(reasons) > 0 {
		ans.Word, ans.Reasons = run.WordHuman, run.CutList(reasons, maxReasons, run.MaxText)
	}
	return run.Answer{Review: ans}, nil
}

func (p *policy) judge(ctx context.Context, in *run.ReviewInput) ([]string, error) {
	c := in.Candidate
	if c.Tree == nil {
		return []string{"the candidate has no tree"}, nil
	}
	origin, next, err := trees(ctx, p.store, in.Origin, *c.Tree)
	if err != nil {
		return nil, err
	}
	guarded, err := loadProtected(ctx, p.store, in.Protected)
	if err != nil {
		return nil, err
	}
	var out []string
	if path := guarded.touched(origin, c.Changes); path != "" {
		out = append(out, path+" is a test or the configuration of the runner")
	}
	if len(c.Changes) > maxFiles {
		out = append(out, fmt.Sprintf("%d files change, at most %d may without a person", len(c.Changes), maxFiles))
	}
	size := int64(0)
	for _, ch := range c.Changes {
		was, had := origin.Lookup(ch.Path)
		is, has := next.Lookup(ch.Path)
		size += is.Size
		switch {
		case had && !has:
			out = append(out, ch.Path+" is deleted")
		case had && was.Mode != is.Mode:
			out = append(out, fmt.Sprintf("%s changes its mode from %o to %o", ch.Path, was.Mode, is.Mode))
		case !had && is.Mode&0o111 != 0:
			out = append(out, ch.Path+" is a new executable file")
		}
	}
	if size > maxBytes {
		out = append(out, fmt.Sprintf("the changed files have %d bytes, at most %d may without a person", size, maxBytes))
	}
	return out, nil
}
