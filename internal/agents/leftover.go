package agents

import (
	"context"
	"fmt"
	"slices"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// written lists every change that a run may have written to its folder, as its
// log knows them.
func written(s run.State) []run.Change {
	var out []run.Change
	for _, a := range s.Attempts {
		if a.Validated != nil {
			for _, c := range a.Validated.Accepted {
				out = append(out, c.Changes...)
			}
		}
		if a.Applied != nil {
			for _, c := range a.Applied.Candidates {
				out = append(out, c.Changes...)
			}
		}
	}
	return out
}

// takeBack restores the project by the journal, and then what the journal
// should have named and does not: a file that holds exactly what a candidate
// of the run put there is the run's, whatever became of its journal.
func takeBack(ctx context.Context, p rollback.Project, origin rollback.Manifest, changes []run.Change, store rollback.Blobs) (rollback.Report, error) {
	rep, err := p.Restore(ctx, origin, store)
	if err != nil || len(rep.Foreign) == 0 || len(changes) == 0 {
		return rep, err
	}
	now, err := rollback.Scan(ctx, p.Dir, p.Limits)
	if err != nil {
		return rep, err
	}
	left := leftovers(changes, origin, now, rep.Foreign)
	if len(left) == 0 {
		return rep, nil
	}
	if err := p.Apply(ctx, left, store); err != nil {
		return rep, fmt.Errorf("the journal does not name all that the run wrote: %w", err)
	}
	last, err := p.Restore(ctx, origin, store)
	last.Before, last.Restored = rep.Before, append(rep.Restored, last.Restored...)
	for _, c := range left {
		if !slices.Contains(last.Restored, c.Path) {
			last.Restored = append(last.Restored, c.Path)
		}
	}
	return last, err
}

// leftovers turns the paths back that hold what a candidate put there.
func leftovers(changes []run.Change, origin, now rollback.Manifest, paths []string) []run.Change {
	var out []run.Change
	for _, p := range paths {
		is, there := now.Lookup(p)
		if !there || is.Type != rollback.TypeFile || !slices.ContainsFunc(changes, func(c run.Change) bool {
			return c.Path == p && c.New == is.SHA256 && c.Op != run.OpDelete
		}) {
			continue
		}
		c := run.Change{Path: p, Op: run.OpDelete, Base: is.SHA256, BaseMode: is.Mode}
		if was, had := origin.Lookup(p); had {
			c.Op, c.New, c.Mode = run.OpModify, was.SHA256, was.Mode
		}
		out = append(out, c)
	}
	return out
}
