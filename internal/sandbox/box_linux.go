package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startTimeout bounds how long init may take to start the command.
	startTimeout = 20 * time.Second
	// stopTimeout bounds how long init may take to end the tree; after it
	// init itself is killed, and with its namespace everything in it.
	stopTimeout = 3 * time.Second
	// drainTimeout bounds how long the output may stay open after the end.
	drainTimeout = 500 * time.Millisecond
)

// box is the parent's side of one init process, at LevelThin.
type box struct {
	*stream
	cmd     *exec.Cmd
	control *os.File
	diag    *bytes.Buffer
	group   *cgroup
}

// startInit starts the init process; the command does not run yet.
func startInit(ctx context.Context, spec Spec, o *order, group *cgroup) (*box, error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: control: %w", ErrSetup, err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control-init")
	files = append(files, theirs)
	b := &box{control: ours, diag: new(bytes.Buffer), group: group}
	stdin, err := stdinFile(spec.Stdin)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: stdin: %w", ErrSetup, err), ours.Close())
	}
	files = append(files, stdin)
	var w *os.File
	if b.stream, w, err = newStream(spec); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	files = append(files, w)
	pass := []*os.File{theirs, stdin, w}
	for _, x := range spec.ExtraFiles {
		pass = append(pass, x.File)
	}
	if group != nil {
		doors, err := group.doors()
		if err != nil {
			return nil, errors.Join(err, ours.Close(), b.output.Close())
		}
		o.Doors = len(doors)
		files, pass = append(files, doors...), append(pass, doors...)
	}
	if err := b.exec(ctx, pass); err != nil {
		return nil, errors.Join(err, ours.Close(), b.output.Close())
	}
	b.read(spec)
	return b, nil
}

// stdinFile holds the input in memory, so that nothing has to feed a pipe.
func stdinFile(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
		unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	return f, err
}

// exec starts the binary as init. Its life is not bound to ctx: follow asks
// it to end the tree first.
func (b *box) exec(ctx context.Context, pass []*os.File) error {
	b.cmd = exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", initMarker)
	b.cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=single"}
	b.cmd.Dir = "/"
	b.cmd.ExtraFiles = pass
	b.cmd.Stderr = &limited{w: b.diag, left: 16 << 10}
	b.cmd.WaitDelay = time.Second
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return nil
}

// decode reads init's next message.
func (b *box) decode(r *report, within time.Duration) error {
	if err := b.control.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	// Byte by byte, so that nothing of the next message is swallowed.
	err := json.NewDecoder(io.LimitReader(oneByte{b.control}, 64<<10)).Decode(r)
	return errors.Join(err, b.control.SetReadDeadline(time.Time{}))
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// stop asks init to end the tree, and ends init when it does not answer.
func (b *box) stop(done <-chan error) error {
	if err := json.NewEncoder(b.control).Encode(stop{Stop: true}); err != nil && !errors.Is(err, unix.EPIPE) {
		return errors.Join(err, b.kill(done))
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return b.kill(done)
	}
}

func (b *box) kill(done <-chan error) error {
	b.sweep()
	if err := <-done; err == nil {
		return nil
	}
	return fmt.Errorf("%w: init did not end the process tree", ErrSetup)
}

// sweep is the last resort when init is gone or deaf: it ends init and every
// process that still descends from it.
func (b *box) sweep() {
	list, err := descendants(b.cmd.Process.Pid)
	_ = b.cmd.Process.Kill()
	if b.group != nil {
		for _, pid := range b.group.procs() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	if err != nil {
		return
	}
	for _, p := range list {
		if now, err := startTime(p.pid); err == nil && now == p.start {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	}
}

// finish ends init's life and the reading of the output.
func (b *box) finish() error {
	_ = b.control.Close()
	return b.stream.finish()
}

// close releases everything; it may follow finish.
func (b *box) close() {
	_ = b.control.Close()
	if b.cmd.ProcessState == nil {
		_ = b.cmd.Wait()
	}
	b.stream.close()
}

// lost explains an init that ended without a report.
func (b *box) lost(ctx context.Context, err error) error {
	b.sweep()
	_ = b.cmd.Wait()
	text := b.said()
	return errors.Join(ctx.Err(), fmt.Errorf("%w: init ended without a report (%w): %s", ErrSetup, err, text))
}

// failed explains an init that did not start the command.
func (b *box) failed(err error) error {
	b.sweep()
	_ = b.cmd.Wait()
	text := b.said()
	if text == "" {
		text = "is sandbox.MaybeInit the first call of main?"
	}
	return fmt.Errorf("%w: init did not start (%w): %s", ErrSetup, err, text)
}

// said is the beginning of what init wrote to its standard error.
func (b *box) said() string {
	text := strings.TrimSpace(Printable(b.diag.Bytes()))
	return strings.ToValidUTF8(text[:min(len(text), 300)], "")
}

// limited drops what comes after a number of bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	k := min(l.left, len(p))
	l.left -= k
	if _, err := l.w.Write(p[:k]); err != nil {
		return 0, err
	}
	return len(p), nil
}
