package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// space is all that process 1 of the command's namespaces needs. It is a fork
// of this process, without an exec: it makes the view of the file system,
// starts the command, reaps, and ends everything when the command ends, when
// the parent asks, or when the parent is gone. What it holds follows the rules
// of program.
type space struct {
	setup   program
	command *launch
	flags   uintptr
	control uintptr
	poll    [2]unix.PollFd
	// info takes what the signal descriptor says, which nobody reads.
	info   [128]byte
	period *unix.Timespec
	note   note
	keep   []any
}

// note is what process 1 tells the parent, as it lies in memory.
type note struct {
	Kind  uint32
	Step  uint32
	Errno uint32
	// Exited says that the command itself ended, with Status.
	Exited, Status uint32
	// Outlived counts the processes that were left then.
	Outlived uint32
	Usage    unix.Rusage
	// Store is the state of the run's own memory file system.
	Store unix.Statfs_t
}

// Kinds of notes.
const (
	noteSetupFailed uint32 = iota + 1
	noteStartFailed
	noteStarted
	noteTick
	noteEnded
)

const (
	sizeofMountAttr = int(unsafe.Sizeof(unix.MountAttr{}))
	sizeofNote      = unsafe.Sizeof(note{})
	// ruleFD is where a folder's descriptor lies while a rule for it is added.
	ruleFD = MaxFD + 1
)

// spaceFlags are the namespaces a command has to itself.
func spaceFlags(n Network) uintptr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	if n != NetFull {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// fork starts process 1, which waits for one byte on its control socket.
func (s *space) fork() (int, error) {
	var full, old unix.Sigset_t
	for i := range full.Val {
		full.Val[i] = ^full.Val[i]
	}
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &full, &old); err != nil {
		return 0, err
	}
	pid, errno := forkSpace(s)
	err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	runtime.KeepAlive(s)
	if errno != 0 {
		return 0, errno
	}
	return int(pid), err
}

//go:norace
//go:nosplit
//go:noinline
func forkSpace(s *space) (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, s.flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	s.live()
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// live is the life of process 1.
//
//go:norace
//go:nosplit
func (s *space) live() {
	step, errno := s.setup.run()
	if errno != 0 {
		s.note.Kind, s.note.Step, s.note.Errno = noteSetupFailed, uint32(step), uint32(errno) //nolint:gosec // small numbers
		s.tell()
		return
	}
	if s.command == nil {
		s.note.Kind = noteStarted
		s.tell()
		return
	}
	leader, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if leader == 0 && errno == 0 {
		s.become()
		return
	}
	if errno != 0 {
		s.note.Kind, s.note.Step, s.note.Errno = noteStartFailed, stepSession, uint32(errno) //nolint:gosec // a small number
		s.tell()
		return
	}
	for i := range s.command.from {
		if uintptr(i) < s.command.files {
			_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, s.command.from[i], 0, 0, 0, 0, 0)
		}
	}
	s.note.Kind = noteStarted
	s.tell()
	s.wait(leader)
}

// become turns the child into the command, or says why it could not.
//
//go:norace
//go:nosplit
func (s *space) become() {
	l := s.command
	step, errno := prepare(l)
	if errno == 0 {
		step, errno = unblock(l)
	}
	if errno == 0 {
		step = stepExec
		_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.path)),
			uintptr(unsafe.Pointer(l.argv)), uintptr(unsafe.Pointer(l.envp)), 0, 0, 0)
	}
	s.note.Kind, s.note.Step, s.note.Errno = noteStartFailed, step, uint32(errno) //nolint:gosec // a small number
	s.tell()
}

