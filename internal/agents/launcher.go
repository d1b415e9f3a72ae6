package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/repair"
	"nexuscore.dev/nexus/internal/sandbox"
)

// confined starts the engine's harness in the sandbox: mutated code is as
// hostile as any other.
type confined struct {
	// readOnly is what the interpreter needs, hidden what nobody may see.
	readOnly, hidden []string
	temp             string
	timeout          time.Duration
}

// relay moves the pipes from the descriptors that the sandbox hands over to
// the standard ones, and becomes the harness.
const relay = `exec "$@" <&3 >&4 3<&- 4>&-`

// Start implements repair.Launcher.
func (c confined) Start(ctx context.Context, cmd repair.Command) (repair.Process, error) {
	in, err := dup(cmd.Stdin)
	if err != nil {
		return nil, err
	}
	out, err := dup(cmd.Stdout)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &confinedProcess{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel()
		res, err := sandbox.Run(ctx, sandbox.Spec{
			Dir: cmd.Dir, Argv: append([]string{"/bin/sh", "-c", relay, "sh"}, cmd.Argv...), Env: cmd.Env,
			Timeout: c.timeout, ReadOnly: c.readOnly, Hidden: c.hidden, Temp: c.temp, Log: cmd.Stderr,
			ExtraFiles: []sandbox.ExtraFile{{File: in, FD: 3}, {File: out, FD: 4}},
		})
		if err == nil && res.Exit != 0 {
			err = fmt.Errorf("the harness ended with status %d %s%s", res.Exit, res.Signal, res.Limit)
		}
		p.err = errors.Join(err, in.Close(), out.Close())
	}()
	return p, nil
}

// dup copies a pipe's end, because its owner closes it when Start has
// returned.
func dup(stream any) (*os.File, error) {
	var f *os.File
	switch s := stream.(type) {
	case io.Reader:
		f, _ = s.(*os.File)
	case io.Writer:
		f, _ = s.(*os.File)
	}
	if f == nil {
		return nil, errors.New("launcher: the harness talks over pipes only")
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("launcher: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

type confinedProcess struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Wait implements repair.Process.
func (p *confinedProcess) Wait() error {
	<-p.done
	return p.err
}

// Kill implements repair.Process: when the sandbox's run is over, nothing of
// it is left.
func (p *confinedProcess) Kill() error {
	p.cancel()
	<-p.done
	return nil
}
