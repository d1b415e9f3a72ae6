package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// spaceRun is the parent's side of one run in namespaces of its own.
type spaceRun struct {
	*stream
	spec    Spec
	level   Level
	view    view
	who     identity
	group   *cgroup
	feats   Features
	child   *space
	control *os.File
	pid     int
	meter   *meter
	// files are what process 1 gets, at numbers that collide with nothing.
	files []*os.File
}

// errTree says that the staged tree could not be mounted as an overlay.
var errTree = errors.New("no overlay")

// runSpace runs the command at LevelUser or LevelFull. Group is nil at
// LevelUser. Nothing of the run is ever written to the host's disk.
func runSpace(ctx context.Context, spec Spec, level Level, group *cgroup) (Result, error) {
	r := &spaceRun{spec: spec, level: level, group: group}
	if err := r.start(); err != nil {
		return Result{}, err
	}
	defer r.close()
	fault.Point("sandbox.started")
	return r.follow(ctx)
}

// probeSpace makes the level and runs nothing.
func probeSpace(spec Spec, level Level, group *cgroup) (Features, error) {
	spec.Argv = nil
	r := &spaceRun{spec: spec, level: level, group: group}
	err := r.start()
	if err == nil {
		r.close()
	}
	return r.feats, err
}

// start brings process 1 to the point where the command runs.
func (r *spaceRun) start() (err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: control: %w", ErrSetup, err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return errors.Join(fmt.Errorf("%w: control: %w", ErrSetup, err), unix.Close(pair[0]), unix.Close(pair[1]))
	}
	r.control = os.NewFile(uintptr(pair[0]), "control")
	theirs := os.NewFile(uintptr(pair[1]), "control-1")
	var write *os.File
	if r.stream, write, err = newStream(r.spec); err != nil {
		return errors.Join(err, r.control.Close(), theirs.Close())
	}
	err = r.build(theirs, write)
	if err == nil {
		r.pid, err = r.child.fork()
		if err != nil {
			err = fmt.Errorf("%w: level %s: namespaces: %w", kindOf(err), r.level, err)
		}
	}
	err = errors.Join(err, theirs.Close(), write.Close())
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	r.files = nil
	r.read(r.spec)
	if err == nil {
		err = r.begin()
	}
	if err != nil {
		r.close()
	}
	return err
}

// kindOf tells a machine that is short of something for a moment, which is no
// reason for less isolation, from one that grants no namespaces.
func kindOf(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOMEM) {
		return ErrSetup
	}
	return ErrUnavailable
}

// park duplicates a file to a number above all that the command may ask for.
func (r *spaceRun) park(fd uintptr) (uintptr, error) {
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, parkFD)
	if err != nil {
		return 0, fmt.Errorf("%w: descriptor: %w", ErrSetup, err)
	}
	r.files = append(r.files, os.NewFile(uintptr(n), "parked"))
	return uintptr(n), nil
}

// build writes everything that process 1 does.
func (r *spaceRun) build(control, output *os.File) error {
	fd, err := r.park(control.Fd())
	if err != nil {
		return err
	}
	r.child = &space{flags: spaceFlags(r.spec.Network), control: fd}
	if r.group == nil {
		period := unix.NsecToTimespec(int64(storeEvery))
		r.child.period = &period
	}
	r.view = newView(r.spec)
	t, err := r.chooseIdentity()
	if err != nil {
		return err
	}
	if err := r.plan(output); err != nil {
		return err
	}
	rules, abi, err := rulesetFD(r.spec.Network)
	if err != nil {
		return err
	}
	if rules >= 0 {
		parked, err := r.park(uintptr(rules))
		if err = errors.Join(err, unix.Close(rules)); err != nil {
			return err
		}
		rules = int(parked)
		if r.child.command != nil {
			r.child.command.landlock, r.child.command.landlockFD = true, parked
		}
	}
	w := &writer{}
	r.program(w, t, rules, abi)
	r.child.setup, r.child.keep = w.program, w.keep
	r.feats = r.features(abi)
	return w.err
}

