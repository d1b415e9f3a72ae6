package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaybeInit turns the process into a sandbox's init when it was started as
// one, and then does not return. Every other process returns at once. It must
// be the first call in main, and in TestMain of each test binary that runs
// commands in a sandbox.
func MaybeInit() {
	if len(os.Args) != 2 || os.Args[1] != initMarker {
		return
	}
	// The command's parent-death signal follows the thread that forks it.
	runtime.LockOSThread()
	if err := initMain(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox init:", err)
		unix.Exit(1)
	}
	// At once: nothing here waits for exit hooks of the binary's other parts.
	unix.Exit(0)
}

// isInit reports whether this process was started as an init but went past
// MaybeInit, which would start inits without end.
func isInit() bool { return len(os.Args) == 2 && os.Args[1] == initMarker }

func initMain() error {
	unix.CloseOnExec(fdControl)
	unix.CloseOnExec(fdStdin)
	unix.CloseOnExec(fdOutput)
	control := os.NewFile(fdControl, "control")
	in, out := json.NewDecoder(control), json.NewEncoder(control)
	var o order
	if err := in.Decode(&o); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	s := &supervisor{order: o, in: in, out: out}
	f, err := s.isolate()
	if err != nil || o.Probe {
		return out.Encode(report{Ready: err == nil, Done: true, Features: f, Error: text1(err)})
	}
	if err := s.launch(); err != nil {
		notFound := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOEXEC)
		var step *stepError
		return out.Encode(report{
			Done: true, Features: f, Error: err.Error(),
			NotFound: notFound && errors.As(err, &step) && step.step == stepExec,
		})
	}
	if err := out.Encode(report{Ready: true, Features: f}); err != nil {
		return s.abandon(err)
	}
	return out.Encode(s.supervise(f))
}

func text1(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// isolate makes this process the one that inherits orphans.
func (s *supervisor) isolate() (Features, error) {
	f := Features{
		Landlock: landlockABI(), Seccomp: true, Signals: signalsScoped(), Network: "seccomp", Tree: "nothing", User: "caller",
	}
	if s.order.Network == NetFull {
		f.Network = "open"
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return f, fmt.Errorf("subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return f, fmt.Errorf("dumpable: %w", err)
	}
	return f, nil
}

// launch forks the command.
func (s *supervisor) launch() error {
	l, err := s.order.plan()
	if err != nil {
		return err
	}
	land := -1
	if l.trusted = s.order.Level == LevelVM; !l.trusted {
		if land, err = s.order.restrict(l); err != nil {
			return err
		}
	}
	pid, err := l.start()
	if err != nil {
		return err
	}
	s.leader = pid
	for _, fd := range slices.Concat(l.from[:l.files], l.doors[:l.ndoors]) {
		_ = unix.Close(int(fd))
	}
	if land >= 0 {
		_ = unix.Close(land)
	}
	return nil
}

// restrict adds what keeps the command from everything that is not its own.
func (o order) restrict(l *launch) (land int, err error) {
	prog, err := filter(o, os.Getpid())
	if err != nil {
		return -1, err
	}
	if land, err = ruleset(o); err != nil {
		return -1, err
	}
	if land, err = aside(land); err != nil {
		return -1, err
	}
	l.prog = &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]} //nolint:gosec // a few hundred instructions
	if land >= 0 {
		l.landlock, l.landlockFD = true, uintptr(land)
	}
	return land, nil
}

// aside moves a descriptor out of the way of the numbers that the command's
// files get. -1 is none.
func aside(fd int) (int, error) {
	if fd < 0 {
		return fd, nil
	}
	parked, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, parkFD)
	return parked, errors.Join(err, unix.Close(fd))
}

// plan turns the order into the words that the child works from, and parks
// the descriptors that init was given.
func (o order) plan() (*launch, error) {
	l, err := o.words()
	if err != nil {
		return nil, err
	}
	if l.dropCaps, err = holdsCaps(); err != nil {
		return nil, err
	}
	return l, o.park(l)
}

