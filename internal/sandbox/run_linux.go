package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// Run executes the command and returns when it and everything it started has
// ended. A command that fails, is killed, times out or hits a limit is a
// Result without an error. An error wraps ErrSpec, ErrUnavailable,
// ErrCommandNotFound or ErrSetup when nothing was run, and the context's own
// error, beside what is known so far, when ctx ended the run.
//
// The private folder of the run (home, temporary files, bytecode cache) is
// gone when Run returns.
func Run(ctx context.Context, spec Spec) (res Result, err error) {
	if isInit() {
		return res, fmt.Errorf("%w: MaybeInit is not the first call of main", ErrSetup)
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	spec, err = spec.normalize()
	if err != nil {
		return res, err
	}
	levels, err := candidates(spec.Level)
	if err != nil {
		return res, err
	}
	var why []string
	for i, level := range levels {
		r, err := runAt(ctx, spec, level)
		if err == nil || i == len(levels)-1 || !errors.Is(err, ErrUnavailable) {
			r.Level, r.Why = level, strings.Join(why, "; ")
			return r, err
		}
		why = append(why, err.Error())
	}
	return res, fmt.Errorf("%w: none", ErrUnavailable)
}

// candidates lists the levels to try, best first.
func candidates(want Level) ([]Level, error) {
	if want == "" {
		want = Level(os.Getenv(EnvLevel))
	}
	switch want {
	case "":
		return []Level{LevelFull, LevelUser, LevelThin}, nil
	case LevelVM, LevelFull, LevelUser, LevelThin:
		return []Level{want}, nil
	case LevelNone:
		return nil, fmt.Errorf("%w: level none runs nothing", ErrUnavailable)
	default:
		return nil, fmt.Errorf("%w: unknown level %q", ErrUnavailable, want)
	}
}

func newOrder(spec Spec, priv private) (order, error) {
	env := environment(priv, spec.Env)
	path, err := lookup(spec.Argv[0], spec.Dir, spec.MountAt, env)
	if err != nil {
		return order{}, err
	}
	o := order{
		Path: path, Argv: spec.Argv, Env: env, Dir: spec.Dir, ReadOnly: spec.ReadOnly, Writable: spec.Writable,
		Network: spec.Network, Limits: spec.Limits, Parent: os.Getpid(), Group: unix.Getpgrp(),
	}
	for _, x := range spec.ExtraFiles {
		o.Extra = append(o.Extra, x.FD)
	}
	if len(o.Extra) > maxExtra {
		return order{}, fmt.Errorf("%w: more than %d extra files", ErrSpec, maxExtra)
	}
	return o, nil
}

// runAt runs the command at exactly this level.
func runAt(ctx context.Context, spec Spec, level Level) (res Result, err error) {
	switch level {
	case LevelVM:
		return runVM(ctx, spec)
	case LevelFull, LevelUser:
		group, err := groupFor(level, spec.Limits)
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, group.close(ctx)) }()
		res, err = runSpace(ctx, spec, level, group)
		if errors.Is(err, errTree) {
			spec.bindTree = true
			return runSpace(ctx, spec, level, group)
		}
		return res, err
	default:
		return runThin(ctx, spec, true)
	}
}

// groupFor makes the cgroup that the level needs.
func groupFor(level Level, l Limits) (*cgroup, error) {
	if level != LevelFull {
		return nil, nil
	}
	name, err := runName()
	if err != nil {
		return nil, err
	}
	group := newCgroup(name, l)
	if group == nil {
		return nil, fmt.Errorf("%w: level full: no writable cgroup with the controllers memory and pids", ErrUnavailable)
	}
	return group, nil
}

// runThin runs the command at LevelThin, in a cgroup where one can be had.
func runThin(ctx context.Context, spec Spec, grouped bool) (res Result, err error) {
	if spec.Network == NetLoopback {
		return res, fmt.Errorf("%w: a loopback of its own needs level user", ErrUnavailable)
	}
	priv, err := newPrivate(spec.Temp)
	if err != nil {
		return res, err
	}
	defer func() {
		fault.Point("sandbox.temp.remove")
		err = errors.Join(err, removeTree(priv.root))
		fault.Point("sandbox.temp.removed")
	}()
	o, err := newOrder(spec, priv)
	if err != nil {
		return res, err
	}
	o.Level = LevelThin
	o.Writable = append([]string{priv.root}, o.Writable...)
	var group *cgroup
	if grouped {
		group = newCgroup(filepath.Base(priv.root), spec.Limits)
	}
	return o.run(ctx, spec, group)
}

