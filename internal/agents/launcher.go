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
	p := sandbox.StartPiped(ctx, sandbox.Spec{
		Dir: cmd.Dir, Argv: cmd.Argv, Env: cmd.Env, Timeout: c.timeout,
		ReadOnly: c.readOnly, Hidden: c.hidden, Temp: c.temp, Log: cmd.Stderr,
	}, in, out)
	return harness{p}, nil
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

// harness is a running repair.Process.
type harness struct{ *sandbox.Piped }

// Kill implements repair.Process.
func (h harness) Kill() error {
	h.Piped.Kill()
	return nil
}
