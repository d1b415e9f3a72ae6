package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launch holds everything that the child needs between fork and exec, as
// plain words and pointers: in between nothing may allocate, grow the stack
// or take a lock, because the child has one thread and a copy of locks that
// others may hold.
type launch struct {
	path       *byte
	argv, envp **byte
	dir        *byte
	initPid    uintptr
	errFD      uintptr
	from, to   [3 + maxExtra]uintptr
	files      uintptr
	doors      [4]uintptr
	ndoors     uintptr
	rlimits    [8]rlimit
	nrlimits   uintptr
	landlockFD uintptr
	landlock   bool
	landFlags  uintptr
	prog       *unix.SockFprog
	dropCaps   bool
	// trusted leaves the command its rights: it is the virtual kernel itself.
	trusted   bool
	lastCap   uintptr
	capHeader *unix.CapUserHeader
	capData   *unix.CapUserData
	emptyMask *unix.Sigset_t
}

type rlimit struct {
	which uintptr
	lim   unix.Rlimit
}

const (
	maxExtra = 8
	// parkFD is where descriptors wait before they are put in their places.
	parkFD = MaxFD + 10
)

// Steps of the child, reported with the error number when one fails.
const (
	stepSession uint32 = iota + 1
	stepCgroup
	stepFiles
	stepDir
	stepLimits
	stepCaps
	stepPrivs
	stepLandlock
	stepSeccomp
	stepExec
)

var stepNames = map[uint32]string{
	stepSession: "session", stepCgroup: "cgroup", stepFiles: "descriptors", stepDir: "working directory", stepLimits: "resource limits",
	stepCaps: "capabilities", stepPrivs: "no_new_privs", stepLandlock: "landlock", stepSeccomp: "seccomp", stepExec: "exec",
}

// stepError says which step of the child failed.
type stepError struct {
	step  uint32
	errno syscall.Errno
}

func (e *stepError) Error() string { return fmt.Sprintf("%s: %v", stepNames[e.step], e.errno) }
func (e *stepError) Unwrap() error { return e.errno }

// start forks and executes. The calling goroutine must be locked to its
// thread for as long as the child may live, since the child's parent-death
// signal follows that thread.
func (l *launch) start() (int, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	high, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_DUPFD_CLOEXEC, parkFD)
	if err != nil {
		return 0, err
	}
	_ = unix.Close(pipe[1])
	l.errFD = uintptr(high)
	reader := os.NewFile(uintptr(pipe[0]), "exec-error")
	defer func() { _ = reader.Close() }()

	var full, old unix.Sigset_t
	for i := range full.Val {
		full.Val[i] = ^full.Val[i]
	}
	syscall.ForkLock.Lock()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &full, &old); err != nil {
		syscall.ForkLock.Unlock()
		return 0, err
	}
	pid, errno := forkExec(l)
	maskErr := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(l)
	_ = unix.Close(high)
	if errno != 0 {
		return 0, errno
	}
	if maskErr != nil {
		return int(pid), maskErr
	}
	return int(pid), readStep(reader)
}

func readStep(r io.Reader) error {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	return &stepError{
		step:  binary.NativeEndian.Uint32(b[:4]),
		errno: syscall.Errno(binary.NativeEndian.Uint32(b[4:])),
	}
}

// forkExec is the child's whole life before the command.
//
// It runs on the little stack that functions share which may not grow theirs,
// so calls are nested no deeper than they must be, and RawSyscall6 is called
// without the frame of RawSyscall: an instrumented build has less to spare.
//
//go:norace
//go:nosplit
//go:noinline
func forkExec(l *launch) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	step, errno := prepare(l)
	if errno == 0 {
		step, errno = unblock(l)
	}
	if errno == 0 {
		step = stepExec
		_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.path)),
			uintptr(unsafe.Pointer(l.argv)), uintptr(unsafe.Pointer(l.envp)), 0, 0, 0)
	}
	msg := [2]uint32{step, uint32(errno)} //nolint:gosec // an error number
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, l.errFD, uintptr(unsafe.Pointer(&msg)), unsafe.Sizeof(msg), 0, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 127, 0, 0, 0, 0, 0)
	}
}

