package rollback

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// node is one entry of a walk with what a reader needs to notice a change.
type node struct {
	Entry
	info fs.FileInfo
}

// walk is one pass over the names of a project. It follows no link.
type walk struct {
	root  *os.Root
	guard guard
	tally *tally
	// tolerant makes what cannot be read an entry of lost, not an error.
	tolerant bool
	nodes    []node
	special  []string
	hard     []string
	lost     []string
}

// openFolder opens a project folder for reading and says plainly what is wrong
// with it.
func openFolder(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Kind: KindMissing, Detail: dir}
	case err != nil:
		return nil, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	case !info.IsDir():
		return nil, &Error{Kind: KindNotFolder, Detail: dir}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	return root, nil
}

// readIgnore reads the project's .nexusignore; a missing one has no lines.
func readIgnore(root *os.Root) ([]string, error) {
	info, err := root.Lstat(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, &Error{Kind: KindUnreadable, Paths: []string{ignoreFile}, Detail: "must be a regular file", Err: err}
	}
	data, err := root.ReadFile(ignoreFile)
	if err != nil {
		return nil, &Error{Kind: KindUnreadable, Paths: []string{ignoreFile}, Err: err}
	}
	return splitLines(data), nil
}

// folder visits one folder; prefix is its path with a slash, empty at the top.
func (w *walk) folder(ctx context.Context, dir *os.Root, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := readNames(dir)
	if err != nil {
		return w.unreadable(strings.TrimSuffix(prefix, "/"), err)
	}
	if prefix != "" && slices.Contains(names, "pyvenv.cfg") {
		w.guard.environments = append(w.guard.environments, strings.TrimSuffix(prefix, "/"))
		w.nodes = w.nodes[:len(w.nodes)-1]
		return nil
	}
	slices.Sort(names)
	for _, n := range names {
		if err := w.entry(ctx, dir, prefix+n, n); err != nil {
			return err
		}
	}
	return nil
}

func readNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

func (w *walk) entry(ctx context.Context, dir *os.Root, p, base string) error {
	if builtin(base) || p == reportTemp || p == ReportName && ownReport(dir) {
		return nil
	}
	info, err := dir.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since the folder was read
	}
	if err != nil {
		return w.unreadable(p, err)
	}
	if w.guard.rules.excludes(p, info.IsDir()) {
		return nil
	}
	n := node{Entry: Entry{Path: p, Mode: uint32(info.Mode().Perm())}, info: info}
	switch info.Mode().Type() {
	case 0:
		n.Type, n.Size = TypeFile, info.Size()
		if links(info) > 1 {
			w.hard = append(w.hard, p)
		}
	case fs.ModeDir:
		n.Type = TypeDir
	case fs.ModeSymlink:
		n.Type, n.Mode = TypeLink, 0
		if n.Target, err = dir.Readlink(base); err != nil {
			return w.unreadable(p, err)
		}
	default:
		w.special = append(w.special, p)
		return nil
	}
	if err := w.tally.add(p, n.Size); err != nil {
		return err
	}
	w.nodes = append(w.nodes, n)
	if n.Type == TypeDir {
		return w.descend(ctx, dir, n, base)
	}
	return nil
}

// ownReport reports whether the file at the top is the report of a run.
func ownReport(dir *os.Root) bool {
	top, err := dir.Open(".")
	if err != nil {
		return false
	}
	defer func() { _ = top.Close() }() // opened for reading only
	return isReport(top)
}

func (w *walk) descend(ctx context.Context, dir *os.Root, n node, base string) error {
	sub, err := dir.OpenRoot(base)
	if err != nil {
		return w.unreadable(n.Path, err)
	}
	info, err := sub.Stat(".")
	if err == nil && !os.SameFile(info, n.info) {
		err = &Error{Kind: KindUnsteady, Paths: []string{n.Path}}
	}
	if err == nil {
		err = w.folder(ctx, sub, n.Path+"/")
	}
	return errors.Join(err, sub.Close())
}

func (w *walk) unreadable(p string, err error) error {
	if w.tolerant {
		w.lost = append(w.lost, p)
		return nil
	}
	return &Error{Kind: KindUnreadable, Paths: []string{path.Clean(p)}, Err: err}
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
