package rollback

import (
	"errors"
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
