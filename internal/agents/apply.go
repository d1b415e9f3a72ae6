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
	out := &run.ApplyAnswer{}
	for _, c := range in.Candidates {
		from := base
		if c.OnOrigin {
			from = origin
		}
		staged, err := a.stage(ctx, origin, from, c)
		if err != nil {
			return run.Answer{}, fmt.Errorf("candidate %d: %w", c.Rank, err)
		}
		out.Candidates = append(out.Candidates, staged)
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

// stage returns c as a difference from the project as it was, with its tree.
func (a *applier) stage(ctx context.Context, origin, base rollback.Manifest, c run.Candidate) (run.Candidate, error) {
	next, err := rollback.Stage(ctx, base, c.Changes, a.store)
	if err != nil {
		return c, err
	}
	tree, err := next.Store(ctx, a.store)
	if err != nil {
		return c, err
	}
	changes, err := rollback.Diff(origin, next)
	if err != nil {
		return c, err
	}
	diff, err := diffText(ctx, a.store, origin, next, changes)
	if err != nil {
		return c, err
	}
	if c.Diff, err = a.store.Put(ctx, diff); err != nil {
		return c, err
	}
	c.Changes, c.Hash, c.Tree, c.OnOrigin = changes, run.HashChanges(changes), &tree, true
	return c, nil
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
