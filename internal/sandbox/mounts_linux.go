package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedFolders are writable by every user of the machine. At LevelUser the
// command gets empty ones of its own, in memory and bounded.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm"}

// personalFolders hold people's files, and the sockets of running services.
var personalFolders = []string{"/home", "/root", "/run", "/mnt", "/media", "/srv", "/var/lib", "/var/run"}

const (
	tmpfsShared   = "size=256m,nr_inodes=65536,mode=1777"
	tmpfsPersonal = "size=1m,nr_inodes=4096,mode=755"
)

// masks lists the folders to hide for a run: those that exist, none inside
// another, and none that holds the whole of a granted path's tree.
func masks(hidden, granted []string) []string {
	var list []string
	for _, p := range slices.Concat(sharedFolders, personalFolders, hidden) {
		target, err := filepath.EvalSymlinks(p)
		if err != nil || target == "/" || !isDir(target) {
			continue
		}
		list = append(list, target)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	var out []string
	for _, p := range list {
		nested := slices.ContainsFunc(out, func(o string) bool { return within(o, p) })
		opened := slices.ContainsFunc(granted, func(g string) bool { return within(g, p) })
		if !nested && !opened {
			out = append(out, p)
		}
	}
	return out
}

// within reports whether path is dir or below it, by whole elements.
func within(dir, path string) bool {
	return dir == path || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

// exposure is a granted path that must stay visible through the masks.
type exposure struct {
	path  string
	write bool
	dir   bool
	fd    int
}

// mounts makes the command's view of the file system: everything read-only,
// other people's folders empty, the granted paths in their places, and a
// /proc of its own processes.
func (o order) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	list, err := o.exposures()
	if err != nil {
		return err
	}
	ro := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, ro); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("read-only root: %w", err)
	}
	for _, m := range o.Mask {
		opts := tmpfsPersonal
		if slices.Contains(sharedFolders, m) {
			opts = tmpfsShared
		}
		if err := unix.Mount("tmpfs", m, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opts); err != nil {
			return fmt.Errorf("hide %s: %w", m, err)
		}
	}
	for _, e := range list {
		if err := e.bind(); err != nil {
			return err
		}
	}
	for _, m := range o.Mask {
		if slices.Contains(sharedFolders, m) {
			continue
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, m, 0, ro); err != nil && !errors.Is(err, unix.ENOSYS) {
			return fmt.Errorf("close %s: %w", m, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	return nil
}

// exposures opens the granted paths while they are still visible, parents
// before children. Only writable paths and those below a mask are mounted.
func (o order) exposures() ([]exposure, error) {
	var list []exposure
	add := func(p string, write bool) error {
		if !write && !slices.ContainsFunc(o.Mask, func(m string) bool { return within(m, p) }) {
			return nil
		}
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", p, err)
		}
		list = append(list, exposure{path: p, write: write, dir: isDir(p), fd: fd})
		return nil
	}
	for _, p := range o.ReadOnly {
		if err := add(p, false); err != nil {
			return nil, err
		}
	}
	for _, p := range append([]string{o.Dir}, o.Writable...) {
		if err := add(p, true); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b exposure) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

func (e exposure) bind() error {
	defer func() { _ = unix.Close(e.fd) }()
	if err := e.place(); err != nil {
		return fmt.Errorf("mount point %s: %w", e.path, err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", e.fd), e.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", e.path, err)
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if e.write {
		attr = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Attr_clr: unix.MOUNT_ATTR_RDONLY}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, e.path, unix.AT_RECURSIVE, attr); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("mount flags of %s: %w", e.path, err)
	}
	return nil
}

// place makes the mount point where a mask hides the real one.
func (e exposure) place() error {
	if _, err := os.Stat(e.path); err == nil {
		return nil
	}
	if e.dir {
		return os.MkdirAll(e.path, 0o755) //nolint:gosec // a mount point in a tmpfs of the run's own
	}
	if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	f, err := os.OpenFile(e.path, os.O_CREATE|os.O_RDONLY, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	return f.Close()
}

// loopbackUp brings the namespace's own loopback interface up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(req)))
	if errno != 0 {
		return fmt.Errorf("loopback: %w", errno)
	}
	return nil
}
