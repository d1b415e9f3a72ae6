package agents

import (
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	policyrules "nexuscore.dev/nexus/internal/validate/policy"
)

// Config is what the workers of a process have in common.
type Config struct {
	// Home names this host. Workers that touch projects, or need the toolchain
	// that a project is tested with, serve it only.
	Home string
	// State is the folder for journals, patches and reports.
	State string
	// Claims is the registry of the folders that runs work on.
	Claims rollback.Claims
	// Temp is where staged trees are made.
	Temp string
	// Policy is what this process judges changes by; nil means the default
	// rules.
	Policy *policyrules.Set
	// Model answers the source "model"; nil when none is configured.
	Model *Model
	Log   zerolog.Logger
}

// Names lists the workers of this package, in the order of a run.
func Names() []run.Worker {
	return []run.Worker{
		run.Snapshot, run.Test, run.Debugger, run.Validate, run.Apply,
		run.Guardian, run.Policy, run.Deliver, run.Rollback, run.Report,
	}
}

// writerCap bounds a worker that writes the project: a stopped run waits
// longer than that for its answer before it takes the tree back.
const writerCap = 2 * time.Minute

// testCap bounds one ask of the test worker: twenty candidates of a slow suite
// take longer than other work. Each suite has a limit of its own, the run's
// deadline comes first where it is shorter, and a worker that makes no progress
// is stopped before.
const testCap = 45 * time.Minute

// New makes the named worker. store holds the artifacts, as that worker may
// reach them.
func New(name run.Worker, cfg Config, store rollback.Blobs) (bus.Worker, error) {
	w := bus.Worker{Name: name, Slots: 2}
	project := projects{state: cfg.State}
	stage := stager{store: store, temp: cfg.Temp, hidden: []string{cfg.State}}
	switch name {
	case run.Snapshot:
		s := &snapshotter{store: store, claims: cfg.Claims, state: cfg.State}
		w.Home, w.Handle = cfg.Home, s.handle
	case run.Test:
		t := &tester{store: store, stage: stage, turns: semaphore.NewWeighted(int64(runtime.NumCPU()))}
		w.Home, w.Handle, w.Cap = cfg.Home, t.handle, testCap
	case run.Debugger:
		d := &debugger{store: store, stage: stage, model: cfg.Model}
		w.Home, w.Handle = cfg.Home, d.handle
	case run.Validate:
		g := &gates{store: store, warm: &validators{cfg: cfg}}
		w.Home, w.Handle, w.Close = cfg.Home, g.handle, g.warm.close
	case run.Apply:
		a := &applier{store: store, projects: project}
		w.Home, w.Handle, w.Cap = cfg.Home, a.handle, writerCap
	case run.Guardian:
		w.Handle = (&guardian{store: store}).handle
	case run.Policy:
		w.Handle = (&policy{store: store, set: cfg.Policy}).handle
	case run.Deliver:
		d := &deliverer{store: store, projects: project, patches: filepath.Join(cfg.State, "patches")}
		w.Home, w.Handle, w.Cap = cfg.Home, d.handle, writerCap
	case run.Rollback:
		r := &restorer{store: store, projects: project}
		w.Home, w.Handle, w.Cap = cfg.Home, r.handle, writerCap
	case run.Report:
		r := &reporter{store: store, dir: filepath.Join(cfg.State, "reports")}
		w.Home, w.Handle = cfg.Home, r.handle
	default:
		return w, fmt.Errorf("agents: no worker %q; known: %v", name, Names())
	}
	return w, nil
}
