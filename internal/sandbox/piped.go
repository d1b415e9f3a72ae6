package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// relay moves the pipes from the descriptors that Run hands over to the
// standard ones, and becomes the command.
const relay = `exec "$@" <&3 >&4 3<&- 4>&-`

// Piped is a command of the sandbox that is talked to while it runs.
type Piped struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// StartPiped begins spec's command with stdin and stdout as its standard
// streams, and returns without waiting. The files become the command's: they
// are closed when it has ended, or here when it was not begun. What it writes
// to standard error goes the way of Run's output. The end of ctx kills it, and
// so does the end of this process. Spec's own Stdin and ExtraFiles are not used.
func StartPiped(ctx context.Context, spec Spec, stdin, stdout *os.File) *Piped {
	ctx, cancel := context.WithCancel(ctx)
	p := &Piped{cancel: cancel, done: make(chan struct{})}
	spec.Stdin = nil
	spec.Argv = append([]string{"/bin/sh", "-c", relay, "sh"}, spec.Argv...)
	spec.ExtraFiles = []ExtraFile{{File: stdin, FD: 3}, {File: stdout, FD: 4}}
	go func() {
		defer close(p.done)
		defer cancel()
		res, err := Run(ctx, spec)
		if err == nil && res.Exit != 0 {
			err = fmt.Errorf("the command ended with status %d %s%s", res.Exit, res.Signal, res.Limit)
		}
		p.err = errors.Join(err, stdin.Close(), stdout.Close())
	}()
	return p
}

// Wait returns when nothing of the command is left: nil for exit status 0.
func (p *Piped) Wait() error {
	<-p.done
	return p.err
}

// Kill ends the command with everything that it has started, and returns once
// they are gone. It may be called after the end, and again.
func (p *Piped) Kill() {
	p.cancel()
	<-p.done
}