// program is the order of process 1's setup.
func (r *spaceRun) program(w *writer, t trees, rules, abi int) {
	r.closeOthers(w)
	w.call("go-ahead", unix.SYS_RECVFROM, r.child.control, pin(w, new([8]byte)), 1, 0, 0, 0).answered = true
	score := []byte("1000")
	w.call("oom score", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0).into(regTree).maybe()
	w.call("oom score", unix.SYS_WRITE, regTree, pin(w, &score[0]), len(score)).maybe()
	w.call("oom score", unix.SYS_CLOSE, regTree).maybe()
	r.who.assume(w)
	w.call("dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	r.view.mounts(w, r.spec, t)
	if r.spec.Network == NetLoopback {
		w.loopbackUp()
	}
	w.call("store", unix.SYS_OPENAT, unix.AT_FDCWD, r.view.private().tmp, unix.O_PATH|unix.O_CLOEXEC, 0).into(regStore)
	mask := new([2]uint64)
	mask[0] = 1 << (uint(unix.SIGCHLD) - 1)
	w.call("signals", unix.SYS_SIGNALFD4, -1, pin(w, mask), 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK).into(regSignals)
	if rules >= 0 {
		r.view.rules(w, rules, abi, r.spec.Network)
	}
}

// closeOthers closes every descriptor but those of this run.
func (r *spaceRun) closeOthers(w *writer) {
	var keep []int
	for _, f := range r.files {
		keep = append(keep, int(f.Fd()))
	}
	slices.Sort(keep)
	next := 0
	for _, fd := range keep {
		if fd > next {
			w.call("close descriptors", unix.SYS_CLOSE_RANGE, next, fd-1, 0)
		}
		next = fd + 1
	}
	w.call("close descriptors", unix.SYS_CLOSE_RANGE, next, int(^uint32(0)), 0)
}

// plan makes the command ready, if there is one.
func (r *spaceRun) plan(output *os.File) error {
	if len(r.spec.Argv) == 0 {
		return nil
	}
	o, err := newOrder(r.spec, r.view.private())
	if err != nil {
		return err
	}
	o.Level = r.level
	o.Path, o.Dir = r.spec.inside(o.Path), r.spec.MountAt
	stdin, err := stdinFile(r.spec.Stdin)
	if err != nil {
		return fmt.Errorf("%w: stdin: %w", ErrSetup, err)
	}
	defer func() { _ = stdin.Close() }()
	var doors []*os.File
	if r.group != nil {
		if doors, err = r.group.doors(); err != nil {
			return err
		}
	}
	o.Doors, o.Counted = len(doors), r.who.hostUID != 0
	l, err := o.words()
	if err != nil {
		return err
	}
	l.initPid, l.dropCaps = 1, true
	prog, err := spaceFilter(r.group != nil)
	if err != nil {
		return err
	}
	l.prog = &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]} //nolint:gosec // a few hundred instructions
	give := func(f *os.File, to int) error {
		n, err := r.park(f.Fd())
		if err == nil {
			l.from[l.files], l.to[l.files] = n, uintptr(to)
			l.files++
		}
		return err
	}
	err = errors.Join(give(stdin, 0), give(output, 1), give(output, 2))
	for _, x := range r.spec.ExtraFiles {
		err = errors.Join(err, give(x.File, x.FD))
	}
	for _, d := range doors {
		n, perr := r.park(d.Fd())
		l.doors[l.ndoors&3], err = n, errors.Join(err, perr, d.Close())
		l.ndoors++
	}
	r.child.command = l
	return err
}

// begin lets process 1 go and waits until the command runs.
func (r *spaceRun) begin() error {
	if err := r.who.write(r.pid); err != nil {
		return fmt.Errorf("%w: level %s: user namespace: %w", ErrUnavailable, r.level, err)
	}
	if _, err := r.control.Write([]byte{1}); err != nil {
		return fmt.Errorf("%w: level %s: process 1 is gone: %w", ErrSetup, r.level, err)
	}
	if err := r.control.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	n, err := r.receive()
	if err != nil {
		return fmt.Errorf("%w: level %s: process 1 did not answer: %w", ErrSetup, r.level, err)
	}
	errno := syscall.Errno(n.Errno)
	switch n.Kind {
	case noteStarted:
		return r.control.SetReadDeadline(time.Time{})
	case noteSetupFailed:
		what := r.child.setup.name(int(n.Step))
		err := fmt.Errorf("%w: level %s: %s: %w", kindOf(errno), r.level, what, errno)
		if what == treeCall {
			err = errors.Join(errTree, err)
		}
		return err
	case noteStartFailed:
		return r.notStarted(&stepError{step: n.Step, errno: errno})
	default:
		return fmt.Errorf("%w: process 1 said %d", ErrSetup, n.Kind)
	}
}

func (r *spaceRun) notStarted(err *stepError) error {
	missing := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOEXEC)
	if err.step != stepExec || !missing {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	hint := ""
	if err.errno == unix.ENOENT {
		hint = " (inside, only system folders, the tree and granted folders exist)"
	}
	return fmt.Errorf("%w: %s: %w%s", ErrCommandNotFound, r.spec.Argv[0], err, hint)
}

