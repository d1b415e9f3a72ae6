package validate

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
)

// child is an interpreter that runs as a plain child process.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

// keptEnvironment is what version managers need to find the interpreter. The
// worker itself reads none of it (python -I).
var keptEnvironment = []string{"PATH", "HOME", "PYENV_ROOT", "PYENV_VERSION", "SYSTEMROOT", "LD_LIBRARY_PATH"}

// StartProcess is the default Starter: a plain child process. The process ends when its input does,
// so it can't outlive its parent.
func StartProcess(ctx context.Context, argv []string) (Process, error) {
	//nolint:gosec // the interpreter is the caller's configuration
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = os.TempDir()
	for _, k := range keptEnvironment {
		if v, ok := os.LookupEnv(k); ok {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, out: out}, nil
}

func (c *child) Stdin() io.WriteCloser { return c.in }

func (c *child) Stdout() io.Reader { return c.out }

// Kill ends the process; one that is gone already is fine.
func (c *child) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (c *child) Wait() error { return c.cmd.Wait() }
