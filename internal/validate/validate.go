// Package validate is the chain of gates between what a source of candidates
// says and what may be tested: it decodes an answer, places it on the base
// tree, and refuses everything that is not a clean, complete, honest edit of
// the declared files. It reads the base through a small interface and writes
// nothing; nothing of a candidate is ever executed.
package validate

import (
	"context"
	"errors"
	"time"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/run"
)

// The gates in their order. GateDecode, GatePaths and GatePlace are patch's.
const (
	GateDecode  = patch.GateDecode
	GatePaths   = patch.GatePaths
	GatePlace   = patch.GatePlace
	GateEmpty   = run.GateEmpty
	GateRepeat  = run.GateRepeat
	GateProse   = "prose"
	GateMarker  = "marker"
	GateElision = "elision"
	GateSyntax  = "syntax"
	// GateInterpreter refuses .py files that no interpreter here can judge.
	GateInterpreter = "interpreter"
	GateStructure   = "structure"
	GateSecrets     = "secrets"
	GateTamper      = "tamper"
	// GatePolicy is no gate of Check: rules judge what the tests have proved.
	GatePolicy = "policy"
)

// Base is read access to the tree that a candidate is placed on.
type Base interface {
	// Read returns the bytes of a regular file, false when there is none.
	Read(path string) ([]byte, bool)
	// Paths lists the regular files, relative and slash-separated.
	Paths() []string
	// Mode returns a file's permission bits, 0 when they are unknown.
	Mode(path string) uint32
	// Resolve follows the links of a path inside the tree to the path that an
	// edit of it changes. An error says why nothing may be written there: it
	// leaves the tree, or is no plain file (a folder, a FIFO, a file with
	// several names).
	Resolve(path string) (string, error)
}

// Config of a Validator. The zero value works where python3 is on PATH.
type Config struct {
	// Python is the interpreter that runs the tests: it judges the syntax of
	// .py files. Empty means the system's python3. Where it can't be started,
	// changes of .py files are refused with that reason.
	Python string
	// ReadOnly lists what the interpreter needs beside the system's own
	// folders, Hidden what it must not see. Temp is where its private folder
	// is made; empty means the system's.
	ReadOnly, Hidden []string
	Temp             string
	// Timeout bounds the judgement of one file; 0 means 10 seconds.
	Timeout time.Duration
	// MemoryBytes bounds the interpreter's address space; 0 means 1 GiB.
	MemoryBytes int64
	// MaxFile is the size in bytes above which a file of the candidate is
	// refused; 0 means 4 MiB.
	MaxFile int
	// Secrets are exact values that no candidate may contain; those of fewer
	// than six bytes are ignored, as ordinary words would match them.
	Secrets []string

	idle time.Duration
}

// Input is one answer with what it is judged against.
type Input struct {
	// Answer is the raw text, as the source gave it.
	Answer []byte
	// Format is one of patch's formats; empty means auto.
	Format string
	// Finish is the provider's stop reason; only "stop" is used.
	Finish string
	Base   Base
	// Targets are the files that may change; a folder stands for all below it
	// that is not protected. Empty means every source file that is not
	// protected.
	Targets []string
	// Task is the text of the task. A definition that it names may go.
	Task string
	// Tried holds the hashes of earlier candidates on this base.
	Tried []string
	// TestPaths are the test files; no candidate changes them.
	TestPaths []string
}

// Verdict is the result of the gates. Rejected verdicts name the first gate
// that refused; accepted ones carry the candidate and its contents.
type Verdict struct {
	Accepted bool
	// Gate and Reason are machine-readable, Feedback is a sentence for the
	// source's next attempt. All are empty when Accepted.
	Gate, Reason, Feedback string
	// Status is the attempt's status when rejected, empty when Accepted.
	Status run.AttemptStatus
	// Candidate holds what could be decoded; its Hash is empty before that.
	Candidate run.Candidate
	// Contents maps the SHA-256 of every new file to its bytes.
	Contents map[string][]byte
	// Diff is the whole change as one unified diff.
	Diff []byte
	// Tolerances lists where decoding or placement was not exact.
	Tolerances []string
	// Tripwires lists new constructs that only a person may approve.
	Tripwires []string
}

// Validator runs the gates. It may be used by several goroutines at once and
// keeps one interpreter warm while it is used, at the longest until Close.
type Validator struct {
	cfg    Config
	known  *llm.Redactor
	worker *python
}

// New checks a configuration. The interpreter is started by the first check
// that needs it.
func New(cfg Config) (*Validator, error) {
	if cfg.Python == "" {
		cfg.Python = "python3"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.MemoryBytes == 0 {
		cfg.MemoryBytes = 1 << 30
	}
	if cfg.MaxFile == 0 {
		cfg.MaxFile = 4 << 20
	}
	if cfg.Timeout < 0 || cfg.MemoryBytes < 0 || cfg.MaxFile < 0 {
		return nil, errors.New("validate: a limit is negative")
	}
	if cfg.idle == 0 {
		cfg.idle = workerIdle
	}
	return &Validator{cfg: cfg, known: llm.NewRedactor(cfg.Secrets...), worker: newPython(cfg)}, nil
}

// Close ends the interpreter. Checks that need it afterwards start a new one,
// so Close comes last.
func (v *Validator) Close() error { return v.worker.Close() }

// Check runs all gates on one answer and always returns a verdict: whatever
// can't be judged is rejected.
func (v *Validator) Check(ctx context.Context, in Input) Verdict {
	c := &check{Validator: v, in: in}
	c.declare()
	if r := c.run(placing); r != nil {
		return c.rejected(r)
	}
	c.analyse(ctx)
	if r := c.run(judging); r != nil {
		return c.rejected(r)
	}
	return c.accepted()
}