// wait reaps until the command has ended or the parent has spoken.
//
//go:norace
//go:nosplit
func (s *space) wait(leader uintptr) {
	s.poll[0] = unix.PollFd{Fd: int32(s.control), Events: unix.POLLIN}                //nolint:gosec // a descriptor
	s.poll[1] = unix.PollFd{Fd: int32(s.setup.regs[regSignals]), Events: unix.POLLIN} //nolint:gosec // a descriptor
	for s.note.Exited == 0 {
		n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&s.poll)), 2,
			uintptr(unsafe.Pointer(s.period)), 0, 0, 0)
		if errno != 0 && errno != unix.EINTR || s.poll[0].Revents != 0 {
			break
		}
		if n == 0 {
			s.note.Kind = noteTick
			s.measure()
			s.tell()
			continue
		}
		_, _, _ = syscall.RawSyscall6(unix.SYS_READ, s.setup.regs[regSignals], uintptr(unsafe.Pointer(&s.info)), 128, 0, 0, 0)
		for {
			pid, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&s.note.Status)), unix.WNOHANG, 0, 0, 0)
			if errno != 0 || pid == 0 {
				break
			}
			if pid == leader {
				s.note.Exited = 1
				break
			}
		}
	}
	s.end(leader)
}

// end ends whatever is left and says so.
//
//go:norace
//go:nosplit
func (s *space) end(leader uintptr) {
	var status uint32
	for {
		// Those that had ended by themselves did not outlive the command.
		pid, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), unix.WNOHANG, 0, 0, 0)
		if errno != 0 || pid == 0 {
			break
		}
		if pid == leader {
			s.note.Exited, s.note.Status = 1, status
		}
	}
	everyone := ^uintptr(0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_KILL, everyone, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	for {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, everyone, uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			break
		}
		if pid == leader {
			s.note.Status = status
		} else if s.note.Exited == 1 {
			s.note.Outlived++
		}
	}
	s.note.Kind = noteEnded
	s.measure()
	s.tell()
}

//go:norace
//go:nosplit
func (s *space) measure() {
	const children = ^uintptr(0) // RUSAGE_CHILDREN
	_, _, _ = syscall.RawSyscall6(unix.SYS_GETRUSAGE, children, uintptr(unsafe.Pointer(&s.note.Usage)), 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_FSTATFS, s.setup.regs[regStore], uintptr(unsafe.Pointer(&s.note.Store)), 0, 0, 0, 0)
}

//go:norace
//go:nosplit
func (s *space) tell() {
	_, _, _ = syscall.RawSyscall6(unix.SYS_SENDTO, s.control, uintptr(unsafe.Pointer(&s.note)), sizeofNote,
		unix.MSG_NOSIGNAL, 0, 0)
}

// identity is who the command is: the ids it sees, and those that it has for
// the rest of the machine.
type identity struct {
	uid, gid         int
	hostUID, hostGID int
}

// self is an identity that changes nothing.
func self() identity {
	return identity{uid: os.Getuid(), gid: os.Getgid(), hostUID: os.Getuid(), hostGID: os.Getgid()}
}

// strangerID is the user and group that stands for root outside: in the range
// that containers use for nobody in particular, so that nothing on the machine
// belongs to it.
const strangerID = 1_878_000_001

// stranger is the identity of root's commands: root's number inside, nobody
// outside.
func stranger() identity { return identity{hostUID: strangerID, hostGID: strangerID} }

func (i identity) changed() bool { return i.hostUID != os.Getuid() }

// write maps the ids of the user namespace of process pid.
func (i identity) write(pid int) error {
	put := func(file, text string) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file), []byte(text), 0)
	}
	if !i.changed() {
		if err := put("setgroups", "deny"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(
		put("uid_map", fmt.Sprintf("%d %d 1", i.uid, i.hostUID)),
		put("gid_map", fmt.Sprintf("%d %d 1", i.gid, i.hostGID)))
}

// assume writes the calls with which process 1 becomes that user.
func (i identity) assume(w *writer) {
	if !i.changed() {
		return
	}
	w.call("groups", unix.SYS_SETGROUPS, 0, 0)
	w.call("group", unix.SYS_SETRESGID, i.gid, i.gid, i.gid)
	w.call("user", unix.SYS_SETRESUID, i.uid, i.uid, i.uid)
}
