package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// projects makes the handles with which runs write project folders.
type projects struct{ state string }

func (p projects) of(runID, dir string) rollback.Project {
	return rollback.Project{
		Dir: dir, Run: runID,
		Journal: filepath.Join(p.state, "journal", runID+".journal"),
		Saved:   filepath.Join(p.state, "saved", runID),
	}
}

// errNotPending says that the run no longer waits for the answer: another
// worker gave it, or the run was stopped. The answer would be dropped.
var errNotPending = errors.New("the run no longer waits for this answer")

// locked calls do under the lock of the folder, after it has read the run
// again: a worker whose ask is no longer pending writes nothing.
func locked(ctx context.Context, job bus.Job, dir string, do func() error) (err error) {
	unlock, err := rollback.Lock(dir)
	if rollback.IsKind(err, rollback.KindBusy) {
		return failure.New(failure.Connection, "lock", err) // its holder will be done soon
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	pending, err := job.Pending(ctx)
	if err != nil {
		return err
	}
	if !pending {
		return errNotPending
	}
	return do()
}

// drifted returns the paths of a drift, or false for any other error. A path
// that became unsafe (a second name, a link that leads out) since the snapshot
// has drifted too: the gates saw it when it was not.
func drifted(err error) ([]string, bool) {
	var e *rollback.Error
	if errors.As(err, &e) && (e.Kind == rollback.KindDrift || e.Kind == rollback.KindUnsafe) {
		if len(e.Paths) == 0 {
			return []string{"?"}, true
		}
		return run.CutList(e.Paths, run.MaxPaths, run.MaxText), true
	}
	return nil, false
}

// badInput marks errors about the folder itself as the task's own fault.
func badInput(err error) error {
	var e *rollback.Error
	kinds := []rollback.Kind{
		rollback.KindMissing, rollback.KindNotFolder, rollback.KindEmpty, rollback.KindUnreadable,
		rollback.KindLimit, rollback.KindUnsteady,
	}
	if errors.As(err, &e) && slices.Contains(kinds, e.Kind) {
		return &bus.BadInput{Err: err}
	}
	return err
}

// trees loads two manifests.
func trees(ctx context.Context, store rollback.Blobs, a, b run.Tree) (rollback.Manifest, rollback.Manifest, error) {
	x, err := rollback.Load(ctx, store, a)
	if err != nil {
		return x, x, err
	}
	y, err := rollback.Load(ctx, store, b)
	return x, y, err
}

// content reads a file of a manifest.
func content(ctx context.Context, store rollback.Blobs, m rollback.Manifest, path string) ([]byte, bool, error) {
	e, ok := m.Lookup(path)
	if !ok || e.Type != rollback.TypeFile {
		return nil, false, nil
	}
	data, err := rollback.Read(ctx, store, e.SHA256)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return data, true, nil
}
