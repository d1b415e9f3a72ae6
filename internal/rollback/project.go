package rollback

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Project is the folder of one run and the places outside it where the run
// keeps what it needs to take its work back. Whoever calls Apply or Restore
// holds Lock on Dir.
type Project struct {
	// Dir is the project folder.
	Dir string
	// Run is the id of the run; a journal belongs to one run.
	Run string
	// Journal is a file of the state folder, made when first needed. Beside it,
	// in Journal.base, lie the contents that the run replaced.
	Journal string
	// Saved is a folder beside the run. It gets base/PATH, the base of a file
	// that the user edited meanwhile, and yours/NAME (the path with its
	// slashes escaped) where even the user's version could not stay.
	Saved string
	// Limits bound the contents of one Apply.
	Limits Limits
	// plain does without RENAME_EXCHANGE; set by tests.
	plain bool
}

// session is one call of Apply or Restore.
type session struct {
	Project
	tree  *tree
	j     *journal
	blobs Blobs
}

func (p Project) check() error {
	if p.Dir == "" || p.Run == "" || p.Journal == "" || p.Saved == "" {
		return &Error{Kind: KindJournal, Detail: "a project needs folder, run, journal and a place for saved files"}
	}
	return nil
}

// LeftOver reports whether a path of the project has a name that a killed Apply
// or Restore of this run leaves; the next one removes it.
func (p Project) LeftOver(name string) bool {
	return strings.HasPrefix(path.Base(name), tempPrefix(p.Run))
}

// start opens everything that a session works on.
func (p Project) start(blobs Blobs) (*session, error) {
	t, err := openTree(p.Dir)
	if err != nil {
		return nil, err
	}
	t.plain = p.plain
	j, err := openJournal(p.Journal, p.Run, p.Dir)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return &session{Project: p, tree: t, j: j, blobs: p.kept(blobs)}, nil
}

func (s *session) close() error {
	return errors.Join(s.tree.close(), s.j.f.Close())
}

// carryOut makes the edits of a recorded batch one by one; one that fails does
// not stop the others. It returns those that found the path drifted.
func (s *session) carryOut(ctx context.Context, b *batch) (drifted []edit, err error) {
	for _, e := range removalsFirst(b.Edits) {
		one := s.carry(ctx, e)
		if IsKind(one, KindDrift) {
			drifted = append(drifted, e)
			one = s.tree.clear(e)
		}
		if one != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", printable(string(e.Path)), one))
		}
	}
	return drifted, errors.Join(err, s.tree.sync(b.Edits, nil))
}

// removalsFirst frees space before anything is written.
func removalsFirst(edits []edit) []edit {
	var first, rest []edit
	for _, e := range edits {
		if e.To.absent() {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}

func (s *session) carry(ctx context.Context, e edit) error {
	if !e.To.absent() {
		data, err := Read(ctx, s.blobs, e.To.SHA)
		if err != nil {
			return err
		}
		if err := s.tree.stage(e, data); err != nil {
			return errors.Join(err, s.tree.clear(e))
		}
	}
	if err := s.tree.swap(e); err != nil {
		return err
	}
	return s.tree.clear(e)
}

// revert takes edits of a batch back, whatever state it was left in: every
// path that holds the batch's new content gets its old one again. Paths that
// hold anything else are not touched.
func (s *session) revert(ctx context.Context, b *batch, edits []edit) error {
	back := &batch{Kind: restoring}
	for _, e := range edits {
		now, err := s.tree.at(string(e.Path))
		if err != nil {
			return err
		}
		if e.From != e.To && now.other == "" && now.SHA == e.To.SHA {
			back.Edits = append(back.Edits, edit{Path: e.Path, From: now.content, To: e.From})
		}
	}
	if len(back.Edits) > 0 {
		if err := s.j.begin(back); err != nil {
			return err
		}
		if _, err := s.carryOut(ctx, back); err != nil {
			return err
		}
		if err := s.j.close(back); err != nil {
			return err
		}
	}
	dirs := convert[string](b.Dirs)
	slices.Reverse(dirs)
	if err := s.dropDirs(dirs); err != nil {
		return err
	}
	return s.j.close(b)
}

// dropDirs removes folders that this run created, given deepest first, unless
// somebody else keeps something in them. Caches that a test run left there go
// with them.
func (s *session) dropDirs(dirs []string) error {
	for _, d := range dirs {
		if err := s.tree.removeCaches(d); err != nil {
			return err
		}
		if err := s.tree.removeDir(d); err != nil {
			return err
		}
	}
	return nil
}
