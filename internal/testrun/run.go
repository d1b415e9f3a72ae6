package testrun

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

//go:embed runner.py
var runnerPart string

//go:embed split.py
var splitPart string

// runnerSource is the whole program of the process that runs the tests.
var runnerSource = runnerPart + "\n\n" + splitPart + "\n\nmain()\n"

// Options are the circumstances of one run. The zero value is usable but for
// Tree, without which no verdict can come of the evidence.
type Options struct {
	// Tree is the hash of the staged tree.
	Tree string
	// Timeout bounds the wall clock, default 10 minutes.
	Timeout time.Duration
	// TestTimeout bounds each test where the runner can; 0 sets no limit. A
	// test that takes longer is red.
	TestTimeout time.Duration
	Limits      sandbox.Limits
	// Level demands a sandbox level, default the best there is.
	Level   sandbox.Level
	Network sandbox.Network
	// Hidden lists folders that the tests must not see, such as the state
	// folder; the project's own folder is always among them.
	Hidden []string
	// Log, when set, receives the output as it comes.
	Log io.Writer
	// Temp is where private folders are made, default os.TempDir.
	Temp string
	// Cache is where compilers keep what they have compiled between runs,
	// default a folder of this user's own. Code of the project never writes it.
	Cache string
	// Protected lists the files of the tree that tests and runner consist of,
	// relative and slash-separated. Code under test cannot change them where
	// the level can prevent it; where it did, the evidence says so.
	Protected []string
}

// maxTail bounds Evidence.Tail.
const maxTail = 8 << 10

// Run executes the plan on the staged tree in dir, which it may change, and
// returns the evidence and the output: the whole text, or head and tail of more
// than 16 MiB. An error means that nothing was executed, or that ctx ended the
// run; it wraps the sandbox's error. A suite that fails, hangs, is killed, or cannot even
// be set up is evidence, not an error.
func Run(ctx context.Context, plan Plan, dir string, opts Options) (run.Evidence, []byte, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return run.Evidence{}, nil, fmt.Errorf("run tests: %w", err)
	}
	before := opts.sums(root)
	e, out, err := execute(ctx, plan, root, opts)
	if err == nil {
		opts.compare(root, before, &e)
	}
	return e, out, err
}

func execute(ctx context.Context, plan Plan, root string, opts Options) (run.Evidence, []byte, error) {
	switch {
	case plan.Runner == Command:
		return runCommand(ctx, plan, root, opts)
	case plan.Runner == Go && plan.Tool != nil:
		return runGo(ctx, plan, root, opts)
	case plan.Tool != nil && (plan.Runner == Node || plan.Runner == Jest || plan.Runner == Vitest):
		return runScript(ctx, plan, root, opts)
	}
	if plan.Python == nil || plan.Runner != Pytest && plan.Runner != Unittest {
		return run.Evidence{}, nil, fmt.Errorf("run tests: unknown runner %q", plan.Runner)
	}
	return runPython(ctx, plan, root, opts)
}

// What is kept of an output: all of it, as long as it is no flood.
const (
	keepHead = 4 << 20
	keepTail = 12 << 20
)

func (o Options) spec(plan Plan, root string, argv []string) sandbox.Spec {
	if o.Limits.KeepHead == 0 && o.Limits.KeepTail == 0 {
		o.Limits.KeepHead, o.Limits.KeepTail = keepHead, keepTail
	}
	return sandbox.Spec{
		Dir: root, Argv: argv, Env: plan.Env, Timeout: o.Timeout, Limits: o.Limits, Level: o.Level,
		Network: o.Network, Log: o.Log, Temp: o.Temp, Hidden: append([]string{plan.Root}, o.Hidden...),
	}
}

// atHome asks for the tree at the project's own path, where the sandbox can
// mount: installed links and absolute paths keep working. The runner looks
// where it is. The other languages' runners name files of the staged tree.
func atHome(s sandbox.Spec, plan Plan) sandbox.Spec {
	if sandbox.Mountable(plan.Root) {
		s.MountAt = plan.Root
	}
	return s
}

func runCommand(ctx context.Context, plan Plan, root string, opts Options) (run.Evidence, []byte, error) {
	spec := atHome(opts.spec(plan, root, plan.Args), plan)
	spec.Env = append([]string{"PATH=" + plan.Search}, plan.Env...)
	spec.ReadOnly = plan.ReadOnly
	for _, venv := range []string{".venv", "venv", "env", "node_modules"} {
		spec.ReadOnly = append(spec.ReadOnly, filepath.Join(plan.Root, venv))
	}
	res, err := sandbox.Run(ctx, spec)
	if err != nil {
		return run.Evidence{}, res.Output.Bytes(), fmt.Errorf("run tests: %w", err)
	}
	out := res.Output.Bytes()
	e := evidence(plan, opts, res, out)
	e.Weak = true
	e.Completed = res.Signal == "" && !res.Timeout && res.Limit == ""
	return e, out, nil
}

// evidence is what the sandbox alone knows.
func evidence(plan Plan, opts Options, res sandbox.Result, out []byte) run.Evidence {
	return run.Evidence{
		Runner: plan.Runner, Level: string(res.Level), Tree: opts.Tree, Exit: res.Exit, Signal: res.Signal,
		Limit: res.Limit, Timeout: res.Timeout, Seconds: res.Seconds, Outcomes: map[string]run.Outcome{},
		Tail: tail(out),
	}
}

