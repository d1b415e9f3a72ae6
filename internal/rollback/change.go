package rollback

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/run"
)

// Modes of what a candidate creates without saying.
const (
	// NewFileMode is used for a created file whose Change has Mode 0.
	NewFileMode = 0o644
	// NewDirMode is the mode of every created folder, whatever the umask, so
	// that the tree hash of a candidate is known before it is written.
	NewDirMode = 0o755
)

// ignoreFile names the project's own list of exclusions. No candidate may
// touch it: it decides what a tree holds.
const ignoreFile = ".nexusignore"

// CheckChanges refuses changes that are malformed or contradict each other.
// It looks at nothing but the changes.
func CheckChanges(changes []run.Change) error {
	paths := map[string]bool{}
	for _, c := range changes {
		if bad := problem(c); bad != "" {
			return &Error{Kind: KindChange, Paths: []string{c.Path}, Detail: bad}
		}
		if paths[c.Path] {
			return &Error{Kind: KindChange, Paths: []string{c.Path}, Detail: "changed twice"}
		}
		paths[c.Path] = true
	}
	return nested(paths)
}

// nested refuses a path that is to be a file and a folder at once.
func nested(paths map[string]bool) error {
	for p := range paths {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if paths[dir] {
				return &Error{Kind: KindChange, Paths: []string{dir, p}, Detail: "one is a folder of the other"}
			}
		}
	}
	return nil
}

func problem(c run.Change) string {
	if !fs.ValidPath(c.Path) || c.Path == "." || strings.ContainsRune(c.Path, 0) {
		return "the path is not clean and relative"
	}
	if c.Path == ignoreFile {
		return "the list of exclusions may not be changed"
	}
	if mode := max(c.Mode, c.BaseMode); mode > 0o777 {
		return fmt.Sprintf("mode %o is more than permission bits", mode)
	}
	base, next := isSHA(c.Base), isSHA(c.New)
	switch c.Op {
	case run.OpCreate:
		if !next || c.Base != "" {
			return "a create has new content and no base"
		}
	case run.OpModify:
		if !next || !base {
			return "a modify has base and new content"
		}
	case run.OpDelete:
		if !base || c.New != "" {
			return "a delete has a base and no new content"
		}
	default:
		return fmt.Sprintf("unknown operation %q", c.Op)
	}
	return ""
}

// With is the manifest after the changes. size tells the bytes of a new
// content by its hash. It refuses what Apply would refuse, as far as a
// manifest can know: drift, exclusions, hard links, links that leave the
// project. Folders that a delete leaves empty stay.
//
// Changes of a later attempt are relative to the tree they were made from; a
// tree hash that deliver must reach is base.With(Diff(base, candidate)).
func (m Manifest) With(changes []run.Change, size func(sha256 string) int64) (Manifest, error) {
	if err := CheckChanges(changes); err != nil {
		return Manifest{}, err
	}
	next := make(map[string]Entry, len(m.Entries)+len(changes))
	for _, e := range m.Entries {
		next[e.Path] = e
	}
	guard := m.guard()
	touched := map[string]bool{}
	for _, c := range changes {
		actual, err := m.target(c, guard)
		if err != nil {
			return Manifest{}, err
		}
		if touched[actual] {
			return Manifest{}, &Error{Kind: KindChange, Paths: []string{c.Path, actual}, Detail: "changed twice, by a link too"}
		}
		touched[actual] = true
		if c.Op == run.OpDelete {
			delete(next, actual)
			continue
		}
		next[actual] = changed(actual, next[actual], c, size)
		if err := addFolders(next, actual); err != nil {
			return Manifest{}, err
		}
	}
	if err := nested(touched); err != nil {
		return Manifest{}, err
	}
	out := m
	out.Entries = make([]Entry, 0, len(next))
	for _, e := range next {
		out.Entries = append(out.Entries, e)
	}
	slices.SortFunc(out.Entries, byPath)
	return out, nil
}

func byPath(a, b Entry) int { return strings.Compare(a.Path, b.Path) }

func changed(path string, old Entry, c run.Change, size func(string) int64) Entry {
	mode := c.Mode
	if mode == 0 {
		mode = old.Mode
	}
	if mode == 0 && c.Op == run.OpCreate {
		mode = NewFileMode
	}
	return Entry{Path: path, Type: TypeFile, Mode: mode, Size: size(c.New), SHA256: c.New}
}

func addFolders(entries map[string]Entry, p string) error {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		e, ok := entries[dir]
		if ok && e.Type != TypeDir {
			return &Error{Kind: KindDrift, Paths: []string{p}, Detail: dir + " is not a folder"}
		}
		if !ok {
			entries[dir] = Entry{Path: dir, Type: TypeDir, Mode: NewDirMode}
		}
	}
	return nil
}

// target checks one change against the manifest and returns the real path.
func (m Manifest) target(c run.Change, guard guard) (string, error) {
	actual, err := m.Resolve(c.Path)
	if err != nil {
		return "", err
	}
	if err := guard.check(c.Path, actual); err != nil {
		return "", err
	}
	leaf, _ := m.Lookup(c.Path)
	if leaf.Type == TypeLink && c.Op != run.OpModify {
		return "", unsafePath(c.Path, "is a link; only what it points to can be modified")
	}
	old, exists := m.Lookup(actual)
	switch {
	case c.Op == run.OpCreate && exists:
		return "", &Error{Kind: KindDrift, Paths: []string{c.Path}, Detail: "exists already"}
	case c.Op != run.OpCreate && (!exists || old.Type != TypeFile || old.SHA256 != c.Base):
		return "", &Error{Kind: KindDrift, Paths: []string{c.Path}, Detail: "is not the content the change was made from"}
	}
	return actual, nil
}

// Stage reads and verifies every new content and returns base with the
// changes applied: the tree of a candidate.
func Stage(ctx context.Context, base Manifest, changes []run.Change, blobs Blobs) (Manifest, error) {
	sizes := map[string]int64{}
	for _, c := range changes {
		if c.New == "" {
			continue
		}
		data, err := Read(ctx, blobs, c.New)
		if err != nil {
			return Manifest{}, err
		}
		sizes[c.New] = int64(len(data))
	}
	return base.With(changes, func(sha string) int64 { return sizes[sha] })
}

// Diff lists the changes that turn the files of base into those of next, with
// the mode of each. Folders follow from files: one that is empty in next and
// absent in base has no change. A difference that a candidate cannot make (a
// link, a name that is not UTF-8) is refused.
func Diff(base, next Manifest) ([]run.Change, error) {
	var out []run.Change
	for _, p := range base.Differs(next) {
		a, hasA := base.Lookup(p)
		b, hasB := next.Lookup(p)
		fileA, fileB := hasA && a.Type == TypeFile, hasB && b.Type == TypeFile
		c := run.Change{Path: p, Base: a.SHA256, New: b.SHA256, Mode: b.Mode, BaseMode: a.Mode}
		switch {
		case !fs.ValidPath(p), a.Type == TypeLink, b.Type == TypeLink, fileA && b.Type == TypeDir, fileB && a.Type == TypeDir:
			return nil, unsafePath(p, "not a difference of files")
		case fileA && fileB:
			c.Op = run.OpModify
		case fileA:
			c.Op = run.OpDelete
		case fileB:
			c.Op, c.BaseMode = run.OpCreate, 0
		default:
			continue
		}
		out = append(out, c)
	}
	return out, nil
}