func (r *spaceRun) receive() (note, error) {
	var n note
	k, err := r.control.Read(unsafe.Slice((*byte)(unsafe.Pointer(&n)), sizeofNote))
	if err == nil && uintptr(k) != sizeofNote {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// follow waits for the end, whoever brings it about.
func (r *spaceRun) follow(ctx context.Context) (Result, error) {
	started := time.Now()
	r.meter = &meter{pid: r.pid, group: r.group, limits: r.spec.Limits}
	notes := make(chan note, 1)
	go func() {
		defer close(notes)
		for {
			n, err := r.receive()
			if err != nil {
				return
			}
			notes <- n
		}
	}()
	last, ended := r.wait(ctx, notes)
	// The control socket is closed, so process 1 is ending, and with it
	// everything in its namespace before it can be waited for.
	status, err := r.reap()
	res := Result{Features: r.feats, Seconds: time.Since(started).Seconds(), Usage: r.meter.usage(last)}
	outErr := r.finish()
	res.Output = r.captured.output()
	res.Usage.OutputBytes = res.Output.Total
	switch {
	case err != nil:
		return res, err
	case outErr != nil:
		return res, fmt.Errorf("sandbox output: %w", outErr)
	case last.Kind != noteEnded && ended == "":
		return res, fmt.Errorf("%w: process 1 ended without a report (status %#x)", ErrSetup, int(status))
	}
	res.settle(last, ended, r.meter)
	if ended == endContext {
		return res, ctx.Err()
	}
	return res, nil
}

// wait returns the last note and what ended the run, if it was not the
// command itself.
func (r *spaceRun) wait(ctx context.Context, notes <-chan note) (last note, ended string) {
	timer := time.NewTimer(r.spec.Timeout)
	defer timer.Stop()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	done, overflow := ctx.Done(), r.overflow
	var late <-chan time.Time
	end := func(why string) {
		if ended != "" {
			return
		}
		ended, done, overflow = why, nil, nil
		look.Stop()
		fault.Point("sandbox.stop")
		if _, err := r.control.Write([]byte{0}); err != nil {
			_ = unix.Kill(r.pid, unix.SIGKILL)
		}
		late = time.After(graceToReport)
	}
	for {
		select {
		case n, ok := <-notes:
			if !ok {
				return last, ended
			}
			last = n
			r.meter.store = n.used()
		case <-timer.C:
			end(endTimeout)
		case <-overflow:
			end(LimitOutput)
		case <-done:
			end(endContext)
		case <-look.C:
			if hit := r.meter.look(); hit != "" {
				end(hit)
			}
		case <-late:
			_ = unix.Kill(r.pid, unix.SIGKILL)
		}
	}
}

// storeEvery is how often process 1 says what the run's file system holds,
// where no cgroup counts it.
const storeEvery = 100 * time.Millisecond

// graceToReport is how long process 1 may take to end the tree and to say
// what it used, before it is killed and the kernel ends the tree.
const graceToReport = 300 * time.Millisecond

// reap waits for process 1, which the kernel lets go only when nothing is
// left in its namespace.
func (r *spaceRun) reap() (unix.WaitStatus, error) {
	pid := r.pid
	r.pid = 0
	var ws unix.WaitStatus
	for {
		var usage unix.Rusage
		_, err := unix.Wait4(pid, &ws, 0, &usage)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return ws, fmt.Errorf("%w: wait for process 1: %w", ErrSetup, err)
		}
		if r.meter != nil {
			r.meter.total = usage
		}
		return ws, nil
	}
}

// close ends what still runs and releases everything.
func (r *spaceRun) close() {
	_ = r.control.Close()
	if r.pid > 0 {
		_ = unix.Kill(r.pid, unix.SIGKILL)
		_, _ = r.reap()
	}
	r.stream.close()
}

// used is how much of the run's own file system is taken.
func (n note) used() int64 {
	return int64(n.Store.Blocks-n.Store.Bfree) * n.Store.Bsize //nolint:gosec // bounded by the mount's size
}

// settle takes over what process 1 and the meter know.
func (res *Result) settle(n note, ended string, m *meter) {
	ws := unix.WaitStatus(n.Status)
	res.Outlived, res.Exit = int(n.Outlived), -1
	stopped := n.Exited == 0
	switch {
	case n.Exited == 1 && ws.Exited():
		res.Exit = ws.ExitStatus()
	case n.Exited == 1 && ws.Signaled():
		res.Signal = unix.SignalName(ws.Signal())
	default:
		res.Signal = unix.SignalName(unix.SIGKILL)
	}
	hit := ""
	if m.group != nil {
		hit = m.group.hit()
	}
	switch {
	case hit != "":
		res.Limit = hit
	case stopped && ended == endTimeout:
		res.Timeout = true
	case ended != "" && ended != endTimeout && ended != endContext && (stopped || ended == LimitOutput):
		res.Limit = ended
	case res.Signal == "SIGXCPU":
		res.Limit = LimitCPU
	case res.Signal == "SIGXFSZ":
		res.Limit = LimitFileSize
	case n.Store.Blocks > 0 && n.Store.Bfree == 0:
		res.Limit = LimitTree
	case n.Store.Files > 0 && n.Store.Ffree == 0:
		res.Limit = LimitInodes
	}
}

// features says what is in force, once the program was written.
func (r *spaceRun) features(abi int) Features {
	f := Features{
		Landlock: abi, Seccomp: true, Signals: true, Masked: true, Network: "namespace", Tree: "overlay", ReadOnlyOver: true,
		Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "cgroup"}, User: cmp.Or(map[bool]string{true: "nobody"}[r.who.changed()], "caller"),
	}
	if r.spec.Network == NetFull {
		f.Network = "open"
	} else {
		f.Namespaces = append(f.Namespaces, "net")
	}
	if r.spec.bindTree {
		f.Tree = "bind"
	}
	if r.group != nil {
		f.Cgroup = r.group.version
	}
	f.Bounds = bounds(f, r.who.hostUID)
	return f
}
