package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/sandbox"
)

// sandboxCmd runs a command that nobody trusts.
type sandboxCmd struct {
	Command []string `arg:"" passthrough:"" predictor:"file" help:"The command, after --."`

	Dir       string        `default:"." type:"existingdir" predictor:"folder" placeholder:"DIR" help:"The folder it works in; only level thin ever writes it."`
	At        string        `predictor:"file" placeholder:"PATH" help:"Show the folder at this absolute path (default: its own)."`
	Level     string        `enum:",vm,full,user,thin" default:"" help:"Demand a level: vm, full, user or thin (default: full, else user)."`
	Net       string        `enum:"none,loopback,full" default:"none" help:"What it may reach: none, loopback (its own) or full."`
	Timeout   time.Duration `default:"10m" help:"End it after this long."`
	Memory    bytesFlag     `default:"2GiB" help:"Memory of the whole process tree, files in memory included."`
	Processes int           `default:"256" help:"Processes and threads at once."`
	CPU       time.Duration `name:"cpu" help:"Processor time of the whole process tree (default: no bound)."`
	FileSize  bytesFlag     `default:"1GiB" help:"Size of each file it writes."`
	TreeSize  bytesFlag     `default:"1GiB" help:"Size of everything it adds."`
	Inodes    int64         `default:"262144" help:"Number of files it adds."`
	Output    bytesFlag     `default:"100MiB" help:"What it may print."`
	Read      []string      `predictor:"file" placeholder:"PATH" sep:"none" help:"A further file or folder it may read; may be repeated."`
	Write     []string      `predictor:"folder" placeholder:"DIR" sep:"none" help:"A further folder it may really write; may be repeated."`
	Protect   []string      `predictor:"file" placeholder:"PATH" sep:"none" help:"A file or folder in the folder that it may only read; may be repeated."`
	Env       []string      `placeholder:"KEY=VALUE" sep:"none" help:"Add to its environment; nothing of yours is in it; may be repeated."`
	JSON      bool          `name:"json" help:"Print one JSON object with outcome, usage and output, and nothing else."`
}

// Help is shown below the flags.
func (sandboxCmd) Help() string {
	return `Exit status: the command's own; 124 when the time was over, 125 when a limit was hit, 128+N when signal N ended
the command, 126 when the level cannot be had here, 127 when the command was not found, 1 for wrong usage or when
the sandbox itself failed. With --json, "outcome" says which of them it was.

Examples:
  nexus sandbox -- python3 -c 'print(open("/etc/shadow").read())'
  nexus sandbox --dir app --net loopback -- python3 -m pytest -q
  nexus sandbox --level full --memory 256MiB --timeout 20s --json -- ./build.sh
  nexus sandbox --read ~/.pyenv --protect tests --env CI=1 -- make check`
}

// Exit statuses of their own, as timeout(1) and shells use them.
const (
	exitTimeout     = 124
	exitLimit       = 125
	exitUnavailable = 126
	exitNotFound    = 127
)

