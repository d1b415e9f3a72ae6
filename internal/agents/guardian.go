package agents

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// guardian answers run.ReviewInput with run.ReviewAnswer. It believes nothing
// that it was told: it computes the hashes again from the artifacts and judges
// the evidence again. Anything missing is a rejection. It needs no model.
type guardian struct{ store rollback.Blobs }

func (g *guardian) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Review
	ans := &run.ReviewAnswer{Word: run.WordApprove, Candidate: in.Candidate.Hash}
	if in.Candidate.Tree != nil {
		ans.Tree = in.Candidate.Tree.Hash
	}
	for _, check := range []func(context.Context, *run.ReviewInput) (string, error){g.hashes, g.paths, g.evidence} {
		reason, err := check(ctx, in)
		if err := passing(ctx, err); err != nil {
			return run.Answer{}, err
		}
		if err != nil {
			reason = err.Error()
		}
		if reason != "" {
			ans.Word, ans.Reasons = run.WordReject, append(ans.Reasons, reason)
		}
	}
	ans.Reasons = run.CutList(ans.Reasons, maxReasons, run.MaxText)
	if human := run.CutList(forPeople(in), maxReasons, run.MaxText); ans.Word == run.WordApprove && len(human) > 0 {
		ans.Word, ans.Reasons = run.WordHuman, human
	}
	return run.Answer{Review: ans}, nil
}

// maxReasons is the most reasons that a reviewer gives.
const maxReasons = 20

// hashes checks that what was tested is what would be delivered.
func (g *guardian) hashes(ctx context.Context, in *run.ReviewInput) (string, error) {
	c := in.Candidate
	switch {
	case c.Tree == nil || c.Tree.Hash == "" || c.Hash == "":
		return "the candidate has no hash", nil
	case len(c.Changes) == 0:
		return "the candidate changes nothing", nil
	case in.Verdict.Tree != c.Tree.Hash:
		return "the tested tree is not the candidate's", nil
	case run.HashChanges(c.Changes) != c.Hash:
		return "the candidate's hash does not belong to its changes", nil
	}
	origin, next, err := trees(ctx, g.store, in.Origin, *c.Tree)
	if err != nil {
		return "", err
	}
	diff, err := rollback.Diff(origin, next)
	if err != nil {
		return "", err
	}
	if run.HashChanges(diff) != c.Hash {
		return "the candidate's tree differs from the project by something else than its changes", nil
	}
	return "", nil
}

// paths checks that only allowed files are touched.
func (g *guardian) paths(ctx context.Context, in *run.ReviewInput) (string, error) {
	guarded, err := loadProtected(ctx, g.store, in.Protected)
	if err != nil {
		return "", err
	}
	origin, err := rollback.Load(ctx, g.store, in.Origin)
	if err != nil {
		return "", err
	}
	if p := guarded.touched(origin, in.Candidate.Changes); p != "" {
		return p + " is protected: tests and runner configuration stay as they were", nil
	}
	for _, ch := range in.Candidate.Changes {
		if ch.Op == run.OpCreate && ProtectedName(ch.Path) && !slices.Contains(in.Targets, ch.Path) {
			return ch.Path + " is a new test or configuration of the runner, and none of the targets", nil
		}
		if len(in.Targets) > 0 && !slices.ContainsFunc(in.Targets, func(t string) bool { return within(t, ch.Path) }) {
			return ch.Path + " is none of the targets", nil
		}
	}
	return "", nil
}

// within reports whether p is the target or lies below it.
func within(target, p string) bool {
	target = path.Clean(target)
	return target == "." || p == target || strings.HasPrefix(p, target+"/")
}

// evidence judges the recorded evidence again.
func (g *guardian) evidence(ctx context.Context, in *run.ReviewInput) (string, error) {
	var base, got run.Evidence
	if err := loadJSON(ctx, g.store, &in.Baseline.Evidence, &base); err != nil {
		return "", fmt.Errorf("evidence of the baseline: %w", err)
	}
	if err := loadJSON(ctx, g.store, &in.Verdict.Evidence, &got); err != nil {
		return "", fmt.Errorf("evidence: %w", err)
	}
	v := run.Judge(base, got)
	switch {
	case base.Tree != in.Origin.Hash:
		return "the baseline is that of another tree", nil
	case v.Kind != run.VerdictPassed:
		return fmt.Sprintf("the evidence does not prove the fix: %s %s", v.Kind, v.Reason), nil
	case in.Candidate.Tree == nil || v.Tree != in.Candidate.Tree.Hash:
		return "the evidence is that of another tree", nil
	}
	return "", nil
}

// forPeople lists what only a person may approve.
func forPeople(in *run.ReviewInput) []string {
	var out []string
	for _, t := range in.Candidate.Tripwires {
		out = append(out, "only a person may approve this: "+t)
	}
	if in.Verdict.Weak {
		out = append(out, "the only evidence is the exit status of the test command, which proves nothing by itself")
	}
	return out
}
