package repair

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// The runners that the harness drives.
const (
	RunnerPytest   = "pytest"
	RunnerUnittest = "unittest"
)

// MaxLimit is the most fixes that one call proposes.
const MaxLimit = 20

// Config says how an Engine runs. Zero values take the stated defaults.
type Config struct {
	// Python is the absolute path of the interpreter that runs the tests
	// (3.8 or later); with RunnerPytest it must be able to import pytest.
	Python string
	// Runner is RunnerPytest or RunnerUnittest.
	Runner string
	// Launcher starts the harness. There is no default: the caller says how
	// far mutated code is confined.
	Launcher Launcher
	// Env is the environment of the tests, without what the harness sets
	// itself (PYTHONHASHSEED, PYTHONDONTWRITEBYTECODE).
	Env []string
	// Workers is how many candidates run at once, 2 by default.
	Workers int
	// Memory bounds the address space that a candidate may add to the
	// runner's own, in bytes, 1 GiB by default.
	Memory int64
	// TestTimeout is the longest that one test of the traced base run may
	// take, 2 s by default. Candidates have less: a multiple of what the
	// tests took.
	TestTimeout time.Duration
}

// Engine proposes fixes. It has no state; Propose may be called concurrently
// for different trees.
type Engine struct{ cfg Config }

// New checks the configuration.
func New(cfg Config) (*Engine, error) {
	if !filepath.IsAbs(cfg.Python) {
		return nil, fmt.Errorf("repair: interpreter %q is not an absolute path", cfg.Python)
	}
	if cfg.Runner != RunnerPytest && cfg.Runner != RunnerUnittest {
		return nil, fmt.Errorf("repair: unknown runner %q", cfg.Runner)
	}
	if cfg.Launcher == nil {
		return nil, errors.New("repair: no launcher")
	}
	if cfg.Workers < 0 || cfg.Memory < 0 || cfg.TestTimeout < 0 {
		return nil, errors.New("repair: a limit is negative")
	}
	cfg.Workers = orDefault(cfg.Workers, 2)
	cfg.Memory = orDefault(cfg.Memory, 1<<30)
	cfg.TestTimeout = orDefault(cfg.TestTimeout, 2*time.Second)
	return &Engine{cfg: cfg}, nil
}

func orDefault[T comparable](value, standard T) T {
	var zero T
	if value == zero {
		return standard
	}
	return value
}

// Request asks for fixes of one tree.
type Request struct {
	// Dir is the staged tree. Tests and candidates run in it and may write
	// to it; the harness mends what they alter, but only a copy is safe.
	Dir string
	// Targets lists the files and folders that may be edited, relative to
	// Dir. Empty means every Python file that is not protected.
	Targets []string
	// Protected lists files, folders and glob patterns that are never
	// edited. Test files and conftest.py are protected in any case.
	Protected []string
	// Failing lists the ids of the tests that are red on the base, as the
	// runner names them; a file's or module's id stands for its tests. Empty
	// means what the traced run finds red.
	Failing []string
	// Passing lists the ids that must stay green; empty means all that the
	// traced run finds green.
	Passing []string
	// TestArgs are the runner's arguments that select the tests.
	TestArgs []string
	// Limit is the most fixes returned, at most and by default MaxLimit.
	Limit int
	// Budget is the wall clock for the whole call, 60 s by default.
	Budget time.Duration
	// Progress, when set, hears how many candidates were judged and how many
	// are known of; total grows while the search goes on.
	Progress func(done, total int)
}

// Fix is a candidate under which all failing tests passed and no passing one
// broke, in the harness's own run.
type Fix struct {
	// ID is Identity(Path, New).
	ID string
	// Path is relative to Request.Dir, slash-separated.
	Path string
	// Old and New are the whole file before and after.
	Old, New []byte
	// Operator names the kind of edit, Line where it is (from 1).
	Operator string
	Line     int
	// Score falls from 1 towards 0 with the engine's confidence; it orders
	// the fixes of one call and means nothing between calls.
	Score float64
	// Reason is a phrase for people.
	Reason string
	// Behaviour numbers what the fix does: fixes of one call that share it
	// did the same for the inputs of the tests and for inputs near them, and
	// those with another number did not. NotCompared is for a fix whose
	// behaviour could not be seen or was not looked at.
	Behaviour int
}

// NotCompared is the Behaviour of a fix that was not compared with others.
const NotCompared = -1

// Others lists the fixes that pass the same tests as fixes[i] and behave
// differently, the first of each behaviour, best first.
func Others(fixes []Fix, i int) []Fix {
	var out []Fix
	seen := map[int]bool{NotCompared: true, fixes[i].Behaviour: true}
	for _, f := range fixes {
		if fixes[i].Behaviour != NotCompared && !seen[f.Behaviour] {
			seen[f.Behaviour] = true
			out = append(out, f)
		}
	}
	return out
}

