package rollback

import (
	"os"

	"golang.org/x/sys/unix"
)

// moveByLink is moveNew by a second name, where the kernel has no flag for it.
// A kill in between leaves both names, which settle cleans up.
func moveByLink(dir *os.File, from, to string) error {
	if err := unix.Linkat(int(dir.Fd()), from, int(dir.Fd()), to, 0); err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return remove(dir, from)
}
