package rollback

import (
	"context"
	"errors"
	"slices"
)

// finish carries a recorded batch out and closes it, or takes it back.
func (s *session) finish(ctx context.Context, b *batch, contents map[string][]byte) error {
	left, err := s.write(ctx, b, contents)
	if err == nil {
		return s.j.close(b)
	}
	if undo := s.revert(context.WithoutCancel(ctx), b, left); undo != nil {
		return s.stuck(errors.Join(err, undo))
	}
	if _, ok := errors.AsType[*Error](err); ok || errors.Is(err, ctx.Err()) {
		return err
	}
	return &Error{Kind: KindWrite, Detail: "nothing was changed", Err: err}
}

func (s *session) stuck(err error) error {
	return &Error{Kind: KindUnproven, Detail: "an unfinished change could not be taken back; restore the run", Err: err}
}

// write makes the edits of a batch that are not there yet. After an error it
// has undone its own swaps and returns the edits that revert must take back.
func (s *session) write(ctx context.Context, b *batch, contents map[string][]byte) (left []edit, err error) {
	done, todo, err := s.split(b)
	if err != nil {
		return b.Edits, err
	}
	for _, d := range b.Dirs {
		if err := s.tree.makeDir(string(d), NewDirMode); err != nil {
			return done, err
		}
	}
	swapped, err := s.swapAll(ctx, todo, contents)
	if err == nil {
		err = s.verify(b, todo)
	}
	if err != nil {
		return done, errors.Join(err, s.unswapAll(todo, swapped))
	}
	for _, e := range todo {
		if err := s.tree.clear(e); err != nil {
			return b.Edits, err
		}
	}
	if slices.ContainsFunc(b.Edits, func(e edit) bool { return e.To.absent() }) {
		if err := s.dropDirs(s.j.dirs()); err != nil {
			return b.Edits, err
		}
	}
	return b.Edits, s.tree.sync(b.Edits, b.Dirs)
}

// split tells the edits that an earlier, killed call made from the others.
func (s *session) split(b *batch) (done, todo []edit, err error) {
	for _, e := range b.Edits {
		now, err := s.tree.at(string(e.Path))
		if err != nil {
			return nil, nil, err
		}
		if now.other == "" && now.content == e.To {
			done = append(done, e)
		} else {
			todo = append(todo, e)
		}
	}
	return done, todo, nil
}

// swapAll stages every content before it swaps the first, so that a full disk
// is met while the project is still untouched. It returns how many it swapped.
func (s *session) swapAll(ctx context.Context, todo []edit, contents map[string][]byte) (int, error) {
	for _, e := range todo {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if e.To.absent() {
			continue
		}
		if err := s.tree.stage(e, contents[e.To.SHA]); err != nil {
			return 0, err
		}
	}
	for i, e := range todo {
		if err := s.tree.swap(e); err != nil {
			return i, err
		}
	}
	return len(todo), s.tree.sync(todo, nil)
}

// unswapAll undoes the swaps of this process with the files themselves: it
// needs no space and no blob. settleEdit looks once more at what is left
// beside each path before it removes it.
func (s *session) unswapAll(todo []edit, swapped int) error {
	var err error
	for i, e := range slices.Backward(todo) {
		if i < swapped {
			if one := s.tree.unswap(e); one != nil {
				err = errors.Join(err, one)
				continue
			}
		}
		_, one := s.tree.settleEdit(e, s.Saved)
		err = errors.Join(err, one)
	}
	return errors.Join(err, s.tree.sync(todo, nil))
}

// verify reads every path of a batch back from the disk, and looks once more
// at what the swaps took out: a program that had the old file open may have
// written to it since.
func (s *session) verify(b *batch, swapped []edit) error {
	for _, e := range b.Edits {
		now, err := s.tree.at(string(e.Path))
		if err != nil {
			return err
		}
		if now.other != "" || now.content != e.To {
			return drift(e.Path, "was edited while the change was written")
		}
	}
	for _, e := range swapped {
		if e.From.absent() {
			continue
		}
		dir, _, err := s.tree.folder(string(e.Path))
		if err != nil {
			return err
		}
		old, err := look(dir, e.Temp+held)
		if err != nil {
			return err
		}
		if old.SHA != e.From.SHA {
			return drift(e.Path, "was edited while the change was written")
		}
	}
	return nil
}
