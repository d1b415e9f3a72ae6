package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

// stager writes trees into private folders for code to run in.
type stager struct {
	store rollback.Blobs
	// temp is where the folders are made; empty means the system's. hidden
	// is what code in them must not see: the state folder.
	temp   string
	hidden []string
}

// with calls do with a staged copy of the tree, which is removed afterwards.
// The copy's folder has the project's own name, as some tests look at it.
func (s stager) with(ctx context.Context, tree run.Tree, name string, do func(dir string, m rollback.Manifest) error) (err error) {
	m, err := rollback.Load(ctx, s.store, tree)
	if err != nil {
		return err
	}
	top, err := sandbox.MakeTemp(s.temp)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(top)) }()
	dir := filepath.Join(top, filepath.Base(name))
	if err := rollback.Materialise(ctx, m, dir, s.store); err != nil {
		return err
	}
	return do(dir, m)
}
