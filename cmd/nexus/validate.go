package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
	"nexuscore.dev/nexus/internal/validate/policy"
)

type validateCmd struct {
	Base         string   `required:"" predictor:"folder" placeholder:"DIR" help:"The folder that the answer is about; it is only read."`
	Target       []string `sep:"none" predictor:"file" placeholder:"PATH" help:"Only this path may change (repeatable); default: every file but tests and configuration."`
	Task         string   `placeholder:"TEXT" help:"The text of the task: a definition or file that it names may go."`
	FinishReason string   `default:"stop" enum:"stop,length" help:"How the answer ended: stop, or length when it was cut off."`
	Format       string   `default:"auto" enum:"auto,file,diff,search,patch,edits" help:"Format of the answer: ${enum}."`
	Out          string   `predictor:"folder" placeholder:"DIR" help:"Write the accepted files there: a new or empty folder outside the base."`
	Policy       string   `predictor:"file" placeholder:"FILE" help:"Hold an accepted answer against this rules file as well, or 'default' for the default rules."`
	JSON         bool     `name:"json" help:"Print the verdict as one JSON object."`
}

// Help adds examples to the command's help.
func (validateCmd) Help() string {
	return `Reads one raw answer of a model from standard input and puts it through the gates of a run: decode, paths, placement,
no-op, prose, markers, elision, syntax under the interpreter of the tests, lost definitions, secrets, tampering. Nothing
of it is executed, and the base is not written.

Examples:
  nexus validate --base . < answer.txt
  nexus validate --base . --target src/cart.py --json < answer.txt
  nexus validate --base . --task "remove the function old_total" --out /tmp/accepted < answer.diff
  nexus validate --base . --policy default < answer.txt           the rules that a run applies after its tests, too
  nexus validate --base . --finish-reason length < answer.txt     refused: it was cut off

Exit status: 0 accepted, 2 rejected, 1 wrong usage or an error.`
}

// judgement is what --json prints.
type judgement struct {
	Accepted bool   `json:"accepted"`
	Gate     string `json:"gate"`
	Reason   string `json:"reason"`
	Feedback string `json:"feedback"`
	// Status is the attempt's status when rejected: no_fixed_code, ast_fail or gate_fail.
	Status run.AttemptStatus `json:"status,omitempty"`
	// Files are those of an accepted answer.
	Files      []judgedFile `json:"files"`
	Hash       string       `json:"hash,omitempty"`
	Tolerances []string     `json:"tolerances,omitempty"`
	// Tripwires say what only a person may approve.
	Tripwires []string `json:"tripwires,omitempty"`
}

type judgedFile struct {
	Path string `json:"path"`
	Op   run.Op `json:"op"`
	// SHA256 is that of the new content, empty for a deletion.
	SHA256 string `json:"sha256"`
}

// Run judges the answer on standard input.
func (c *validateCmd) Run(ctx context.Context, e *env) error {
	base, err := resolved(c.Base)
	if err != nil {
		return fmt.Errorf("--base: %w", err)
	}
	targets, err := relative("--target", base, c.Target)
	if err != nil {
		return err
	}
	var out *outFolder
	if c.Out != "" {
		if out, err = newOutFolder(c.Out, base); err != nil {
			return err
		}
	}
	if isatty.IsTerminal(os.Stdin.Fd()) {
		fmt.Fprintln(e.err, "nexus: type the answer, or paste it; Ctrl-D ends it")
	}
	answer, err := io.ReadAll(io.LimitReader(os.Stdin, patch.MaxAnswer+1))
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	v, err := c.judge(ctx, base, validate.Input{
		Answer: answer, Format: c.Format, Finish: c.FinishReason, Targets: targets, Task: c.Task,
	})
	if err != nil {
		return err
	}
	if v.Accepted && out != nil {
		if err := out.write(v); err != nil {
			return err
		}
	}
	if err := c.print(e.out, v); err != nil {
		return err
	}
	if !v.Accepted {
		return exitError(2)
	}
	return nil
}

