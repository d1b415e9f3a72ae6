package agents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// deliverer answers run.DeliverInput with run.DeliverAnswer: it brings the
// approved tree to the user and verifies on the disk what it did. It needs no
// model.
type deliverer struct {
	store    rollback.Blobs
	projects projects
	patches  string
}

func (d *deliverer) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Deliver
	ans := &run.DeliverAnswer{Delivered: in.Mode}
	if in.Candidate != nil {
		ans.Candidate = in.Candidate.Hash
	}
	if in.Mode == run.DeliverApply {
		err := locked(ctx, job, in.Dir, func() error { return d.apply(ctx, job, ans) })
		if paths, ok := drifted(err); ok {
			return run.Answer{Deliver: &run.DeliverAnswer{Delivered: run.DeliverNone, Drift: paths}}, nil
		}
		return run.Answer{Deliver: ans}, err
	}
	if in.InPlace && in.Candidate != nil {
		if err := locked(ctx, job, in.Dir, func() error { return d.takeBack(ctx, job) }); err != nil {
			return run.Answer{}, err
		}
	}
	now, err := rollback.Scan(ctx, in.Dir, rollback.Limits{})
	if err != nil {
		return run.Answer{}, err
	}
	ans.Before, ans.After = now.Hash(), now.Hash()
	if in.Mode == run.DeliverPatch {
		ans.Patch, err = d.patch(ctx, job)
	}
	return run.Answer{Deliver: ans}, err
}

// apply writes the changes and reads every touched path back.
func (d *deliverer) apply(ctx context.Context, job bus.Job, ans *run.DeliverAnswer) error {
	in := job.Ask.Deliver
	before, err := rollback.Scan(ctx, in.Dir, rollback.Limits{})
	if err != nil {
		return err
	}
	if err := d.projects.of(job.Run, in.Dir).Apply(ctx, in.Candidate.Changes, d.store); err != nil {
		return err
	}
	fault.Point("agents.deliver.applied")
	after, err := rollback.Scan(ctx, in.Dir, rollback.Limits{})
	if err != nil {
		return err
	}
	tested, err := rollback.Load(ctx, d.store, *in.Candidate.Tree)
	if err != nil {
		return err
	}
	for _, ch := range in.Candidate.Changes {
		p, err := tested.Resolve(ch.Path)
		if err != nil {
			return err
		}
		want, ok := tested.Lookup(p)
		got, has := after.Lookup(p)
		if ok != has || want != got {
			return fmt.Errorf("deliver: %s on the disk is not what was tested", ch.Path)
		}
	}
	ans.Before, ans.After = before.Hash(), after.Hash()
	return nil
}

// takeBack restores a project that was healed in place but is to be
// delivered otherwise.
func (d *deliverer) takeBack(ctx context.Context, job bus.Job) error {
	in := job.Ask.Deliver
	origin, err := rollback.Load(ctx, d.store, in.Origin)
	if err != nil {
		return err
	}
	_, err = d.projects.of(job.Run, in.Dir).Restore(ctx, origin, d.store)
	return err
}

// patch writes the difference durably to a file of the state folder.
func (d *deliverer) patch(ctx context.Context, job bus.Job) (string, error) {
	data, err := rollback.Read(ctx, d.store, job.Ask.Deliver.Candidate.Diff.SHA256)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(d.patches, 0o700); err != nil {
		return "", fmt.Errorf("deliver: %w", err)
	}
	file := filepath.Join(d.patches, job.Run+".patch")
	fault.Point("agents.deliver.patch")
	if err := renameio.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("deliver: %w", err)
	}
	fault.Point("agents.deliver.patched")
	return file, rollback.SyncFolders(d.patches)
}
