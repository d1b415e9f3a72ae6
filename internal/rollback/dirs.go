package rollback

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// makeDir creates one folder with exactly the mode given. One that is there
// already is fine.
func (t *tree) makeDir(p string, mode uint32) error {
	dir, base, err := t.folder(p)
	if err != nil {
		return err
	}
	fault.Point("rollback.mkdir.before")
	err = unix.Mkdirat(int(dir.Fd()), base, mode)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: p, Err: err}
	}
	fault.Point("rollback.mkdir.after")
	f, err := t.open(p)
	if err != nil {
		return err
	}
	return errors.Join(adopt(dir, f), exactMode(f, mode))
}

// exactMode undoes the umask; set-id bits inherited from the parent stay.
func exactMode(f *os.File, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	now := uint32(st.Mode) & 0o7777
	if now&0o777 == mode {
		return nil
	}
	return unix.Fchmod(int(f.Fd()), now&^0o777|mode)
}

// removeDir removes a folder when it is empty; one that is not, or is gone, is
// fine.
func (t *tree) removeDir(p string) error {
	dir, base, err := t.folder(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.forget(p); err != nil {
		return err
	}
	fault.Point("rollback.rmdir.before")
	err = unix.Unlinkat(int(dir.Fd()), base, unix.AT_REMOVEDIR)
	switch {
	case err == nil:
		fault.Point("rollback.rmdir.after")
		return dir.Sync()
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR):
		return nil
	default:
		return &fs.PathError{Op: "rmdir", Path: p, Err: err}
	}
}

// removeCaches empties a folder that the run created of what a test run left
// there, provided that nothing else is in it.
func (t *tree) removeCaches(p string) error {
	if now, err := t.at(p); err != nil || now.other != folderType {
		return err
	}
	sub, err := t.root.OpenRoot(p)
	if err != nil {
		return err
	}
	names, err := readNames(sub)
	if err == nil && !slices.ContainsFunc(names, func(n string) bool { return !isCache(n) }) {
		for _, n := range names {
			err = errors.Join(err, sub.RemoveAll(n))
		}
	}
	return errors.Join(err, sub.Close())
}

// sync makes every name that the edits touched durable.
func (t *tree) sync(edits []edit, dirs []name) error {
	set := map[string]bool{}
	for _, e := range edits {
		set[path.Dir(string(e.Path))] = true
	}
	for _, d := range dirs {
		set[path.Dir(string(d))] = true
	}
	for _, p := range slices.Sorted(maps.Keys(set)) {
		f, err := t.open(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		fault.Point("rollback.dirsync.before")
		if err := f.Sync(); err != nil {
			return err
		}
		fault.Point("rollback.dirsync.after")
	}
	return nil
}
