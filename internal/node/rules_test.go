package node

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("src/a.py", "")
	link := filepath.Join(filepath.Dir(p.dir), "link")
	require.NoError(t, os.Symlink(p.dir, link))
	cases := map[string]struct {
		tenant string
		rules  func(*Rules)
		task   wire.Heal
		want   string
	}{
		"as it is":               {task: wire.Heal{Dir: p.dir}},
		"another tenant":         {tenant: "shop", task: wire.Heal{Dir: p.dir}, want: `only "local" is`},
		"another host":           {rules: func(r *Rules) { r.OnlyHome = true }, task: wire.Heal{Dir: p.dir, Home: "there"}, want: "leave home out"},
		"another host's bus":     {task: wire.Heal{Dir: "/not/here", Home: "there", Targets: []string{"x.py"}}},
		"no folder":              {task: wire.Heal{Dir: p.dir + "-gone"}, want: "is not there: the host"},
		"a file":                 {task: wire.Heal{Dir: filepath.Join(p.dir, "src/a.py")}, want: "is not a folder"},
		"relative":               {task: wire.Heal{Dir: "project"}, want: "absolute"},
		"the root":               {task: wire.Heal{Dir: "/"}, want: "in one another"},
		"state in the project":   {rules: func(r *Rules) { r.State = filepath.Join(p.dir, "s") }, task: wire.Heal{Dir: p.dir}, want: "in one another"},
		"project in the state":   {rules: func(r *Rules) { r.State = filepath.Dir(p.dir) }, task: wire.Heal{Dir: p.dir}, want: "in one another"},
		"below a root":           {rules: func(r *Rules) { r.Roots = []string{"/nowhere", filepath.Dir(p.dir)} }, task: wire.Heal{Dir: p.dir}},
		"beside a root":          {rules: func(r *Rules) { r.Roots = []string{p.dir + "-more"} }, task: wire.Heal{Dir: p.dir}, want: "none of the allowed folders"},
		"a link below a root":    {rules: func(r *Rules) { r.Roots = []string{p.dir} }, task: wire.Heal{Dir: link}},
		"a root by its link":     {rules: func(r *Rules) { r.Roots = []string{link} }, task: wire.Heal{Dir: p.dir}},
		"unknown source":         {task: wire.Heal{Dir: p.dir, Sources: []string{"oracle"}}, want: "unknown source"},
		"unknown delivery":       {task: wire.Heal{Dir: p.dir, Deliver: "mail"}, want: "unknown delivery"},
		"a target":               {task: wire.Heal{Dir: p.dir, Targets: []string{"src/a.py"}}},
		"a folder as target":     {task: wire.Heal{Dir: p.dir, Targets: []string{"src"}}},
		"target outside":         {task: wire.Heal{Dir: p.dir, Targets: []string{"../x.py"}}, want: "leaves the folder"},
		"missing target":         {task: wire.Heal{Dir: p.dir, Targets: []string{"src/a.py", "src/b.py"}}, want: "src/b.py is not there"},
		"git's own":              {task: wire.Heal{Dir: p.dir, Targets: []string{".git/config"}}, want: ".git"},
		"a test as target":       {task: wire.Heal{Dir: p.dir, Targets: []string{"test_a.py"}}, want: "is protected"},
		"a test's helper":        {task: wire.Heal{Dir: p.dir, Targets: []string{"tests/util.py"}}, want: "is protected"},
		"the runner's configure": {task: wire.Heal{Dir: p.dir, Targets: []string{"pytest.ini"}}, want: "is protected"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := p.cfg.Rules
			if c.rules != nil {
				c.rules(&rules)
			}
			if c.tenant == "" {
				c.tenant = "local"
			}
			task, err := rules.Admit(c.tenant, c.task)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, filepath.Clean(c.task.Dir), task.Dir)
			require.Equal(t, run.DeliverApply, task.Deliver)
			require.Equal(t, []run.Source{run.SourceEngine}, task.Sources)
		})
	}
}

// TestNewHealAdmits: what the rules refuse is an error before anything is
// claimed.
func TestNewHealAdmits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	task := p.task()
	task.Targets = []string{"none.py"}
	_, err := NewHeal(p.cfg, task, &shown{})
	require.ErrorContains(t, err, "none.py is not there")
	require.Empty(t, p.claims())
}

func TestApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, dir string
		apart      bool
	}{
		{"/a/state", "/a/project", true},
		{"/a/project-state", "/a/project", true},
		{"/a/project/state", "/a/project", false},
		{"/a", "/a/project", false},
		{"/a/project", "/a/project", false},
		{"/a/project/../state", "/a/project", true},
	} {
		require.Equal(t, c.apart, Apart(c.state, c.dir) == nil, "%s and %s", c.state, c.dir)
	}
}

// TestTaskIsCarried: a task that is asked for again, from a dead letter or by
// a decision, asks for the same in every field, also in those that are new.
func TestTaskIsCarried(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("src/a.py", "")
	calls := 7
	task := run.Task{
		Tenant: tenantLocal, Dir: p.dir, Home: p.cfg.Rules.Home, Test: "pytest -q", Targets: []string{"src/a.py"},
		Sources: []run.Source{run.SourcePerson}, InPlace: true, Deliver: run.DeliverPatch, Report: true,
		Policy: "version: 1\nname: ours\nrules:\n  - {id: small, severity: major, message: few files, most: {files: 3}}\n", Driver: &run.Driver{PID: 1, Start: 2, Host: "h"},
		Limits: run.Limits{DebugAttempts: 2, ASTFails: 4, ReviewRounds: 1, ModelCalls: &calls, Seconds: 99, Events: 500, DelayScale: 0.5},
		Child: &run.Child{
			Parent: strings.Repeat("a", 26), Decision: run.DecideApprove, By: "a person", Base: strings.Repeat("0", 64),
			Candidate: strings.Repeat("1", 64), Text: &run.Ref{SHA256: strings.Repeat("2", 64), Size: 1}, Hint: "hint",
		},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(task), reflect.ValueOf(task.Limits)} {
		for i := range v.NumField() {
			require.False(t, v.Field(i).IsZero(), "this test has to fill %s", v.Type().Field(i).Name)
		}
	}
	got, err := p.cfg.Rules.Admit(tenantLocal, wire.HealOf(task))
	require.NoError(t, err)
	task.Driver = nil // nobody waits for it yet
	require.Equal(t, task, got)
}