// run runs the command of the order at LevelThin.
func (o order) run(ctx context.Context, spec Spec, group *cgroup) (res Result, err error) {
	defer func() { err = errors.Join(err, group.close(ctx)) }()
	box, err := startInit(ctx, spec, &o, group)
	if err != nil {
		return Result{}, err
	}
	defer box.close()
	fault.Point("sandbox.started")
	first, err := box.begin(o)
	if err != nil {
		return Result{}, err
	}
	return box.follow(ctx, spec, first)
}

// begin sends the order and waits until the command runs.
func (b *box) begin(o order) (report, error) {
	if err := json.NewEncoder(b.control).Encode(o); err != nil {
		return report{}, b.failed(err)
	}
	var r report
	if err := b.decode(&r, startTimeout); err != nil {
		return report{}, b.failed(err)
	}
	switch {
	case r.NotFound:
		return r, fmt.Errorf("%w: %s: %s", ErrCommandNotFound, o.Argv[0], r.Error)
	case r.Error != "":
		return r, fmt.Errorf("%w: %s", ErrSetup, r.Error)
	}
	return r, nil
}

// follow waits for the end, whoever brings it about.
func (b *box) follow(ctx context.Context, spec Spec, first report) (Result, error) {
	started := time.Now()
	timer := time.NewTimer(spec.Timeout)
	defer timer.Stop()
	var res Result
	res.Features = first.Features
	done := make(chan error, 1)
	var last report
	go func() { done <- json.NewDecoder(b.control).Decode(&last) }()

	ended, err := b.wait(ctx, timer.C, done)
	if ended != "" {
		fault.Point("sandbox.stop")
		err = b.stop(done)
	}
	res.Seconds = time.Since(started).Seconds()
	outErr := b.finish()
	res.Output = b.captured.output()
	if err != nil {
		return res, b.lost(ctx, err)
	}
	if outErr != nil {
		return res, fmt.Errorf("sandbox output: %w", outErr)
	}
	res.fill(last, ended)
	if b.group != nil {
		res.Features.Cgroup = b.group.version
		if hit := b.group.hit(); hit != "" && res.Limit == "" {
			res.Limit, res.Timeout = hit, false
		}
		res.Usage.PeakBytes = max(res.Usage.PeakBytes, b.group.peak())
	}
	res.Usage.OutputBytes = res.Output.Total
	res.Features.Bounds = bounds(res.Features, os.Getuid())
	if ended == endContext {
		return res, ctx.Err()
	}
	return res, nil
}

// wait returns what ended the run: nothing but the command itself, or a word.
func (b *box) wait(ctx context.Context, timeout <-chan time.Time, done <-chan error) (string, error) {
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return "", err
		case <-timeout:
			return endTimeout, nil
		case <-b.overflow:
			return LimitOutput, nil
		case <-ctx.Done():
			return endContext, nil
		case <-look.C:
			if b.group != nil {
				if hit := b.group.hit(); hit != "" {
					return hit, nil
				}
			}
		}
	}
}

// What ends a run, beside the names of the limits.
const (
	endTimeout = "timeout"
	endContext = "context"
)

// fill takes over what init reported.
func (res *Result) fill(r report, ended string) {
	res.Exit, res.Limit, res.Outlived = r.Exit, r.Limit, r.Outlived
	res.Usage = Usage{User: r.User, System: r.System, PeakBytes: r.Peak, PeakProcesses: r.Procs}
	if r.Signal != 0 {
		res.Signal = unix.SignalName(unix.Signal(r.Signal))
	}
	switch {
	case r.Stopped && ended == endTimeout:
		res.Timeout = true
	case ended == LimitOutput && res.Limit == "":
		res.Limit = LimitOutput
	case r.Signal == int(unix.SIGXCPU):
		res.Limit = LimitCPU
	case r.Signal == int(unix.SIGXFSZ):
		res.Limit = LimitFileSize
	}
}
