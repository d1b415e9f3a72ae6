package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate/policy"
	"nexuscore.dev/nexus/internal/wire"
)

// Rules are what every task passes, whichever way it came in.
type Rules struct {
	// Home names this host.
	Home string
	// State is the state folder, which no project may hold or lie in.
	State string
	// OnlyHome refuses tasks for other hosts: an embedded server has none.
	OnlyHome bool
	// Roots are the folders below which projects may lie; empty allows all.
	Roots []string
	// Limits are the defaults of a task that states none.
	Limits run.Limits
	// Sources are the defaults of a task that names none.
	Sources []run.Source
}

// tenantLocal is the owner of this machine. Only that tenant's tasks are let
// in: the isolation of this version is meant for one's own folders.
const tenantLocal = "local"

// Admit turns a heal task into the task of a run, or says in one sentence why
// it is refused.
func (r Rules) Admit(tenant string, h wire.Heal) (run.Task, error) {
	t := run.Task{
		Tenant: tenant, Dir: filepath.Clean(h.Dir), Home: h.Home, Test: h.Test, Targets: h.Targets,
		Sources: r.Sources, InPlace: h.InPlace, Deliver: run.DeliverMode(h.Deliver), Report: h.Report, Policy: h.Policy,
		Limits: h.Limits.Over(r.Limits), Child: h.Child, Driver: h.Driver,
	}
	if t.Home == "" {
		t.Home = r.Home
	}
	if t.Deliver == "" {
		t.Deliver = run.DeliverApply
	}
	if len(h.Sources) > 0 {
		t.Sources = nil
		for _, s := range h.Sources {
			t.Sources = append(t.Sources, run.Source(s))
		}
	}
	if len(t.Targets) == 0 {
		t.Targets = nil // as the log will have it
	}
	switch {
	case tenant != tenantLocal:
		return t, fmt.Errorf("tenant %q is not served: only %q is", tenant, tenantLocal)
	case r.OnlyHome && t.Home != r.Home:
		return t, fmt.Errorf("this bus serves the host %q only, not %q: leave home out", r.Home, t.Home)
	}
	if r.State != "" {
		if err := Apart(r.State, t.Dir); err != nil {
			return t, err
		}
	}
	if err := r.allowed(t.Dir); err != nil {
		return t, err
	}
	if t.Policy != "" {
		if _, err := policy.Parse([]byte(t.Policy)); err != nil {
			return t, err
		}
	}
	if err := t.Validate(); err != nil {
		return t, err
	}
	if err := r.folder(t); err != nil {
		return t, err
	}
	return t, r.targets(t)
}

// Apart refuses a state folder that lies in the project or holds it: a run
// would take its own log for a part of the project.
func Apart(state, dir string) error {
	inside, err := rollback.Below([]string{state}, dir)
	if err != nil {
		return err
	}
	around, err := rollback.Below([]string{dir}, state)
	if err != nil {
		return err
	}
	if inside || around {
		return fmt.Errorf("the state folder %s and the project %s lie in one another: name another folder with --state", state, dir)
	}
	return nil
}

// allowed refuses a folder that lies below none of the roots.
func (r Rules) allowed(dir string) error {
	if len(r.Roots) == 0 {
		return nil
	}
	ok, err := rollback.Below(r.Roots, dir)
	if err == nil && !ok {
		err = fmt.Errorf("%s lies below none of the allowed folders %s", dir, strings.Join(r.Roots, ", "))
	}
	return err
}

// folder refuses a project that is not there. That of another host cannot be
// seen from here; its snapshot says so.
func (r Rules) folder(t run.Task) error {
	if t.Home != r.Home {
		return nil
	}
	info, err := os.Stat(t.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is not there: the host %s has no such folder", t.Dir, r.Home)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder: name the project's folder", t.Dir)
	}
	return nil // what else is wrong with it, the snapshot says
}

// targets refuses a path that no candidate could change: nobody should wait
// for a whole run to hear that.
func (r Rules) targets(t run.Task) error {
	for _, p := range t.Targets {
		switch err := patch.CheckPath(p); {
		case err != nil:
			return fmt.Errorf("target %s: %w", p, err)
		case agents.ProtectedName(p):
			return fmt.Errorf("target %s is protected: tests and the configuration of their runner stay as they are; name the code that is to be changed", p)
		case t.Home != r.Home:
			continue // the folder lies elsewhere
		}
		if _, err := os.Lstat(filepath.Join(t.Dir, p)); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("target %s is not there: no such file in %s", p, t.Dir)
		}
	}
	return nil
}
