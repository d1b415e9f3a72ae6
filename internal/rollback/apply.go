package rollback

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"nexuscore.dev/nexus/internal/run"
)

// Apply writes the changes into the project: all of them, or none.
//
// Before the first write it re-reads and verifies every new content and the
// base of every path that will be replaced, checks that every path still holds
// its base or already the new content, and records what it will do. A call
// that was killed is repeated with the same changes and rolls forward; called
// with other changes, it first takes the unfinished ones back. After an error
// the tree is as it was.
//
// A link stays a link: an edit of it changes the file it points to, inside the
// project only. Modes, owners and extended attributes of an edited file stay.
// A folder that a delete leaves empty stays, unless this run created it.
//
// It fails with KindChange, KindUnsafe, KindDrift, KindBlob, KindJournal or
// KindWrite. KindUnproven says that the tree could not be taken back: Restore
// must be called.
func (p Project) Apply(ctx context.Context, changes []run.Change, blobs Blobs) (err error) {
	if err := errors.Join(p.check(), CheckChanges(changes)); err != nil {
		return err
	}
	contents, err := p.contents(ctx, changes, blobs)
	if err != nil {
		return err
	}
	guard, err := p.guard()
	if err != nil {
		return err
	}
	s, err := p.start(blobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.tree.settle(s.j.history, p.Saved); err != nil {
		return err
	}
	b, err := s.prepare(ctx, changes, guard)
	if err != nil || b == nil {
		return err
	}
	return s.finish(ctx, b, contents)
}

// Abandon takes an Apply back that was killed in the middle, and what it left
// beside its paths. One that was completed stays, as does what the user wrote
// since. Without a journal there is nothing to do.
func (p Project) Abandon(ctx context.Context, blobs Blobs) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	if h, err := readHistory(p.Journal); err != nil || h.good == 0 {
		return err
	}
	s, err := p.start(blobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.tree.settle(s.j.history, p.Saved); err != nil {
		return err
	}
	if b := s.j.open(); b != nil {
		if err := s.revert(ctx, b, b.Edits); err != nil {
			return s.stuck(err)
		}
	}
	return nil
}

// contents reads every new content, and proves that every base could be read
// again by Restore.
func (p Project) contents(ctx context.Context, changes []run.Change, blobs Blobs) (map[string][]byte, error) {
	out := map[string][]byte{}
	limits := p.Limits.withDefaults()
	var total int64
	for _, c := range changes {
		if c.Base != "" && c.Base != c.New {
			if _, err := Read(ctx, blobs, c.Base); err != nil {
				return nil, err
			}
		}
		if c.New == "" || out[c.New] != nil {
			continue
		}
		data, err := Read(ctx, blobs, c.New)
		if err != nil {
			return nil, err
		}
		size := int64(len(data))
		if total += size; size > limits.FileBytes || total > limits.Bytes {
			return nil, &Error{Kind: KindLimit, Paths: []string{c.Path}, Detail: fmt.Sprintf("new content of %d bytes", size)}
		}
		out[c.New] = data
	}
	return out, nil
}

// guard reads the exclusions as they are on the disk now.
func (p Project) guard() (guard, error) {
	root, err := openFolder(p.Dir)
	if err != nil {
		return guard{}, err
	}
	lines, err := readIgnore(root)
	if err = errors.Join(err, root.Close()); err != nil {
		return guard{}, err
	}
	rules, err := parseIgnore(lines)
	return guard{rules: rules}, err
}

// prepare returns the batch to carry out, recorded in the journal, or nil when
// the project already holds every new content.
func (s *session) prepare(ctx context.Context, changes []run.Change, guard guard) (*batch, error) {
	edits, err := s.plan(changes, guard)
	if b := s.j.open(); b != nil {
		if err == nil && b.covers(edits) {
			return b, nil
		}
		if err := s.revert(ctx, b, b.Edits); err != nil {
			return nil, s.stuck(err)
		}
		edits, err = s.plan(changes, guard)
	}
	if err != nil {
		return nil, err
	}
	edits = slices.DeleteFunc(edits, func(e edit) bool { return e.From == e.To })
	if len(edits) == 0 {
		return nil, nil
	}
	dirs, err := s.missing(edits)
	if err != nil {
		return nil, err
	}
	if err := s.keep(ctx, edits); err != nil {
		return nil, err
	}
	b := &batch{Kind: applying, Edits: edits, Dirs: dirs}
	return b, s.j.begin(b)
}

// covers reports whether the batch is an earlier delivery of these edits: each
// of its paths gets the same content, and nothing is left to do outside it.
func (b *batch) covers(edits []edit) bool {
	asked := map[name]edit{}
	for _, e := range edits {
		asked[e.Path] = e
	}
	for _, e := range b.Edits {
		if a, ok := asked[e.Path]; !ok || a.To.SHA != e.To.SHA {
			return false
		}
		delete(asked, e.Path)
	}
	for _, e := range asked {
		if e.From != e.To {
			return false
		}
	}
	return true
}

// plan looks at every path. It returns an edit for each change, with From equal
// to To where nothing is left to do.
func (s *session) plan(changes []run.Change, guard guard) ([]edit, error) {
	var edits []edit
	var drifted []string
	seen := map[string]bool{}
	for _, c := range changes {
		actual, err := s.actual(c, guard)
		if err != nil {
			return nil, err
		}
		if seen[actual] {
			return nil, &Error{Kind: KindChange, Paths: []string{c.Path, actual}, Detail: "changed twice, by a link too"}
		}
		seen[actual] = true
		now, err := s.tree.at(actual)
		if err != nil {
			return nil, &Error{Kind: KindUnreadable, Paths: []string{c.Path}, Err: err}
		}
		e, ok, err := planEdit(c, actual, now)
		if err != nil {
			return nil, err
		}
		if !ok {
			drifted = append(drifted, c.Path)
		}
		edits = append(edits, e)
	}
	if err := nested(seen); err != nil {
		return nil, err
	}
	if len(drifted) > 0 {
		return nil, &Error{Kind: KindDrift, Paths: drifted, Detail: "changed since the snapshot; nothing was written"}
	}
	return edits, nil
}

// actual is the path of the file that a change edits: the links of its path are
// followed on the disk. It refuses what no candidate may touch.
func (s *session) actual(c run.Change, guard guard) (string, error) {
	actual, err := resolve(c.Path, s.tree.readlink)
	if err != nil {
		return "", err
	}
	_, isLink, err := s.tree.readlink(c.Path)
	if err != nil {
		return "", &Error{Kind: KindUnreadable, Paths: []string{c.Path}, Err: err}
	}
	if isLink && c.Op != run.OpModify {
		return "", unsafePath(c.Path, "is a link; only what it points to can be modified")
	}
	for dir := path.Dir(actual); dir != "."; dir = path.Dir(dir) {
		cfg, err := s.tree.at(path.Join(dir, "pyvenv.cfg"))
		if err != nil {
			return "", &Error{Kind: KindUnreadable, Paths: []string{dir}, Err: err}
		}
		if !cfg.absent() {
			return "", unsafePath(c.Path, "stands in a virtual environment")
		}
	}
	return actual, guard.check(c.Path, actual)
}

// planEdit is false when the path has drifted.
func planEdit(c run.Change, actual string, now found) (edit, bool, error) {
	switch {
	case now.other == typeName(fifo):
		return edit{}, false, unsafePath(c.Path, "is "+now.other)
	case now.other != "":
		return edit{}, false, nil
	case now.links > 1:
		return edit{}, false, unsafePath(c.Path, "has several names (hard link)")
	case now.Mode&setID != 0:
		return edit{}, false, unsafePath(c.Path, "runs with the rights of its owner (set-id)")
	}
	e := edit{Path: name(actual), Linked: actual != c.Path, From: now.content, To: content{SHA: c.New, Mode: newMode(c, now)}}
	if e.To.absent() {
		e.To = content{}
	}
	if e.From == e.To {
		return e, true, nil
	}
	return e, (now.SHA == c.Base || now.SHA == c.New) && knownMode(c, now.Mode), nil
}

// knownMode reports whether the permission bits are those of the base or of
// the change: a user's chmod is an edit like any other.
func knownMode(c run.Change, mode uint32) bool {
	mode &= 0o777
	return c.BaseMode == 0 || mode == c.BaseMode || mode == c.Mode
}

func newMode(c run.Change, now found) uint32 {
	switch {
	case c.Mode != 0:
		return now.Mode&^0o777 | c.Mode
	case now.absent():
		return NewFileMode
	default:
		return now.Mode
	}
}

// missing lists the folders that must be created, parents first.
func (s *session) missing(edits []edit) ([]name, error) {
	var out []name
	for _, e := range edits {
		if e.To.absent() {
			continue
		}
		var dirs []name
		for dir := path.Dir(string(e.Path)); dir != "."; dir = path.Dir(dir) {
			now, err := s.tree.at(dir)
			if err != nil {
				return nil, &Error{Kind: KindUnreadable, Paths: []string{dir}, Err: err}
			}
			if now.other == folderType {
				break
			}
			if now.other != "" || !now.absent() {
				return nil, drift(e.Path, dir+" is not a folder")
			}
			dirs = append(dirs, name(dir))
		}
		slices.Reverse(dirs)
		for _, d := range dirs {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out, nil
}