//go:norace
//go:nosplit
func prepare(l *launch) (uint32, syscall.Errno) {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0); errno != 0 {
		return stepSession, errno
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); errno != 0 {
		return stepSession, errno
	}
	if ppid, _, _ := syscall.RawSyscall6(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0); ppid != l.initPid {
		return stepSession, unix.ESRCH
	}
	self := uint8('0')
	for i := uintptr(0); i < l.ndoors; i++ {
		if _, _, errno := syscall.RawSyscall6(unix.SYS_WRITE, l.doors[i&3], uintptr(unsafe.Pointer(&self)), 1, 0, 0, 0); errno != 0 {
			return stepCgroup, errno
		}
	}
	if errno := placeFiles(l); errno != 0 {
		return stepFiles, errno
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_CHDIR, uintptr(unsafe.Pointer(l.dir)), 0, 0, 0, 0, 0); errno != 0 {
		return stepDir, errno
	}
	for i := uintptr(0); i < l.nrlimits; i++ {
		r := &l.rlimits[i&7]
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, r.which, uintptr(unsafe.Pointer(&r.lim)), 0, 0, 0); errno != 0 {
			return stepLimits, errno
		}
	}
	if l.trusted {
		return 0, 0
	}
	if errno := dropPrivileges(l); errno != 0 {
		return stepCaps, errno
	}
	return restrict(l)
}

//go:norace
//go:nosplit
func placeFiles(l *launch) syscall.Errno {
	// Everything closes on exec but what is put in its place below. An old
	// kernel without the call still closes what Go opened.
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>33, unix.CLOSE_RANGE_CLOEXEC, 0, 0, 0)
	for i := uintptr(0); i < l.files; i++ {
		k := i % (3 + maxExtra)
		if _, _, errno := syscall.RawSyscall6(unix.SYS_DUP3, l.from[k], l.to[k], 0, 0, 0, 0); errno != 0 {
			return errno
		}
	}
	return 0
}

// dropPrivileges gives up every capability for good: also root executes its
// programs without any.
//
//go:norace
//go:nosplit
func dropPrivileges(l *launch) syscall.Errno {
	if l.dropCaps {
		for c := uintptr(0); c <= l.lastCap; c++ {
			if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); errno != 0 {
				return errno
			}
		}
		const secure = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, locked
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secure, 0, 0, 0, 0); errno != 0 {
			return errno
		}
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	_, _, errno := syscall.RawSyscall6(unix.SYS_CAPSET, uintptr(unsafe.Pointer(l.capHeader)), uintptr(unsafe.Pointer(l.capData)), 0, 0, 0, 0)
	return errno
}

//go:norace
//go:nosplit
func restrict(l *launch) (uint32, syscall.Errno) {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return stepPrivs, errno
	}
	if l.landlock {
		if _, _, errno := syscall.RawSyscall6(unix.SYS_LANDLOCK_RESTRICT_SELF, l.landlockFD, l.landFlags, 0, 0, 0, 0); errno != 0 {
			return stepLandlock, errno
		}
	}
	if l.prog != nil {
		if _, _, errno := syscall.RawSyscall6(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(l.prog)), 0, 0, 0); errno != 0 {
			return stepSeccomp, errno
		}
	}
	return 0, 0
}

// unblock lets signals through again.
//
//go:norace
//go:nosplit
func unblock(l *launch) (uint32, syscall.Errno) {
	const setMask = 2 // SIG_SETMASK
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(l.emptyMask)), 0, 8, 0, 0)
	if errno != 0 {
		return stepSession, errno
	}
	return 0, 0
}
