package repair

import (
	"context"
	"io"
)

// Command is a process that a Launcher starts.
type Command struct {
	// Argv holds the absolute path of the program and its arguments.
	Argv []string
	// Dir is the working directory: the tree that the process may write.
	Dir string
	// Env is the whole environment, in the form KEY=VALUE.
	Env []string
	// Stdin, Stdout and Stderr are connected to the process. The launcher
	// closes none of them.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Launcher starts the harness, confined as the caller's level of isolation
// demands. The harness needs: the interpreter with its libraries, the tree at
// Command.Dir writable, a writable folder for temporary files, fork, and
// nothing else; no network.
type Launcher interface {
	// Start begins the process and returns without waiting for it. The end
	// of ctx kills it.
	Start(ctx context.Context, c Command) (Process, error)
}

// Process is a started Command.
type Process interface {
	// Kill ends the process and everything that it has started, and
	// returns once they are gone. It may be called after the end, and again.
	Kill() error
	// Wait returns when the process has ended, with nil for exit status 0.
	// It is called once.
	Wait() error
}