// withoutLines drops the lines that speak of the planted test, which would
// only mislead whoever reads the output.
func withoutLines(out []byte, canary string) []byte {
	if !bytes.Contains(out, []byte(canary)) {
		return out
	}
	kept := make([]byte, 0, len(out))
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, []byte(canary)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// tail is the printable end of an output without secrets, cut between
// characters. It is what goes to terminals, events and prompts.
func tail(out []byte) string {
	if len(out) > 2*maxTail {
		out = out[len(out)-2*maxTail:]
		for len(out) > 0 && !utf8.RuneStart(out[0]) {
			out = out[1:]
		}
	}
	text := llm.Redact(sandbox.Printable(out))
	if len(text) > maxTail {
		text = text[len(text)-maxTail:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return text
}

// instruction is the order that runner.py reads from its standard input.
type instruction struct {
	Mode     string   `json:"mode"`
	Root     string   `json:"root"`
	Origin   string   `json:"origin"`
	Keep     []string `json:"keep"`
	Args     []string `json:"args"`
	Names    []string `json:"names"`
	Patterns []string `json:"patterns"`
	Plain    bool     `json:"plain"`
	Paths    []string `json:"paths"`
	UserSite string   `json:"usersite"`
	Nonce    string   `json:"nonce"`
	Canary   string   `json:"canary"`
	FD       int      `json:"fd"`
	Seconds  float64  `json:"test_seconds"`
	// Protected are the files that are tests, not code under test. Split asks
	// for assertions in a process of their own; Source is the program for the
	// other process.
	Protected []string `json:"protected"`
	Split     bool     `json:"split"`
	Source    string   `json:"source"`
}

func newInstruction(plan Plan, root string) (instruction, error) {
	var b [40]byte
	if _, err := rand.Read(b[:]); err != nil {
		return instruction{}, err
	}
	fd, err := rand.Int(rand.Reader, big.NewInt(sandbox.MaxFD-40))
	if err != nil {
		return instruction{}, err
	}
	in := instruction{
		Mode: plan.Runner, Root: root, Origin: plan.Root, Args: restage(plan, root), Names: plan.Names,
		Patterns: plan.Patterns, Plain: plan.Plain, UserSite: plan.Python.UserSite, Keep: plan.Python.Keep,
		Nonce: hex.EncodeToString(b[:32]), Canary: "test_" + hex.EncodeToString(b[32:]), FD: int(fd.Int64()) + 20,
	}
	for _, kv := range plan.Env {
		if list, ok := strings.CutPrefix(kv, "PYTHONPATH="); ok {
			in.Paths = filepath.SplitList(list)
		}
	}
	return in, nil
}

// restage turns absolute paths into the project into paths into the copy.
func restage(plan Plan, root string) []string {
	args := make([]string, len(plan.Args))
	for i, a := range plan.Args {
		if args[i] = a; within(plan.Root, a) {
			args[i] = root + a[len(plan.Root):]
		}
	}
	return args
}

// runPython runs the suite, and once more with the assertions apart from the
// code under test, for the tests that need nothing but plain data of it.
func runPython(ctx context.Context, plan Plan, root string, opts Options) (run.Evidence, []byte, error) {
	started := time.Now()
	e, out, err := runPythonOnce(ctx, plan, root, opts, false)
	if err != nil || !e.Completed || len(e.Tampered) > 0 || e.Infrastructure != "" || plan.Python.Older(8) {
		return e, out, err
	}
	opts.Timeout, opts.Log = max(orTimeout(opts.Timeout)-time.Since(started), time.Second), nil
	apart, _, err := runPythonOnce(ctx, plan, root, opts, true)
	if err != nil {
		return e, out, err
	}
	e.Seconds += apart.Seconds
	if apart.Canary && len(apart.Tampered) == 0 {
		e.Split = apart.Outcomes
	} else {
		e.Signs = append(e.Signs, "the run apart from the code did not end by itself"+because(apart))
	}
	return e, out, nil
}

// because says what ended a run, as far as the sandbox knows.
func because(e run.Evidence) string {
	switch {
	case e.Limit != "":
		return ": limit " + e.Limit
	case e.Timeout:
		return ": time limit"
	case e.Signal != "":
		return ": " + e.Signal
	}
	return ""
}

func runPythonOnce(ctx context.Context, plan Plan, root string, opts Options, split bool) (run.Evidence, []byte, error) {
	if err := forgetBytecode(root); err != nil {
		return run.Evidence{}, nil, fmt.Errorf("run tests: %w", err)
	}
	in, err := newInstruction(plan, root)
	in.Seconds, in.Protected = opts.TestTimeout.Seconds(), opts.Protected
	if in.Split = split; split {
		in.Source = runnerSource
	}
	if err != nil {
		return run.Evidence{}, nil, fmt.Errorf("run tests: %w", err)
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		return run.Evidence{}, nil, fmt.Errorf("run tests: %w", err)
	}
	spec := atHome(opts.spec(plan, root, []string{plan.Python.Path, "-s", "-c", runnerSource}), plan)
	// The toolchain keeps its own bytecode; the tree has none left.
	spec.Env = append(pythonEnv(plan), "PYTHONSAFEPATH=1", "PYTHONPYCACHEPREFIX=")
	spec.ReadOnly = slices.Clone(plan.Python.ReadOnly)
	opts.protect(&spec)
	spec.Stdin = stdin
	var rec record
	res, err := recording(ctx, spec, in.FD, func(r io.Reader) { rec = parseRecord(r, in.Nonce) })
	if err != nil {
		return run.Evidence{}, res.Output.Bytes(), fmt.Errorf("run tests: %w", err)
	}
	out := withoutLines(res.Output.Bytes(), in.Canary)
	e := evidence(plan, opts, res, out)
	rec.into(&e)
	return e, out, nil
}

// pythonEnv leaves out what would put paths before the runner.
func pythonEnv(plan Plan) []string {
	return slices.DeleteFunc(slices.Clone(plan.Env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONPYCACHEPREFIX", "PYTHONINSPECT"}, k)
	})
}
