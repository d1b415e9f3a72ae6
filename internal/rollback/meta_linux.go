package rollback

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes gives a new file the extended attributes of the one it will
// replace: access lists, capabilities, labels, the user's own.
func copyAttributes(from, to *os.File) error {
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(from.Fd()), names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "listxattr", Path: from.Name(), Err: err}
	}
	value := make([]byte, 64<<10)
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if attr == "" {
			continue
		}
		n, err := unix.Fgetxattr(int(from.Fd()), attr, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), attr, value[:n], 0)
		}
		// A label of the security module may be set by the system alone; the
		// new file then has the one that the system gave it.
		if err != nil && !strings.HasPrefix(attr, "security.") && !strings.HasPrefix(attr, "trusted.") {
			return &os.PathError{Op: "xattr " + attr, Path: from.Name(), Err: err}
		}
	}
	return nil
}

// born is when a folder was made, in nanoseconds, 0 when nobody knows.
func born(dir string) int64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BTIME, &st) != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