// words are the parts of a launch that are no descriptors.
func (o order) words() (*launch, error) {
	l := &launch{
		initPid: uintptr(os.Getpid()), emptyMask: new(unix.Sigset_t),
		capHeader: &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		capData:   &new([2]unix.CapUserData)[0],
	}
	var err error
	if l.path, err = unix.BytePtrFromString(o.Path); err != nil {
		return nil, err
	}
	if l.dir, err = unix.BytePtrFromString(o.Dir); err != nil {
		return nil, err
	}
	if l.argv, err = pointers(o.Argv); err != nil {
		return nil, err
	}
	if l.envp, err = pointers(o.Env); err != nil {
		return nil, err
	}
	l.lastCap = lastCapability()
	if o.Level != LevelVM {
		o.setLimits(l)
	}
	return l, nil
}

func pointers(words []string) (**byte, error) {
	p, err := syscall.SlicePtrFromStrings(words)
	if err != nil {
		return nil, err
	}
	return &p[0], nil
}

// park moves the descriptors out of the way of the numbers they will get.
func (o order) park(l *launch) error {
	pairs := [][2]int{{fdStdin, 0}, {fdOutput, 1}, {fdOutput, 2}}
	for i, to := range o.Extra {
		pairs = append(pairs, [2]int{fdExtra + i, to})
	}
	for i, p := range pairs {
		fd, err := unix.FcntlInt(uintptr(p[0]), unix.F_DUPFD_CLOEXEC, parkFD)
		if err != nil {
			return fmt.Errorf("descriptor %d: %w", p[1], err)
		}
		l.from[i], l.to[i] = uintptr(fd), uintptr(p[1])
	}
	l.files = uintptr(len(pairs))
	first := fdExtra + len(o.Extra)
	for i := range min(o.Doors, len(l.doors)) {
		fd, err := unix.FcntlInt(uintptr(first+i), unix.F_DUPFD_CLOEXEC, parkFD)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		l.doors[i] = uintptr(fd)
		l.ndoors++
	}
	for fd := fdStdin; fd < first+o.Doors; fd++ {
		_ = unix.Close(fd)
	}
	return nil
}

func (o order) setLimits(l *launch) {
	add := func(which int, soft, hard uint64) {
		l.rlimits[l.nrlimits] = rlimit{uintptr(which), unix.Rlimit{Cur: soft, Max: hard}}
		l.nrlimits++
	}
	add(unix.RLIMIT_CORE, 0, 0)
	add(unix.RLIMIT_FSIZE, uint64(o.Limits.FileSize), uint64(o.Limits.FileSize)) //nolint:gosec // not negative
	add(unix.RLIMIT_NOFILE, noFile(1024), noFile(4096))
	add(unix.RLIMIT_MEMLOCK, 64<<10, 64<<10)
	add(unix.RLIMIT_MSGQUEUE, 0, 0)
	if o.Limits.CPU > 0 {
		seconds := uint64(max(1, (o.Limits.CPU+time.Second-1)/time.Second))
		add(unix.RLIMIT_CPU, seconds, seconds+1)
	}
	if o.Counted {
		// Well above the limit, so that the watchdog sees it passed and says so.
		procs := 2*uint64(o.Limits.Processes) + 32 //nolint:gosec // not negative
		add(unix.RLIMIT_NPROC, procs, procs)
	}
	if o.Doors == 0 {
		// A brake for one huge allocation between two looks of the watchdog;
		// address space is not memory, so it is far above the limit itself.
		space := uint64(max(4*o.Limits.MemoryBytes, 4<<30))
		add(unix.RLIMIT_AS, space, space)
	}
}

// noFile lowers a wish to what this process may have.
func noFile(want uint64) uint64 {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return want
	}
	return min(want, now.Max)
}

func holdsCaps() (bool, error) {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return false, fmt.Errorf("capabilities: %w", err)
	}
	return d[0].Effective&(1<<unix.CAP_SETPCAP) != 0, nil
}

var lastCapability = sync.OnceValue(func() uintptr {
	b, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 8); err == nil {
			return uintptr(n)
		}
	}
	return unix.CAP_LAST_CAP
})
