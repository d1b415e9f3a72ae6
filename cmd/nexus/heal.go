package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

type healCmd struct {
	Dir string `arg:"" predictor:"folder" help:"The project folder."`

	Test     testCommand   `placeholder:"CMD" help:"Test command; default: found from the project's own files."`
	Target   []string      `sep:"none" predictor:"file" placeholder:"PATH" help:"Only this path may change (repeatable); default: every file but tests and configuration."`
	Source   []string      `enum:"model,engine" placeholder:"NAME" help:"Where fixes come from, in this order: model, engine. Default: model when one is configured, then engine."`
	InPlace  bool          `help:"Write candidates to the folder itself while they are tested (it is rolled back unless one is approved)."`
	Deliver  string        `default:"apply" enum:"apply,patch" help:"apply writes the folder, patch writes a patch file."`
	DryRun   bool          `help:"Find and prove a fix, write nothing."`
	Report   bool          `help:"Write review_report.md into the folder."`
	Policy   string        `predictor:"file" placeholder:"FILE" env:"NEXUS_POLICY" help:"Rules file for what may be delivered without a person, see 'nexus policy'; default: the default rules."`
	Timeout  time.Duration `placeholder:"D" help:"Time limit of the whole run, such as 90s or 20m; default 30m."`
	MaxCalls *count        `placeholder:"N" help:"Most model calls; 0 allows none. Default: no limit."`
	Detach   bool          `help:"Return as soon as the run is open; it goes on in the background. Its output goes to a file in the state folder."`
	JSON     bool          `name:"json" help:"One JSON object per event; the last one is the result. With --detach one object that names run, process and output."`

	Common common `embed:""`
}

// Help adds examples to the command's help.
func (healCmd) Help() string {
	return `Examples:
  nexus heal .                               heal this folder
  nexus heal app --test "python -m pytest -q tests/unit"
  nexus heal . --target src/cart.py          only this file may change
  nexus heal . --source engine --dry-run     no model, write nothing
  nexus heal . --deliver patch               write a patch file instead
  nexus heal . --detach                      in the background; 'nexus run watch ID' follows it
  NEXUS_MODEL_BASE_URL=http://127.0.0.1:11434/v1 NEXUS_MODEL=qwen2.5-coder \
    nexus heal . --source model,engine

Paths that .nexusignore lists (the syntax of .gitignore) are neither read nor written.

Exit status: 0 APPROVED, 2 NEEDS_HUMAN_REVIEW, 1 ERROR or wrong usage.`
}

// Run heals a folder. With --json the last line is a result in any case.
func (c *healCmd) Run(e *env) error {
	view := newView(e, c.JSON)
	r := detached()
	switch {
	case r != nil:
		return told(view, c.follow(e, view, r))
	case c.Detach:
		return told(view, c.detach(e, view))
	}
	return told(view, c.heal(e, view))
}

// told ends the output of a heal.
func told(view *view, err error) error {
	var code exitError
	if err != nil && view.json && !view.told.Load() && !errors.As(err, &code) {
		view.Result(run.Summary{State: run.Failed, Exit: new(1), Reason: err.Error(), Tries: []run.AttemptSummary{}, Files: []string{}})
	}
	return err
}

func (c *healCmd) heal(e *env, view *view) error {
	cfg, task, err := c.prepare(e)
	if err != nil {
		return err
	}
	return drive(e, view, cfg, c.Policy, task)
}

// prepare is what the flags ask for.
func (c *healCmd) prepare(e *env) (cfg node.Config, task wire.Heal, err error) {
	dir, err := c.folder()
	if err != nil {
		return cfg, task, err
	}
	state, err := node.StatePath(c.Common.State)
	if err == nil {
		err = node.Apart(state, dir)
	}
	if err != nil {
		return cfg, task, err
	}
	if cfg, err = c.Common.config(e); err != nil {
		return cfg, task, err
	}
	task, err = c.task(dir, cfg)
	return cfg, task, err
}

// ready makes a heal, with the rules of a file, or says why it is refused.
func ready(view *view, cfg node.Config, rules string, task wire.Heal) (*node.Heal, error) {
	set, text, err := node.Policy(rules, task.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Policy = set
	if text != "" {
		task.Policy = text // that of a run decided about stays otherwise
	}
	return node.NewHeal(cfg, task, view)
}

// drive takes a task through its run, with the rules of a file.
func drive(e *env, view *view, cfg node.Config, rules string, task wire.Heal) error {
	h, err := ready(view, cfg, rules, task)
	if err != nil {
		return err
	}
	defer heed(h, view, e)() // before anything is printed
	view.start(task.Dir)
	sum, err := h.Run(context.Background())
	if err == nil && sum.Status() != 0 {
		err = exitError(sum.Status())
	}
	return err
}

// heed stops the heal at the first signal and leaves at the second, until the
// returned function is called. A reader of our output that ends does not end
// the heal: then a write fails, and nobody is left to tell.
func heed(h *node.Heal, view *view, e *env) (stop func()) {
	sig, pipe, done := make(chan os.Signal, 4), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(sig, node.Signals()...)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-sig:
				means := h.Ending()
				if !h.Stop() {
					fmt.Fprintln(e.err, "nexus:", h.Remains())
					os.Exit(1)
				}
				view.Note(fmt.Sprintf("stopping (%s): %s (Ctrl-C again to leave at once)", s, means))
			}
		}
	}()
	return func() {
		signal.Stop(sig)
		signal.Stop(pipe)
		close(done)
	}
}

// cause is an error without the path that it repeats.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// folder checks what a person can set right at once.
func (c *healCmd) folder() (string, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Dir, cause(err))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", c.Dir, cause(err))
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder: name the project's folder; --target names files in it", c.Dir)
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Dir, cause(err))
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%s is empty: there is nothing to heal", c.Dir)
	}
	if (c.Deliver == "apply" && !c.DryRun) || c.InPlace {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return "", fmt.Errorf("%s cannot be written (%w): use --dry-run or --deliver patch", c.Dir, err)
		}
	}
	return path, nil
}

// task is what is published for the flags.
func (c *healCmd) task(dir string, cfg node.Config) (wire.Heal, error) {
	h := wire.Heal{
		Dir: dir, Test: string(c.Test), Sources: c.Source, Deliver: c.Deliver,
		InPlace: c.InPlace, Report: c.Report, Limits: &wire.HealLimits{ModelCalls: (*int)(c.MaxCalls)},
	}
	if c.DryRun {
		h.Deliver = string(run.DeliverNone)
	}
	if c.Timeout != 0 {
		s := c.Timeout.Seconds()
		h.Limits.Seconds = &s
	}
	var err error
	if h.Targets, err = relative("--target", dir, c.Target); err != nil {
		return h, err
	}
	if slices.Contains(h.Sources, string(run.SourceModel)) && cfg.Model == nil {
		return h, errors.New("--source model needs a model: set NEXUS_MODEL_BASE_URL (ending in /v1) and NEXUS_MODEL, and NEXUS_MODEL_API_KEY where the server wants one")
	}
	return h, nil
}

// relative writes paths below dir relative to it, in their shortest form; a
// flag names them.
func relative(flag, dir string, paths []string) ([]string, error) {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		rel := p
		if filepath.IsAbs(p) {
			var err error
			if rel, err = filepath.Rel(dir, p); err != nil {
				return nil, fmt.Errorf("%s %s: %w", flag, p, err)
			}
		}
		if !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("%s %s leaves the folder %s", flag, p, dir)
		}
		out = append(out, filepath.ToSlash(filepath.Clean(rel)))
	}
	return out, nil
}