// sandboxReport is what --json prints.
type sandboxReport struct {
	// Outcome is exited, signal, timeout, limit, unavailable, not-found or error.
	Outcome  string           `json:"outcome"`
	Exit     int              `json:"exit"`
	Signal   string           `json:"signal,omitempty"`
	Limit    string           `json:"limit,omitempty"`
	Level    sandbox.Level    `json:"level,omitempty"`
	Why      string           `json:"why,omitempty"`
	Features sandbox.Features `json:"features"`
	Usage    sandbox.Usage    `json:"usage"`
	// CPU is the processor time of the whole tree, user and system, in seconds.
	CPU      float64 `json:"cpu_seconds"`
	Outlived int     `json:"outlived,omitempty"`
	Seconds  float64 `json:"seconds"`
	Output   string  `json:"output"`
	// Truncated says that the middle of the output was dropped.
	Truncated bool   `json:"truncated,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Run runs the command.
func (c *sandboxCmd) Run(ctx context.Context, e *env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	spec, err := c.spec()
	if err != nil {
		return err
	}
	shown := &plainWriter{w: e.out}
	if !c.JSON {
		spec.Log = shown
	}
	res, err := c.run(ctx, spec)
	err = errors.Join(err, shown.flush())
	status, outcome := sandboxOutcome(res, err)
	if c.JSON {
		r := sandboxReport{
			Outcome: outcome, Exit: res.Exit, Signal: res.Signal, Limit: res.Limit, Level: res.Level, Why: res.Why,
			Features: res.Features, Usage: res.Usage, CPU: (res.Usage.User + res.Usage.System).Seconds(), Outlived: res.Outlived, Seconds: res.Seconds,
			Output: sandbox.Printable(res.Output.Bytes()), Truncated: res.Output.Dropped > 0,
		}
		if err != nil {
			r.Error = err.Error()
		}
		enc := json.NewEncoder(e.out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		return exitStatus(status)
	}
	switch {
	case err != nil:
		fmt.Fprintln(e.err, "nexus:", err)
	case outcome != "exited":
		fmt.Fprintf(e.err, "nexus: %s %s after %.1f s\n", outcome, cmp.Or(res.Limit, res.Signal), res.Seconds)
	}
	return exitStatus(status)
}

// run tries the levels that may be had without asking for less.
func (c *sandboxCmd) run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	if c.Level != "" || os.Getenv(sandbox.EnvLevel) != "" {
		spec.Level = sandbox.Level(c.Level)
		return sandbox.Run(ctx, spec)
	}
	spec.Level = sandbox.LevelFull
	res, err := sandbox.Run(ctx, spec)
	if !errors.Is(err, sandbox.ErrUnavailable) {
		return res, err
	}
	spec.Level = sandbox.LevelUser
	res, lesser := sandbox.Run(ctx, spec)
	if lesser == nil {
		res.Why = err.Error()
	}
	return res, lesser
}

func exitStatus(status int) error {
	if status == 0 {
		return nil
	}
	return exitError(status)
}

func (c *sandboxCmd) spec() (sandbox.Spec, error) {
	argv := c.Command
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	for _, kv := range c.Env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return sandbox.Spec{}, fmt.Errorf("--env %s: want KEY=VALUE", kv)
		}
	}
	return sandbox.Spec{
		Dir: c.Dir, MountAt: c.At, Argv: argv, Env: c.Env, Timeout: c.Timeout, Network: sandbox.Network(c.Net),
		ReadOnly: c.Read, Writable: c.Write, ReadOnlyOver: c.Protect,
		Limits: sandbox.Limits{
			MemoryBytes: int64(c.Memory), Processes: c.Processes, CPU: c.CPU, FileSize: int64(c.FileSize),
			TreeBytes: int64(c.TreeSize), Inodes: c.Inodes, OutputBytes: int64(c.Output),
		},
	}, nil
}

// sandboxOutcome names the end of a run and the exit status for it.
func sandboxOutcome(res sandbox.Result, err error) (int, string) {
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return exitUnavailable, "unavailable"
	case errors.Is(err, sandbox.ErrCommandNotFound):
		return exitNotFound, "not-found"
	case err != nil:
		return 1, "error"
	case res.Timeout:
		return exitTimeout, "timeout"
	case res.Limit != "":
		return exitLimit, "limit"
	case res.Signal != "":
		return 128 + int(unix.SignalNum(res.Signal)), "signal"
	default:
		return res.Exit, "exited"
	}
}

// plainWriter shows what a hostile program prints, in whole lines where they
// are not too long, so that no escape sequence is seen in halves.
type plainWriter struct {
	w    io.Writer
	held []byte
}

// maxHeld bounds a line that has not ended yet.
const maxHeld = 8 << 10

// Write implements io.Writer.
func (p *plainWriter) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	end := bytes.LastIndexByte(p.held, '\n') + 1
	if end == 0 && len(p.held) > maxHeld {
		end = len(p.held)
	}
	_, err := io.WriteString(p.w, sandbox.Printable(p.held[:end]))
	p.held = append(p.held[:0], p.held[end:]...)
	return len(b), err
}

// flush shows what came last.
func (p *plainWriter) flush() error {
	_, err := io.WriteString(p.w, sandbox.Printable(p.held))
	p.held = nil
	return err
}

// bytesFlag is a size: a number with an optional unit, 1024-based.
type bytesFlag int64

var byteUnits = map[string]int64{"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *bytesFlag) UnmarshalText(text []byte) error {
	s := strings.ToUpper(strings.TrimSpace(string(text)))
	digits := strings.TrimRight(s, "BIKMGT")
	unit, known := byteUnits[strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "I")]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || !known || n <= 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is no size: want a number with K, M or G, such as 256MiB", text)
	}
	*f = bytesFlag(n * unit)
	return nil
}