// Identity names a candidate: the hex SHA-256 of the path, a zero byte and the
// new content.
func Identity(path string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(path))
	h.Write([]byte{0})
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Location is a statement under suspicion.
type Location struct {
	Path      string  `json:"path"`
	Line      int     `json:"line"`
	Suspicion float64 `json:"suspicion"`
}

// Report says what a call did.
type Report struct {
	// Tried counts judged candidates; Plausible those that passed, before
	// the limit; Partial those that turned some failing tests green.
	Tried     int `json:"tried"`
	Plausible int `json:"plausible"`
	Partial   int `json:"partial"`
	// Hot counts candidates swapped into a process that had collected the
	// tests, Cold those imported afresh.
	Hot  int `json:"hot"`
	Cold int `json:"cold"`
	// Timeouts counts candidates that a time limit ended, Damaged how often
	// the tree had to be mended.
	Timeouts int `json:"timeouts"`
	Damaged  int `json:"damaged"`
	// Failing and Passing count the tests that the search worked with.
	Failing int `json:"failing"`
	Passing int `json:"passing"`
	// Seconds is the whole time, FirstSeconds the time to the first fix.
	Seconds      float64 `json:"seconds"`
	FirstSeconds float64 `json:"first_seconds"`
	// Localised lists the most suspicious statements, at most ten.
	Localised []Location `json:"localised"`
	// Skipped lists files that could not be edited, each with the reason.
	Skipped []string `json:"skipped"`
	// Faults names operators that met code they do not know.
	Faults map[string]string `json:"faults"`
	// Behaviours gives the number of the behaviour by the identity of a fix.
	Behaviours map[string]int `json:"behaviours"`
	// Reason says why there is no fix; empty when there is one.
	Reason string `json:"reason"`
}

// Rate is the number of candidates judged in a second.
func (r Report) Rate() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Tried) / r.Seconds
}

// Propose searches for fixes until the limit, the budget or the candidates
// end. After the first one it goes on for half the time that this one took, at
// least half a second, and then compares the best eight for at most a quarter
// of the time so far, at least half a second. No fix is no error: Report.Reason says why. An error means that the
// harness could not do its work; fixes found until then are returned with it.
// No process is left behind when it returns, as far as the Launcher can tell.
func (e *Engine) Propose(ctx context.Context, req Request) ([]Fix, Report, error) {
	req, err := checked(req)
	if err != nil {
		return nil, Report{}, err
	}
	begin, cancel := context.WithTimeout(ctx, req.Budget+graceTime)
	defer cancel()
	found, report, err := e.talk(begin, req)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	fixes, errRead := complete(req, found, report.Behaviours)
	return fixes, report, errors.Join(err, errRead)
}

// graceTime is what the harness may take beyond the budget before it is killed.
const graceTime = 5 * time.Second

func checked(req Request) (Request, error) {
	info, err := os.Stat(req.Dir)
	if err != nil {
		return req, fmt.Errorf("repair: %w", err)
	}
	if !info.IsDir() {
		return req, fmt.Errorf("repair: %s is no folder", req.Dir)
	}
	if req.Limit < 0 || req.Limit > MaxLimit || req.Budget < 0 {
		return req, fmt.Errorf("repair: limit %d or budget %s is out of range", req.Limit, req.Budget)
	}
	req.Limit = orDefault(req.Limit, MaxLimit)
	req.Budget = orDefault(req.Budget, time.Minute)
	return req, nil
}

// complete reads the files that the fixes are for and orders the fixes. A fix
// for anything but a file inside the tree is an error: the harness only names
// files that it has read there.
func complete(req Request, found []foundFix, behaviours map[string]int) ([]Fix, error) {
	root, err := os.OpenRoot(req.Dir)
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	defer root.Close()
	fixes := make([]Fix, 0, len(found))
	for _, f := range found {
		old, err := root.ReadFile(filepath.FromSlash(f.Path))
		if err != nil {
			return nil, fmt.Errorf("repair: read the file of a fix: %w", err)
		}
		id := Identity(f.Path, f.content)
		behaviour, compared := behaviours[id]
		if !compared {
			behaviour = NotCompared
		}
		fixes = append(fixes, Fix{
			ID: id, Path: f.Path, Old: old, New: f.content,
			Operator: f.Operator, Line: f.Line, Score: f.Score, Reason: f.Reason, Behaviour: behaviour,
		})
	}
	sort.SliceStable(fixes, func(i, j int) bool { return fixes[i].Score > fixes[j].Score })
	return fixes[:min(len(fixes), req.Limit)], nil
}