// resolved is the real path of a folder.
func resolved(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, cause(err))
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return path, nil
}

// judge puts the answer through the gates as the worker of a run does.
func (c *validateCmd) judge(ctx context.Context, dir string, in validate.Input) (v validate.Verdict, err error) {
	rules, err := c.rules(dir)
	if err != nil {
		return v, err
	}
	m, err := rollback.Scan(ctx, dir, rollback.Limits{})
	if err != nil && !rollback.IsKind(err, rollback.KindEmpty) {
		return v, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	base := agents.NewBase(m, func(e rollback.Entry) ([]byte, error) { return readEntry(root, e) })
	in.Base, in.TestPaths = base, agents.TestPaths(m)
	gates, err := c.gates(ctx, dir, m, in.Answer)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, gates.Close()) }()
	v = gates.Check(ctx, in)
	if v.Accepted && rules != nil {
		err = rule(ctx, rules, m, base, &v)
	}
	return v, errors.Join(err, base.Err(), ctx.Err())
}

// rules are the ones to apply, nil for none.
func (c *validateCmd) rules(dir string) (set *policy.Set, err error) {
	switch c.Policy {
	case "":
		return nil, nil
	case "default":
		return policy.Default()
	}
	set, _, err = node.Policy(c.Policy, dir)
	return set, err
}

// gates are those of a run in this folder. The interpreter is only looked for
// where the answer can be about Python.
func (c *validateCmd) gates(ctx context.Context, dir string, m rollback.Manifest, answer []byte) (*validate.Validator, error) {
	var cfg agents.Config
	model, ok, err := llm.FromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	if key := model.APIKey.Reveal(); ok && key != "" {
		cfg.Model = &agents.Model{Secrets: []string{key}}
	}
	var python *testrun.Interpreter
	if speaksPython(m, c.Target, answer) {
		python, err = testrun.FindPython(ctx, dir)
		if err != nil && !errors.Is(err, testrun.ErrNoInterpreter) {
			return nil, err
		}
	}
	return validate.New(cfg.GateConfig(python))
}

func speaksPython(m rollback.Manifest, targets []string, answer []byte) bool {
	names := append([]string{string(answer)}, targets...)
	for _, e := range m.Entries {
		names = append(names, e.Path)
	}
	for _, n := range names {
		if strings.Contains(strings.ToLower(n), ".py") {
			return true
		}
	}
	return false
}

// readEntry reads a file that must still be what was scanned.
func readEntry(root *os.Root, e rollback.Entry) ([]byte, error) {
	data, err := root.ReadFile(e.Path)
	if err != nil {
		return nil, cause(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, errors.New("it changed while it was read; try again")
	}
	return data, nil
}

func (c *validateCmd) print(w io.Writer, v validate.Verdict) error {
	j := judgement{
		Accepted: v.Accepted, Gate: v.Gate, Reason: v.Reason, Feedback: v.Feedback, Status: v.Status,
		Files: []judgedFile{}, Hash: v.Candidate.Hash, Tolerances: v.Tolerances, Tripwires: v.Tripwires,
	}
	if v.Accepted {
		for _, ch := range v.Candidate.Changes {
			j.Files = append(j.Files, judgedFile{ch.Path, ch.Op, ch.New})
		}
	}
	if c.JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(j)
	}
	var b strings.Builder
	if v.Accepted {
		fmt.Fprintf(&b, "ACCEPTED  %d file(s)\n", len(j.Files))
	} else {
		fmt.Fprintf(&b, "REJECTED  %s/%s (%s)\n%s\n", j.Gate, j.Reason, j.Status, j.Feedback)
	}
	for _, f := range j.Files {
		fmt.Fprintf(&b, "  %-7s %s %.12s\n", f.Op, f.Path, f.SHA256)
	}
	for _, t := range j.Tolerances {
		fmt.Fprintf(&b, "note: %s\n", t)
	}
	for _, t := range j.Tripwires {
		fmt.Fprintf(&b, "only a person may approve this: %s\n", t)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
