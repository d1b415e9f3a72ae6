package agents

import (
	"bytes"
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// applier answers run.ApplyInput with run.ApplyAnswer: it makes the tree of
// each candidate, and in place writes the first one to the project as well.
// It needs no model.
type applier struct {
	store    rollback.Blobs
	projects projects
}

func (a *applier) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Apply
	origin, base, err := trees(ctx, a.store, in.Origin, in.Base)
	if err != nil {
		return run.Answer{}, err
	}
	guarded, err := loadProtected(ctx, a.store, in.Protected)
	if err != nil {
		return run.Answer{}, err
	}
	out := &run.ApplyAnswer{}
	for _, c := range in.Candidates {
		from := base
		if c.OnOrigin {
			from = origin
		}
		staged, why, err := a.stage(ctx, origin, from, c, guarded)
		switch {
		case err != nil:
			return run.Answer{}, fmt.Errorf("candidate %d: %w", c.Rank, err)
		case why != nil:
			out.Refused = append(out.Refused, *why)
		default:
			out.Candidates = append(out.Candidates, staged)
		}
	}
	if !in.InPlace || len(out.Candidates) == 0 {
		return run.Answer{Apply: out}, nil
	}
	out.Candidates = out.Candidates[:1]
	err = locked(ctx, job, in.Dir, func() error {
		p := a.projects.of(job.Run, in.Dir)
		if _, err := p.Restore(ctx, origin, a.store); err != nil {
			return err
		}
		return p.Apply(ctx, out.Candidates[0].Changes, a.store)
	})
	if paths, ok := drifted(err); ok {
		out.Drift = paths
		err = nil
	}
	return run.Answer{Apply: out}, err
}

// stage returns c as a difference from the project as it was, with its tree;
// or why no tree can take it.
func (a *applier) stage(ctx context.Context, origin, base rollback.Manifest, c run.Candidate, guarded protection) (run.Candidate, *run.Rejection, error) {
	next, err := rollback.Stage(ctx, base, c.Changes, a.store)
	var changes []run.Change
	if err == nil {
		changes, err = rollback.Diff(origin, next)
	}
	if why := refusable(err); why != "" {
		r := refusal(c, reasonUnsafe, why)
		return c, &r, nil
	}
	if err != nil {
		return c, nil, err
	}
	if p := guarded.touched(origin, changes); p != "" {
		r := refusal(c, reasonProtected, p+" is protected: tests and runner configuration stay as they were")
		return c, &r, nil
	}
	tree, err := next.Store(ctx, a.store)
	if err != nil {
		return c, nil, err
	}
	diff, err := diffText(ctx, a.store, origin, next, changes)
	if err != nil {
		return c, nil, err
	}
	if c.Diff, err = a.store.Put(ctx, diff); err != nil {
		return c, nil, err
	}
	c.Changes, c.Hash, c.Tree, c.OnOrigin = changes, run.HashChanges(changes), &tree, true
	if c.Oversized() {
		r := refusal(c, reasonTooMany, tooMany(c))
		return c, &r, nil
	}
	return c, nil, nil
}

// diffText is the unified diff of the changes from old to next.
func diffText(ctx context.Context, store rollback.Blobs, old, next rollback.Manifest, changes []run.Change) ([]byte, error) {
	var out bytes.Buffer
	for _, ch := range changes {
		before, _, err := content(ctx, store, old, ch.Path)
		if err != nil {
			return nil, err
		}
		after, _, err := content(ctx, store, next, ch.Path)
		if err != nil {
			return nil, err
		}
		if ch.Op != run.OpCreate && before == nil {
			before = []byte{}
		}
		if ch.Op != run.OpDelete && after == nil {
			after = []byte{}
		}
		out.Write(patch.Diff(ch.Path, before, after))
	}
	return out.Bytes(), nil
}
