package agents

import (
	"context"
	"errors"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// snapshotter answers run.SnapshotInput with run.SnapshotAnswer: it claims the
// folder for the run and stores every byte of it before anything is tried.
// It needs no model.
type snapshotter struct {
	store  rollback.Blobs
	claims rollback.Claims
	state  string
}

func (s *snapshotter) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	dir := job.Ask.Snapshot.Dir
	err := s.claims.Hold(dir, rollback.Claim{Run: job.Run, State: s.state})
	var busy *rollback.BusyError
	switch {
	case errors.As(err, &busy):
		return run.Answer{}, &bus.BadInput{Err: err}
	case err != nil:
		return run.Answer{}, badInput(err)
	}
	m, err := rollback.Take(ctx, dir, rollback.Limits{}, s.store)
	if err != nil {
		return run.Answer{}, badInput(err)
	}
	tree, err := m.Store(ctx, s.store)
	if err != nil {
		return run.Answer{}, err
	}
	return run.Answer{Snapshot: &run.SnapshotAnswer{Tree: tree}}, nil
}
