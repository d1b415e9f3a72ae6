package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
)

// A detached heal is this program once more, in a session of its own: it does
// what a heal does, its output goes to a file, and on a third descriptor it
// tells the caller when the run is open, or how it ended.

// envDetached names the output file of a detached heal to that process.
const envDetached = "NEXUS_DETACHED_LOG"

// reportFD is the descriptor on which a detached heal reports.
const reportFD = 3

// word is one report of a detached heal.
type word struct {
	// Run is the run that is open, Log where its output goes.
	Run string `json:"run,omitempty"`
	Log string `json:"log,omitempty"`
	// Done is true at the end of the process; Error is what it would print,
	// Result how the run ended.
	Done   bool         `json:"done,omitempty"`
	Exit   int          `json:"exit,omitempty"`
	Error  string       `json:"error,omitempty"`
	Result *run.Summary `json:"result,omitempty"`
}

// reporter is the detached process's side.
type reporter struct {
	out *os.File
	log string
}

// detached is the reporter of this process, nil when nobody has detached it.
func detached() *reporter {
	log := os.Getenv(envDetached)
	if log == "" || os.Unsetenv(envDetached) != nil {
		return nil
	}
	named, err := os.Stat(log) //nolint:gosec // it is only compared
	if err != nil {
		return nil
	}
	if out, err := os.Stdout.Stat(); err != nil || !os.SameFile(named, out) {
		return nil // a variable that strayed here
	}
	unix.CloseOnExec(reportFD)
	return &reporter{os.NewFile(reportFD, "report"), log}
}

func (r *reporter) tell(w word) {
	_ = json.NewEncoder(r.out).Encode(w) // the caller may have left
}

// opened gives the output file the name of its run.
func (r *reporter) opened(id string) {
	for _, name := range []string{id + ".log", id + "." + strconv.Itoa(os.Getpid()) + ".log"} {
		path := filepath.Join(filepath.Dir(r.log), name)
		if os.Link(r.log, path) == nil {
			_ = os.Remove(r.log) // a second name does no harm
			r.log = path
			break
		}
	}
	r.tell(word{Run: id, Log: r.log})
}

func (r *reporter) done(err error, result *run.Summary) {
	w := word{Done: true, Result: result}
	var code exitError
	switch {
	case errors.As(err, &code):
		w.Exit = int(code)
	case err != nil:
		w.Exit, w.Error = 1, err.Error()
	}
	r.tell(w)
}

// follow heals in the detached process.
func (c *healCmd) follow(e *env, view *view, r *reporter) error {
	var result *run.Summary
	view.opened = r.opened
	view.ended = func(sum run.Summary) { result = &sum }
	err := c.heal(e, view)
	r.done(err, result)
	return err
}

// detach starts the heal in the background and returns when its run is open.
// Everything that refuses the heal is told here as without it.
func (c *healCmd) detach(e *env, view *view) error {
	cfg, task, err := c.prepare(e)
	if err != nil {
		return err
	}
	if _, err := ready(view, cfg, c.Policy, task); err != nil {
		return err
	}
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, node.Signals()...)
	defer signal.Stop(sig)
	b, err := background(filepath.Join(cfg.State, "logs"), e.args)
	if err != nil {
		return fmt.Errorf("the heal cannot be detached: %w", err)
	}
	defer b.reports.Close()
	w, err := b.await(sig, func(s os.Signal) {
		view.Note(fmt.Sprintf("stopping (%s): the background process ends what it began", s))
	})
	switch {
	case err != nil:
		return err
	case !w.Done:
		return c.away(e, task.Dir, b.pid, w)
	case w.Result != nil:
		view.Result(*w.Result)
	}
	if w.Error != "" {
		return errors.New(w.Error)
	}
	if w.Exit != 0 {
		return exitError(w.Exit)
	}
	return nil
}

// behind is a process in the background, seen by its caller.
type behind struct {
	cmd *exec.Cmd
	// pid stays when the process is released, which forgets its own.
	pid     int
	reports *os.File
	log     string
}

// background starts this program again with the same arguments, in a session
// of its own and with no descriptor of the caller's.
func background(logs string, args []string) (*behind, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(logs, "starting-*.log")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	reports, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := keepDescriptors(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), exe, args...)
	cmd.Env = append(os.Environ(), envDetached+"="+out.Name())
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, reports.Close(), os.Remove(out.Name()))
	}
	return &behind{cmd, cmd.Process.Pid, reports, out.Name()}, nil
}

// keepDescriptors sees to it that no process that is started here gets a
// descriptor that somebody opened before.
func keepDescriptors() error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// await returns the first report, or the last one once a signal has come: then
// the process is stopped and its end awaited. A second signal leaves at once.
func (b *behind) await(sig <-chan os.Signal, stopping func(os.Signal)) (word, error) {
	words := make(chan word, 2)
	go func() {
		defer close(words)
		for in := json.NewDecoder(b.reports); ; {
			var w word
			if in.Decode(&w) != nil {
				return
			}
			words <- w
		}
	}()
	for stopped := false; ; {
		select {
		case s := <-sig:
			if stopped {
				return word{}, fmt.Errorf("left at once: process %d still ends the run; its output is in %s", b.pid, filepath.Dir(b.log))
			}
			stopped = true
			stopping(s)
			_ = b.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		case w, ok := <-words:
			switch {
			case !ok:
				_ = b.cmd.Wait() // its state says more
				return word{}, fmt.Errorf("the background process ended (%s) and said nothing; its output is in %s", b.cmd.ProcessState, filepath.Dir(b.log))
			case w.Done:
				_ = b.cmd.Wait()     // its word says more
				_ = os.Remove(b.log) // nothing is in it that is not told
				return w, nil
			case !stopped:
				return w, b.cmd.Process.Release()
			}
		}
	}
}

// away says what goes on without the caller.
func (c *healCmd) away(e *env, dir string, pid int, w word) error {
	if c.JSON {
		return json.NewEncoder(e.out).Encode(struct {
			Type string `json:"type"`
			Run  string `json:"run"`
			Dir  string `json:"dir"`
			PID  int    `json:"pid"`
			Log  string `json:"log"`
		}{"detached", w.Run, dir, pid, w.Log})
	}
	where := ""
	if c.Common.State != "" {
		where = " --state " + clean(c.Common.State)
	}
	if c.Common.NATS != "" {
		where += " --nats " + clean(c.Common.NATS)
	}
	_, err := fmt.Fprintf(e.out, "run %s heals %s in the background (process %d)\n  watch   nexus run watch %s%s\n  cancel  nexus run cancel %s%s\n  output  %s\n",
		w.Run, clean(dir), pid, w.Run[:8], where, w.Run[:8], where, w.Log)
	return err
}
