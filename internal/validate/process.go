package validate

import (
	"context"
	"errors"
	"os"
	"time"

	"nexuscore.dev/nexus/internal/sandbox"
)

// Bounds of the worker's box, beside Config.MemoryBytes.
const (
	// workerLife is the age at which a worker is replaced by a fresh one.
	workerLife      = time.Hour
	workerProcesses = 32
	workerFile      = 1 << 20
)

// start launches the interpreter in the sandbox: it may be the project's own,
// so it is as hostile as anything of the project. It sees its toolchain and an
// empty folder, and has no network.
func (cfg Config) start(ctx context.Context, argv []string) (_ *boxed, err error) {
	dir, err := sandbox.MakeTemp(cfg.Temp)
	if err != nil {
		return nil, err
	}
	b := &boxed{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	var stdin, stdout *os.File
	if stdin, b.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	if b.out, stdout, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	b.Piped = sandbox.StartPiped(ctx, sandbox.Spec{
		Dir: dir, Argv: argv, Timeout: 2 * workerLife, ReadOnly: cfg.ReadOnly, Hidden: cfg.Hidden, Temp: cfg.Temp,
		Limits: sandbox.Limits{MemoryBytes: cfg.MemoryBytes, Processes: workerProcesses, FileSize: workerFile},
	}, stdin, stdout)
	return b, nil
}

// boxed is an interpreter in the sandbox, with our ends of its pipes.
type boxed struct {
	*sandbox.Piped
	dir     string
	in, out *os.File
}

// Wait reaps the process and gives back what it had.
func (b *boxed) Wait() error { return errors.Join(b.Piped.Wait(), b.close()) }

// close releases what the process leaves behind; the writing end may be
// closed already.
func (b *boxed) close() error {
	for _, f := range []*os.File{b.in, b.out} {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	return sandbox.RemoveTemp(b.dir)
}
