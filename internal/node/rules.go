package node

import (
	"fmt"
	"path/filepath"
	"strings"

	"nexuscore.dev/nexus/internal/run"
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
		Sources: r.Sources, InPlace: h.InPlace, Deliver: run.DeliverMode(h.Deliver), Report: h.Report,
		Limits: h.Limits.Over(r.Limits), Driver: h.Driver,
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
	switch {
	case tenant != tenantLocal:
		return t, fmt.Errorf("tenant %q is not served: only %q is", tenant, tenantLocal)
	case r.OnlyHome && t.Home != r.Home:
		return t, fmt.Errorf("this bus serves the host %q only, not %q: leave home out", r.Home, t.Home)
	case r.State != "" && Apart(r.State, t.Dir) != nil:
		return t, Apart(r.State, t.Dir)
	case !r.allowed(t.Dir):
		return t, fmt.Errorf("%s lies below none of the allowed folders %s", t.Dir, strings.Join(r.Roots, ", "))
	}
	return t, t.Validate()
}

// Apart refuses a state folder that lies in the project or holds it: a run
// would take its own log for a part of the project.
func Apart(state, dir string) error {
	if under(state, dir) || under(dir, state) {
		return fmt.Errorf("the state folder %s and the project %s lie in one another: name another folder with --state", state, dir)
	}
	return nil
}

// under reports whether dir is root or lies below it.
func under(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// allowed compares whole path elements, with links followed on both sides.
func (r Rules) allowed(dir string) bool {
	if len(r.Roots) == 0 {
		return true
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		resolved = dir
	}
	for _, root := range r.Roots {
		if r, err := filepath.EvalSymlinks(root); err == nil {
			root = r
		}
		if under(root, resolved) {
			return true
		}
	}
	return false
}
