package bus

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes is what an ordinary user may still write to the disk of dir; a
// disk without free inodes has none.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("bus: %s: %w", dir, err)
	}
	if st.Files > 0 && st.Ffree == 0 {
		return 0, nil
	}
	return int64(st.Bavail) * st.Bsize, nil //nolint:gosec // no disk has 8 EiB
}
