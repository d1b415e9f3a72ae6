package agents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	now, moved, err := d.look(ctx, job.Run, in)
	if err != nil {
		return run.Answer{}, err
	}
	switch {
	case len(moved) > 0:
		ans, err = d.refuse(ctx, job, moved)
	case in.Mode == run.DeliverApply:
		err = locked(ctx, job, in.Dir, func() error { return d.apply(ctx, job, now, ans) })
		if paths, ok := drifted(err); ok {
			ans, err = &run.DeliverAnswer{Delivered: run.DeliverNone, Drift: paths}, nil
		}
	default:
		err = d.elsewhere(ctx, job, now, ans)
	}
	return run.Answer{Deliver: ans}, err
}

// refuse delivers nothing because paths moved beside the candidate. What this
// run has in the folder goes first, in place or from a delivery that was
// killed: the next snapshot would take it for the user's.
func (d *deliverer) refuse(ctx context.Context, job bus.Job, moved []string) (*run.DeliverAnswer, error) {
	ans := &run.DeliverAnswer{Delivered: run.DeliverNone, Moved: moved}
	if job.Ask.Deliver.Candidate == nil {
		return ans, nil
	}
	conflicts, err := d.takeBack(ctx, job)
	if len(conflicts) > 0 {
		ans.Moved, ans.Drift = nil, conflicts
	}
	return ans, err
}

// elsewhere leaves the folder as it was, now when nothing was tried in it, and
// writes the patch file where one is asked for.
func (d *deliverer) elsewhere(ctx context.Context, job bus.Job, now rollback.Manifest, ans *run.DeliverAnswer) (err error) {
	in := job.Ask.Deliver
	if in.InPlace && in.Candidate != nil {
		if _, err := d.takeBack(ctx, job); err != nil {
			return err
		}
		if now, err = rollback.Scan(ctx, in.Dir, rollback.Limits{}); err != nil {
			return err
		}
	}
	ans.Before, ans.After = now.Hash(), now.Hash()
	if in.Mode == run.DeliverPatch {
		ans.Patch, err = d.patch(ctx, job)
	}
	return err
}

// look reads the folder, and lists paths that the candidate does not touch and
// that are no longer as the tests saw them. Its own paths, and what a killed
// delivery left beside them, are for Apply and Restore to judge.
func (d *deliverer) look(ctx context.Context, runID string, in *run.DeliverInput) (now rollback.Manifest, moved []string, err error) {
	if now, err = rollback.Scan(ctx, in.Dir, rollback.Limits{}); err != nil {
		return now, nil, err
	}
	tested := in.Origin
	if in.Candidate != nil {
		tested = *in.Candidate.Tree
	}
	before, after, err := trees(ctx, d.store, in.Origin, tested)
	if err != nil {
		return now, nil, err
	}
	own, project := before.Differs(after), d.projects.of(runID, in.Dir)
	moved = slices.DeleteFunc(now.Differs(before), func(p string) bool {
		return slices.Contains(own, p) || project.LeftOver(p)
	})
	return now, run.CutList(moved, run.MaxPaths, run.MaxText), nil
}

// apply writes the changes to the folder as it is, and reads every touched
// path back.
func (d *deliverer) apply(ctx context.Context, job bus.Job, before rollback.Manifest, ans *run.DeliverAnswer) error {
	in := job.Ask.Deliver
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

// takeBack restores what the run wrote to the folder, and returns the paths of
// it that somebody changed meanwhile, which were kept. A run that wrote nothing
// restores nothing.
func (d *deliverer) takeBack(ctx context.Context, job bus.Job) (conflicts []string, err error) {
	in := job.Ask.Deliver
	origin, err := rollback.Load(ctx, d.store, in.Origin)
	if err != nil {
		return nil, err
	}
	err = locked(ctx, job, in.Dir, func() error {
		rep, err := d.projects.of(job.Run, in.Dir).Restore(ctx, origin, d.store)
		conflicts = run.CutList(rep.Conflicts, run.MaxPaths, run.MaxText)
		return err
	})
	return conflicts, err
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
