package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names of one folder in one step. It reports errors.ErrUnsupported
// where the file system cannot.
func exchange(dir *os.File, a, b string) error {
	return renameat2(dir, a, b, unix.RENAME_EXCHANGE)
}

// moveNew renames and fails with fs.ErrExist when the new name is taken.
func moveNew(dir *os.File, from, to string) error {
	err := renameat2(dir, from, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, errors.ErrUnsupported) {
		return moveByLink(dir, from, to)
	}
	return err
}

func renameat2(dir *os.File, a, b string, flags uint) error {
	err := unix.Renameat2(int(dir.Fd()), a, int(dir.Fd()), b, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return errors.Join(errors.ErrUnsupported, err)
	default:
		return &os.LinkError{Op: "renameat2", Old: a, New: b, Err: err}
	}
}

// unnamed opens a new file of the folder that has no name: it is gone with the
// process that does not give it one.
func unnamed(dir *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: ".", Err: err}
	}
	return os.NewFile(uintptr(fd), "unnamed"), nil
}

// giveName names a file of unnamed, and fails with fs.ErrExist when the name
// is taken.
func giveName(f, dir *os.File, name string) error {
	self := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, self, int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: self, New: name, Err: err}
	}
	return nil
}
