package agents

import (
	"context"
	"errors"
	"fmt"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// Undeliver takes back what an approved run wrote to its folder, all of it or
// nothing: a path that somebody changed since is a rollback.Error of KindDrift.
// It may be repeated, and goes on where it was killed; Abandon ends one that was
// killed otherwise. It returns the folder's tree hash afterwards, which is that
// of s.Origin when nothing else changed since the delivery.
//
// It claims the folder for the run meanwhile: a *rollback.BusyError says that
// another run works there, KindBusy that somebody undoes this one.
func Undeliver(ctx context.Context, state string, claims rollback.Claims, s run.State, store rollback.Blobs) (after string, err error) {
	won, _ := s.Winner()
	if s.Ended == nil || s.Ended.State != run.Approved || s.Deliver == nil || s.Deliver.Delivered != run.DeliverApply || won == nil {
		return "", fmt.Errorf("run %s wrote nothing to its folder", s.ID)
	}
	dir := s.Task.Dir
	unlock, err := rollback.Lock(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	// The lock comes first: who has not got it must not release the claim.
	if err := claims.Hold(dir, rollback.Claim{Run: s.ID, State: state}); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, claims.Release(s.ID)) }()
	if err := (projects{state: state}).of(s.ID, dir).Apply(ctx, inverse(won.Changes), store); err != nil {
		return "", err
	}
	m, err := rollback.Scan(ctx, dir, rollback.Limits{})
	if err != nil {
		return "", err
	}
	return m.Hash(), nil
}

// Abandon takes back what a killed Undeliver left half done in the folder of a
// run that was delivered.
func Abandon(ctx context.Context, state, runID, dir string, store rollback.Blobs) (err error) {
	unlock, err := rollback.Lock(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return projects{state: state}.of(runID, dir).Abandon(ctx, store)
}

// inverse are the changes that lead back.
func inverse(changes []run.Change) []run.Change {
	ops := map[run.Op]run.Op{run.OpCreate: run.OpDelete, run.OpDelete: run.OpCreate, run.OpModify: run.OpModify}
	out := make([]run.Change, len(changes))
	for i, c := range changes {
		out[i] = run.Change{Path: c.Path, Op: ops[c.Op], Base: c.New, New: c.Base, Mode: c.BaseMode, BaseMode: c.Mode}
	}
	return out
}
