package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// written lists every change that a run may have written to its folder, as its
// log knows them: in place every candidate, else the one that both reviewers
// let through to delivery. Whoever wrote the same by hand wrote it himself.
func written(s run.State) []run.Change {
	var out []run.Change
	if !s.Task.InPlace {
		if c, _ := s.Winner(); c != nil && s.Ruling != nil {
			out = c.Changes
		}
		return out
	}
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
	left, err := leftovers(p.Dir, changes, origin, rep.Foreign)
	if err != nil || len(left) == 0 {
		return rep, err
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

// leftovers turns the paths back that hold what a candidate put there. Only
// those are looked at, whatever else the user made of the folder.
func leftovers(dir string, changes []run.Change, origin rollback.Manifest, paths []string) (out []run.Change, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, p := range paths {
		mine := func(sha string) bool {
			return slices.ContainsFunc(changes, func(c run.Change) bool { return c.Path == p && c.New == sha && c.Op != run.OpDelete })
		}
		if !slices.ContainsFunc(changes, func(c run.Change) bool { return c.Path == p }) {
			continue
		}
		sha, mode, err := hashFile(root, p)
		if err != nil {
			return nil, err
		}
		if sha == "" || !mine(sha) {
			continue
		}
		c := run.Change{Path: p, Op: run.OpDelete, Base: sha, BaseMode: mode}
		if was, had := origin.Lookup(p); had {
			c.Op, c.New, c.Mode = run.OpModify, was.SHA256, was.Mode
		}
		out = append(out, c)
	}
	return out, nil
}

// hashFile is the hash and mode of a regular file, empty for anything else. It
// never waits for a pipe.
func hashFile(root *os.Root, path string) (sha string, mode uint32, err error) {
	if at, err := root.Lstat(filepath.FromSlash(path)); err == nil && !at.Mode().IsRegular() {
		return "", 0, nil // a link is somebody's own
	}
	f, err := root.OpenFile(filepath.FromSlash(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", 0, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), uint32(info.Mode().Perm()), nil
}
