package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

type healCmd struct {
	Dir string `arg:"" help:"The project folder."`

	Test     string        `placeholder:"CMD" help:"Test command; default: found from the project's own files."`
	Target   []string      `sep:"none" placeholder:"PATH" help:"Only this path may change (repeatable); default: every file but tests and configuration."`
	Source   []string      `enum:"model,engine" placeholder:"NAME" help:"Where fixes come from, in this order: model, engine. Default: model when one is configured, then engine."`
	InPlace  bool          `help:"Write candidates to the folder itself while they are tested (it is rolled back unless one is approved)."`
	Deliver  string        `default:"apply" enum:"apply,patch" help:"apply writes the folder, patch writes a patch file."`
	DryRun   bool          `help:"Find and prove a fix, write nothing."`
	Report   bool          `help:"Write review_report.md into the folder."`
	Timeout  time.Duration `placeholder:"D" help:"Time limit of the whole run, such as 90s or 20m; default 30m."`
	MaxCalls *int          `placeholder:"N" help:"Most model calls; 0 allows none. Default: no limit."`
	JSON     bool          `name:"json" help:"One JSON object per event; the last one is the result."`

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
  NEXUS_MODEL_BASE_URL=http://127.0.0.1:11434/v1 NEXUS_MODEL=qwen2.5-coder nexus heal . --source model,engine

Paths that .nexusignore lists (the syntax of .gitignore) are neither read nor written.
Exit status: 0 APPROVED, 2 NEEDS_HUMAN_REVIEW, 1 ERROR or wrong usage.`
}

// Run heals a folder. With --json the last line is a result in any case.
func (c *healCmd) Run(e *env) error {
	view := newView(e, c.JSON)
	err := c.heal(e, view)
	var code exitError
	if err != nil && c.JSON && !errors.As(err, &code) {
		view.result(run.Summary{State: run.Failed, Exit: 1, Reason: err.Error(), Tries: []run.AttemptSummary{}, Files: []string{}})
	}
	view.flush()
	return err
}

func (c *healCmd) heal(e *env, view *view) error {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	state, err := node.StatePath(c.Common.State)
	if err == nil {
		err = node.Apart(state, dir)
	}
	if err != nil {
		return err
	}
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	task, err := c.task(dir, cfg)
	if err != nil {
		return err
	}
	if _, err := cfg.Rules.Admit("local", task); err != nil {
		return err
	}
	cfg.Driver = task.Driver
	h := &healing{e: e, cfg: cfg, task: task, view: view}
	view.start(dir)
	return h.run()
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
		Dir: dir, Home: cfg.Rules.Home, Test: c.Test, Sources: c.Source, Deliver: c.Deliver,
		InPlace: c.InPlace, Report: c.Report, Limits: &wire.HealLimits{ModelCalls: c.MaxCalls},
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
	start, err := rollback.ProcessStart(os.Getpid())
	if err != nil {
		return h, err
	}
	h.Driver = &run.Driver{PID: os.Getpid(), Start: start, Host: cfg.Rules.Home}
	return h, nil
}

// relative writes paths below dir relative to it; a flag names them.
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
		out = append(out, filepath.ToSlash(rel))
	}
	return out, nil
}

// healing is one heal in this process.
type healing struct {
	e    *env
	cfg  node.Config
	task wire.Heal
	view *view
	node *node.Node
	id   string
	// owner is the process that runs the bus, 0 when this one does.
	owner int
	// opened is true once the log of the run has begun.
	opened atomic.Bool
}

// reopens bounds how often a command looks for the bus again because the
// process that ran it ended before it had let the task in.
const reopens = 5

func (h *healing) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	key := ulid.Make().String()
	h.id = wire.RunID("local", "key", key)
	prev, err := h.claim()
	if err != nil {
		return err
	}
	for range reopens {
		err = h.once(ctx, key, prev)
		if !errors.Is(err, bus.ErrLost) || h.opened.Load() {
			break
		}
	}
	if errors.Is(err, bus.ErrLost) {
		return fmt.Errorf("the nexus process %d that ran the bus has ended; nothing is lost: run 'nexus heal %s' again to continue run %s", h.owner, h.task.Dir, h.id)
	}
	return err
}

// once heals with one connection to the bus.
func (h *healing) once(ctx context.Context, key string, prev *rollback.Claim) (err error) {
	if h.node, err = node.Open(ctx, h.cfg); err != nil {
		return errors.Join(err, h.release(prev))
	}
	h.owner, _ = h.node.Attached()
	defer func() {
		if errClose := h.node.Close(); errClose != nil && err == nil {
			fmt.Fprintln(h.e.err, "nexus:", errClose)
		}
		h.view.flush()
	}()
	adopt := ""
	if prev != nil {
		adopt = prev.Run
	}
	if err := h.node.Start(ctx, adopt, false); err != nil {
		return errors.Join(err, h.release(prev))
	}
	if prev != nil {
		done, err := h.resume(ctx, prev.Run)
		if err != nil || done {
			return err
		}
	}
	// From here on the task may be in the queue: the claim stays, whatever
	// becomes of the connection.
	if _, err := h.node.Bus().Submit(ctx, "local", key, h.task); err != nil {
		return err
	}
	return h.follow(ctx)
}

// claim takes the folder in the registry of this user. The run that it
// returns was interrupted and comes first.
func (h *healing) claim() (*rollback.Claim, error) {
	prev, err := h.cfg.Claims.Acquire(h.task.Dir, rollback.Claim{Run: h.id, State: h.cfg.State})
	var busy *rollback.BusyError
	if errors.As(err, &busy) && busy.Dead && !exists(busy.State) {
		// Nothing can continue a run whose state folder was removed.
		if err := h.cfg.Claims.Release(busy.Run); err != nil {
			return nil, err
		}
		fmt.Fprintf(h.e.err, "nexus: the state of the interrupted run %s is gone (%s): it cannot be continued or rolled back\n", busy.Run, busy.State)
		return h.claim()
	}
	return prev, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// release gives the folder back after a start that failed; the claim of an
// interrupted run stays.
func (h *healing) release(prev *rollback.Claim) error {
	if prev != nil {
		return nil
	}
	return h.cfg.Claims.Release(h.id)
}

// resume goes on with the interrupted run of this folder when it was started
// with the same settings; otherwise it ends that run first. done says that
// there is nothing left to do.
func (h *healing) resume(ctx context.Context, id string) (done bool, err error) {
	b := h.node.Bus()
	s, err := h.interrupted(ctx, id)
	if err != nil {
		return false, err
	}
	own := h.id
	switch {
	case s.Settled != nil && !s.Settled.Proven:
		h.view.note("restoring what run " + id + " left unproven")
		if err := h.node.Restore(ctx, s); err != nil {
			return false, err
		}
	case s.N > 0 && s.Settled == nil:
		h.id = id
		if s.Ended == nil && h.same(s.Task) {
			h.view.note(fmt.Sprintf("continuing run %s, which was interrupted at step %s", id, s.Step()))
			if err := b.Order(ctx, id, run.Order{Kind: run.OrderResume, Driver: h.task.Driver, Reason: "the folder is healed again"}); err != nil {
				return false, err
			}
			return true, h.follow(ctx)
		}
		h.view.note(fmt.Sprintf("ending run %s first, which was interrupted at step %s", id, s.Step()))
		if err := b.Order(ctx, id, run.Order{Kind: run.OrderCancel, Reason: "interrupted, and asked for again with other settings"}); err != nil {
			return false, err
		}
		if _, err := h.watch(ctx, id, func(run.Event, run.State) {}); err != nil {
			return false, err
		}
	}
	h.id = own
	if err := h.cfg.Claims.Release(id); err != nil {
		return false, err
	}
	_, err = h.cfg.Claims.Acquire(h.task.Dir, rollback.Claim{Run: own, State: h.cfg.State})
	return false, err
}

// queueWait is how long a task may stay in the queue before it is given up.
const queueWait = 10 * time.Second

// interrupted is the state of an interrupted run. Its task may still be in the
// queue: then the run opens now, and must be waited for before the folder is
// given to another one.
func (h *healing) interrupted(ctx context.Context, id string) (run.State, error) {
	ctx, cancel := context.WithTimeout(ctx, queueWait)
	defer cancel()
	for {
		log, err := h.node.Bus().ReadLog(ctx, id)
		if err != nil {
			return run.State{}, err
		}
		s, err := log.State()
		if err != nil || s.N > 0 {
			return s, err
		}
		queued, err := h.node.Bus().QueuedTasks(ctx)
		if err != nil || queued == 0 {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("run %s is still in the queue: %w", id, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// same reports whether a run was started with the settings of this command.
func (h *healing) same(t run.Task) bool {
	mine, err := h.cfg.Rules.Admit("local", h.task)
	if err != nil {
		return false
	}
	mine.Driver, t.Driver = nil, nil
	return reflect.DeepEqual(mine, t)
}

// errRefused says that the task was not let in.
var errRefused = errors.New("the task was refused")

// follow shows the run until it is closed and returns its exit status. Errors
// after the run has ended are told and change nothing of it.
func (h *healing) follow(ctx context.Context) error {
	s, err := h.watched(ctx)
	if errors.Is(err, errRefused) {
		return errors.Join(err, h.cfg.Claims.Release(h.id))
	}
	if err != nil {
		return err
	}
	sum := run.Summarise(s)
	sum.Diff = h.diff(ctx, s)
	h.view.result(sum)
	if s.Settled != nil && s.Settled.Proven {
		if err := h.cfg.Claims.Release(h.id); err != nil {
			fmt.Fprintln(h.e.err, "nexus:", err)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = h.node.AwaitOthers(ctx, func(open int) {
		h.view.note(fmt.Sprintf("this process also runs the bus for %d other run(s); it stays until they have ended", open))
	})
	if err != nil {
		fmt.Fprintln(h.e.err, "nexus:", err)
	}
	if sum.Exit != 0 {
		return exitError(sum.Exit)
	}
	return nil
}

// watched shows the run while signals cancel it.
func (h *healing) watched(ctx context.Context) (run.State, error) {
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(sig)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go h.interrupts(ctx, sig)
	return h.watch(ctx, h.id, h.view.event)
}

// closingWait is how long the command waits for the report after the run has
// settled.
const closingWait = 10 * time.Second

// watch follows a run until it is closed, or a while longer than settled.
func (h *healing) watch(ctx context.Context, id string, show func(run.Event, run.State)) (run.State, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var last run.State
	refused := make(chan error, 1)
	go h.refusal(ctx, id, refused, cancel)
	err := h.node.Bus().Follow(ctx, id, func(ev run.Event, s run.State) bool {
		last = s
		h.opened.Store(true)
		show(ev, s)
		if s.Settled != nil && !s.Closed {
			time.AfterFunc(closingWait, cancel)
		}
		return !s.Closed
	})
	select {
	case err := <-refused:
		return last, err
	default:
	}
	if last.Settled != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return last, err
}

// refusal looks for the dead letter of a task that was never let in.
func (h *healing) refusal(ctx context.Context, id string, out chan<- error, cancel context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.node.Failed():
			out <- errors.New("conductor or workers have stopped; run the command again with --verbose to see why")
			cancel()
			return
		case <-time.After(time.Second):
		}
		if h.opened.Load() {
			continue
		}
		if l, err := h.node.Bus().Refusal(ctx, id); err == nil && l != nil {
			out <- fmt.Errorf("%w: %s", errRefused, l.Reason)
			cancel()
			return
		}
	}
}

// diff is the text of the candidate that won.
func (h *healing) diff(ctx context.Context, s run.State) string {
	c, _ := s.Winner()
	if c == nil {
		return ""
	}
	data, err := h.node.Bus().Artifacts().Get(ctx, c.Diff.SHA256)
	if err != nil {
		fmt.Fprintln(h.e.err, "nexus: the diff cannot be shown:", err)
		return ""
	}
	return string(data)
}

// interrupts cancels the run at the first Ctrl-C and gives up at the second.
func (h *healing) interrupts(ctx context.Context, sig <-chan os.Signal) {
	select {
	case <-ctx.Done():
		return
	case <-sig:
	}
	h.view.note("cancelling: the run ends and the folder is put back as it was (Ctrl-C again to leave at once)")
	if err := h.node.Bus().Order(ctx, h.id, run.Order{Kind: run.OrderCancel, Reason: "cancelled by the user"}); err != nil {
		fmt.Fprintln(h.e.err, "nexus: the run cannot be cancelled:", err)
	}
	select {
	case <-ctx.Done():
		return
	case <-sig:
	}
	fmt.Fprintf(h.e.err, "nexus: left at once. Run %s has not ended: 'nexus heal %s' continues it or puts the folder back.\n", h.id, h.task.Dir)
	os.Exit(1)
}
