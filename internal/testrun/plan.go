package testrun

import (
	"errors"
	"fmt"
	"strings"
)

// The runners of a Plan.
const (
	Pytest   = "pytest"
	Unittest = "unittest"
	Command  = "command"
	Go       = "go"
	Node     = "node"
	Jest     = "jest"
	Vitest   = "vitest"
)

// Errors of Find that a caller branches on.
var (
	// ErrNoTests says that the project holds nothing that looks like a test.
	ErrNoTests = errors.New("no tests found")
	// ErrNoInterpreter says that no Python can run the project's tests.
	ErrNoInterpreter = errors.New("no usable Python interpreter")
	// ErrCommandNotFound says that the test command names no program.
	ErrCommandNotFound = errors.New("test command not found")
	// ErrTestCommand says that the test command cannot be understood.
	ErrTestCommand = errors.New("invalid test command")
)

// Plan says how a project's tests are run. It holds for every staged copy of
// the project on this machine.
type Plan struct {
	// Runner is one of the constants of this package.
	Runner string `json:"runner"`
	// Root is the project's own folder, absolute and free of symlinks. It is
	// never read during a run, but for virtual environments inside it.
	Root string `json:"root"`
	// Python is the interpreter of Pytest and Unittest, Tool the toolchain of
	// Go, Node, Jest and Vitest.
	Python *Interpreter `json:"python,omitempty"`
	Tool   *Tool        `json:"tool,omitempty"`
	// Args are the arguments of the runner, or the whole command.
	Args []string `json:"args,omitempty"`
	// Names and Patterns are what unittest was asked to load; Names are the
	// packages or files of the others.
	Names    []string `json:"names,omitempty"`
	Patterns []string `json:"patterns,omitempty"`
	// Env are variables that the test command sets.
	Env []string `json:"env,omitempty"`
	// Plain lets the unittest runner also run functions with bare asserts.
	Plain bool `json:"plain,omitempty"`
	// Weak is true when nothing but an exit status will be known.
	Weak bool `json:"weak,omitempty"`
	// Note is a sentence for people when the plan is not the obvious one.
	Note string `json:"note,omitempty"`
	// Search is the command's PATH; ReadOnly the folders it needs.
	Search   string   `json:"search,omitempty"`
	ReadOnly []string `json:"read_only,omitempty"`
}

// String names the plan in a few words.
func (p Plan) String() string {
	switch {
	case p.Python != nil:
		return fmt.Sprintf("%s under Python %s (%s)", p.Runner, p.Python.Version, p.Python.Path)
	case p.Tool != nil && p.Runner == Go:
		return fmt.Sprintf("go test under %s (%s)", p.Tool.Version, p.Tool.Path)
	case p.Tool != nil:
		return fmt.Sprintf("%s under Node %s (%s)", p.Runner, p.Tool.Version, p.Tool.Path)
	}
	return "command " + strings.Join(p.Args, " ")
}

// Interpreter is a Python that was asked what it is.
type Interpreter struct {
	// Path is the real executable, shims resolved.
	Path    string `json:"path"`
	Version string `json:"version"`
	// Pytest is the version of pytest, empty when it cannot be imported.
	Pytest string `json:"pytest,omitempty"`
	// UserSite is the user's site folder when pytest is there only.
	UserSite string `json:"user_site,omitempty"`
	// ReadOnly lists the files and folders it needs.
	ReadOnly []string `json:"read_only,omitempty"`
	// Keep lists its folders inside the project.
	Keep []string `json:"keep,omitempty"`
}
