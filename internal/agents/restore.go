package agents

import (
	"context"
	"errors"
	"os"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// restorer answers the end of every run that was not approved: it takes back
// what the run wrote and proves it from the disk. It needs no model.
type restorer struct {
	store    rollback.Blobs
	projects projects
}

func (r *restorer) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Rollback
	if in.Origin == nil {
		return run.Answer{Rollback: &run.RollbackAnswer{}}, nil // nothing was ever read, so nothing was written
	}
	origin, err := rollback.Load(ctx, r.store, *in.Origin)
	if err != nil {
		return run.Answer{}, err
	}
	ans := &run.RollbackAnswer{}
	err = locked(ctx, job, in.Dir, func() error {
		s, err := job.State(ctx)
		if err != nil {
			return err
		}
		rep, err := takeBack(ctx, r.projects.of(job.Run, in.Dir), origin, written(s), r.store)
		ans = proven(rep)
		return err
	})
	return run.Answer{Rollback: ans}, err
}

// proven is what a restore proved; its lists may be longer than an event.
func proven(r rollback.Report) *run.RollbackAnswer {
	few := func(paths []string) []string { return run.CutList(paths, run.MaxPaths, run.MaxText) }
	return &run.RollbackAnswer{
		Before: r.Before, After: r.After,
		Restored: few(r.Restored), Conflicts: few(r.Conflicts), Foreign: few(r.Foreign),
		Counts: run.RollbackCounts{Restored: len(r.Restored), Conflicts: len(r.Conflicts), Foreign: len(r.Foreign)},
	}
}

// Undo takes back what a run wrote to its folder by its journal alone: for a
// run whose log is gone. journal is the file; one that is missing means that
// the run wrote nothing.
func Undo(ctx context.Context, state, runID, dir string, store rollback.Blobs) (rep rollback.Report, journal string, err error) {
	p := projects{state: state}.of(runID, dir)
	if _, err := os.Stat(p.Journal); errors.Is(err, os.ErrNotExist) {
		return rep, p.Journal, nil
	}
	unlock, err := rollback.Lock(dir)
	if err != nil {
		return rep, p.Journal, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	rep, err = p.Undo(ctx, store)
	return rep, p.Journal, err
}

// Restore takes back what a run wrote to its folder, outside any ask: for a
// run that has settled without proof. It succeeds only when every path that
// the run wrote was read back as it was.
func Restore(ctx context.Context, state, runID, dir string, origin run.Tree, store rollback.Blobs) (err error) {
	unlock, err := rollback.Lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err := rollback.Load(ctx, store, origin)
	if err != nil {
		return err
	}
	_, err = projects{state: state}.of(runID, dir).Restore(ctx, m, store)
	return err
}
