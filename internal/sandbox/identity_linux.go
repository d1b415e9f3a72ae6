package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chooseIdentity decides who the command is. Root's commands get root's number
// and nobody's rights: every granted path is then mounted so that its files
// belong to the command, and only these. Where the file system of the staged
// tree cannot do that, the command keeps the caller's user.
func (r *spaceRun) chooseIdentity() (trees, error) {
	r.who = self()
	if os.Getuid() != 0 || r.view.whole {
		return nil, nil
	}
	t := trees{}
	give := mayMap(strangerID)
	if give {
		fd, err := r.openTree(r.spec.Dir, true)
		if give = err == nil; give {
			t[lower] = fd
		} else if !errors.Is(err, errIDMap) {
			return nil, err
		}
	}
	for path, p := range r.view.points {
		if p.kind != bindPoint || p.device || !p.write && !r.spec.granted(p.source) {
			continue
		}
		fd, err := r.openTree(p.source, give)
		if errors.Is(err, errIDMap) && !p.write {
			fd, err = r.openTree(p.source, false)
		}
		if err != nil {
			return nil, err
		}
		t[path] = fd
	}
	if give {
		r.who = stranger()
	}
	return t, nil
}

// errIDMap says that a file system cannot show its files as somebody else's.
var errIDMap = errors.New("files cannot be given to another user")

// openTree copies a mount in the parent, with the owner of path mapped to the
// stranger when give is set, and parks it.
func (r *spaceRun) openTree(path string, give bool) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return 0, fmt.Errorf("%w: open %s: %w", ErrUnavailable, path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if give {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return 0, fmt.Errorf("%w: %s: %w", ErrSetup, path, err)
		}
		ns, err := ownerMap(st.Uid, st.Gid)
		if err != nil {
			return 0, err
		}
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns)} //nolint:gosec // a descriptor
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			return 0, fmt.Errorf("%w: %s: %w", errIDMap, path, err)
		}
	}
	n, err := r.park(uintptr(fd))
	return int(n), err
}

// owners keeps a user namespace for each owner of files, as an open file: to
// make one takes a process.
var (
	ownersMu sync.Mutex
	owners   = map[[2]uint32]int{}
)

// ownerMap returns a user namespace that maps the owner to the stranger.
func ownerMap(uid, gid uint32) (int, error) {
	key := [2]uint32{uid, gid}
	ownersMu.Lock()
	defer ownersMu.Unlock()
	if fd, ok := owners[key]; ok {
		return fd, nil
	}
	fd, err := userNamespace(identity{uid: int(uid), gid: int(gid), hostUID: strangerID, hostGID: strangerID})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errIDMap, err)
	}
	owners[key] = fd
	return fd, nil
}

// userNamespace makes a user namespace with the identity's map and no process.
func userNamespace(i identity) (_ int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	w := &writer{}
	w.call("close", unix.SYS_CLOSE, pair[0])
	w.call("wait", unix.SYS_RECVFROM, pair[1], pin(w, new([8]byte)), 1, 0, 0, 0)
	s := &space{flags: unix.CLONE_NEWUSER, control: uintptr(pair[1]), setup: w.program, keep: w.keep}
	pid, err := s.fork()
	if err != nil {
		return 0, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	defer func() {
		err = errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
		for {
			if _, werr := unix.Wait4(pid, nil, 0, nil); !errors.Is(werr, unix.EINTR) {
				err = errors.Join(err, werr)
				return
			}
		}
	}()
	if err := i.write(pid); err != nil {
		return 0, err
	}
	return unix.Open(fmt.Sprintf("/proc/%d/ns/user", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// mayMap reports whether this process's own user namespace knows the id: in a
// container it may not.
func mayMap(id int) bool {
	f, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to, n int
		if _, err := fmt.Sscan(lines.Text(), &from, &to, &n); err == nil && id >= from && id-from < n {
			return true
		}
	}
	return false
}

// granted reports whether the path was named by the caller.
func (s Spec) granted(source string) bool {
	for _, list := range [][]string{s.ReadOnly, s.Writable} {
		for _, p := range list {
			if target, err := filepath.EvalSymlinks(p); err == nil && target == source {
				return true
			}
		}
	}
	return false
}

// loopbackUp brings the namespace's own loopback interface up.
func (w *writer) loopbackUp() {
	// struct ifreq: the interface's name, then its flags.
	req := new([40]byte)
	copy(req[:], "lo")
	*(*uint16)(unsafe.Pointer(&req[unix.IFNAMSIZ])) = unix.IFF_UP | unix.IFF_RUNNING
	w.call("loopback", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).into(regTree)
	w.call("loopback", unix.SYS_IOCTL, regTree, unix.SIOCSIFFLAGS, pin(w, req))
	w.call("loopback", unix.SYS_CLOSE, regTree)
}
