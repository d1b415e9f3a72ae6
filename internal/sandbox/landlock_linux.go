package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The child that becomes the command enters the ruleset between fork and
// exec, so all that is needed here is to build one; the kernel's calls are
// used directly.

// What reading and writing mean for files and for folders.
const (
	fileRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	fileWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	dirRead   = fileRead | unix.LANDLOCK_ACCESS_FS_READ_DIR
	dirWrite  = fileWrite | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// The rights that need a later ABI than the first, and what every ABI
	// knows. Rights that are handled but never granted are denied everywhere:
	// making devices, device ioctls, sockets by path of others.
	abi1FS = 1<<13 - 1
)

var laterFS = []struct {
	abi   int
	right uint64
}{
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
}

// systemFolders hold programs and libraries, systemFiles what a C library or
// an interpreter reads of /etc. Neither holds secrets or anyone's own files.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
	"/proc", "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup",
}

var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf",
	"/etc/protocols", "/etc/services", "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/mime.types",
	"/etc/os-release", "/etc/debian_version", "/etc/machine-id", "/etc/terminfo", "/etc/inputrc", "/etc/magic",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
	"/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/java", "/etc/gai.conf",
}

var deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockABI is the kernel's Landlock version, 0 when it has none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// signalsScoped reports whether Landlock keeps signals inside.
func signalsScoped() bool { return landlockABI() >= 6 }

// handled lists the rights that are denied unless granted.
func handled(abi int, n Network) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: abi1FS}
	for _, l := range laterFS {
		if abi >= l.abi {
			attr.Handled_access_fs |= l.right
		}
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if n == NetNone && abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		if abi >= 10 {
			attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
		}
	}
	return attr
}

// ruleset opens a Landlock ruleset that grants what the order names and
// nothing else. The descriptor is -1 when the kernel knows no Landlock.
func ruleset(o order) (int, error) {
	fd, abi, err := rulesetFD(o.Network)
	if err != nil || fd < 0 {
		return fd, err
	}
	for _, g := range grants(o) {
		if err := g.add(fd, handled(abi, o.Network).Handled_access_fs); err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// rulesetFD opens a ruleset that grants nothing yet, -1 where there is none.
func rulesetFD(n Network) (fd, abi int, err error) {
	if abi = landlockABI(); abi == 0 {
		return -1, 0, nil
	}
	attr := handled(abi, n)
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, abi, fmt.Errorf("%w: landlock: %w", ErrSetup, errno)
	}
	return int(r), abi, nil
}

// rules writes the calls that grant what the view holds: reading everywhere,
// since nothing else is there, and writing where the view says so.
func (v view) rules(w *writer, ruleset, abi int, n Network) {
	known := handled(abi, n).Handled_access_fs
	w.rule(ruleset, "/", dirRead&known)
	for _, p := range v.writable() {
		w.rule(ruleset, p, grant{write: true}.rights(v.points[p].dir)&known)
	}
	for _, p := range deviceFiles {
		w.rule(ruleset, p, grant{write: true}.rights(false)&known)
	}
	w.rule(ruleset, "/dev/pts", (dirRead|fileWrite|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)&known)
}

func (w *writer) rule(ruleset int, path string, rights uint64) {
	attr := pin(w, &unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: ruleFD})
	what := "landlock rule for " + path
	w.call(what, unix.SYS_OPENAT, unix.AT_FDCWD, path, unix.O_PATH|unix.O_CLOEXEC, 0).into(regRules)
	w.call(what, unix.SYS_DUP3, regRules, ruleFD, unix.O_CLOEXEC)
	w.call(what, unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, attr, 0)
	w.call(what, unix.SYS_CLOSE, regRules)
	w.call(what, unix.SYS_CLOSE, ruleFD)
}

// grant allows rights at and below a path.
type grant struct {
	path  string
	write bool
}

func grants(o order) []grant {
	var out []grant
	for _, list := range [][]string{systemFolders, systemFiles, o.ReadOnly} {
		for _, p := range list {
			out = append(out, grant{path: p})
		}
	}
	for _, list := range [][]string{deviceFiles, {o.Dir}, o.Writable} {
		for _, p := range list {
			out = append(out, grant{path: p, write: true})
		}
	}
	return out
}

// add puts the grant into the ruleset. What does not exist is not granted.
func (g grant) add(ruleset int, handled uint64) error {
	path, err := filepath.EvalSymlinks(g.path)
	if err != nil {
		return nil //nolint:nilerr // documented: missing paths are ignored
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("landlock: %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	attr := unix.LandlockPathBeneathAttr{
		Allowed_access: g.rights(fi.IsDir()) & handled,
		Parent_fd:      int32(fd), //nolint:gosec // a descriptor
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %s: %w", path, errno)
	}
	return nil
}

func (g grant) rights(dir bool) uint64 {
	switch {
	case dir && g.write:
		return dirRead | dirWrite
	case dir:
		return dirRead
	case g.write:
		return fileRead | fileWrite
	default:
		return fileRead
	}
}
