package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// stager writes trees into private folders for code to run in.
type stager struct {
	store rollback.Blobs
	// temp is where the folders are made; empty means the system's.
	temp string
}

// with calls do with a staged copy of the tree, which is removed afterwards.
// The copy's folder has the project's own name, as some tests look at it.
func (s stager) with(ctx context.Context, tree run.Tree, name string, do func(dir string, m rollback.Manifest) error) (err error) {
	m, err := rollback.Load(ctx, s.store, tree)
	if err != nil {
		return err
	}
	top, err := os.MkdirTemp(s.temp, fmt.Sprintf("nexus-stage-%d-", os.Getpid()))
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	defer func() { err = errors.Join(err, removeAll(top)) }()
	dir := filepath.Join(top, filepath.Base(name))
	if err := rollback.Materialise(ctx, m, dir, s.store); err != nil {
		return err
	}
	return do(dir, m)
}

// removeAll removes a staged folder whatever modes the tests left behind.
func removeAll(top string) error {
	if os.RemoveAll(top) == nil {
		return nil
	}
	err := filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(p, 0o700) //nolint:gosec // about to be removed
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(top))
}
