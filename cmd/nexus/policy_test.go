package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// shellFixed makes the tests green in a way that a person must look at.
var shellFixed = strings.Replace(calcBroken, "return a - b", "import os\n    return a + b + os.system(':')", 1)

const shellOff = "version: 1\nname: loose\nrules:\n  - {id: shell, severity: 'off'}\n"

// TestPolicyDecides: a fix that the tests prove still needs the rules, and
// nothing in the healed folder has a say in them.
func TestPolicyDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fix, file, place string
		env              bool
		state            run.Terminal
		says             string
	}{
		"an ordinary fix":          {fix: strings.Replace(calcFixed, "    return a + b", "    print(a)\n    return a + b", 1), state: run.Approved, says: `"rules":"default-1@`},
		"a rule of ours":           {fix: shellFixed, state: run.NeedsHumanReview, says: "through a shell [shell, major]"},
		"turned off by the user":   {fix: shellFixed, file: shellOff, place: "user.yaml", state: run.Approved, says: `"rules":"default-1+loose@`},
		"by the environment":       {fix: shellFixed, file: shellOff, place: "user.yaml", env: true, state: run.Approved},
		"turned off by the folder": {fix: shellFixed, file: shellOff, place: "calc/policy.yaml", state: run.NeedsHumanReview, says: "[shell, major]"},
		"a rule of the user": {
			fix: calcFixed, file: `{"version": 1, "name": "strict", "rules": [{"id": "plus", "severity": "critical", "added": "\\+"}]}`,
			place: "user.json", state: run.NeedsHumanReview, says: "[plus, critical]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script(answer(fenced(c.fix)))
			dir := w.project("calc")
			args, env := []string{"--source", "model", "--verbose"}, []string(nil)
			if c.file != "" {
				path := filepath.Join(w.dir, c.place)
				w.write(w.dir, c.place, c.file)
				if c.env {
					env = []string{"NEXUS_POLICY=" + path}
				} else {
					args = append(args, "--policy", path)
				}
			}
			before := w.tree(dir)
			sum, r := w.healWith(env, dir, args...)
			require.Equal(t, c.state, sum.State, "%s\n%s", r.out, r.err)
			require.Contains(t, r.out, c.says)
			if c.state != run.Approved {
				require.Equal(t, before, w.tree(dir))
				require.Contains(t, sum.Reason, "policy")
			}
		})
	}
}

// TestPolicyFiles: a rules file that is missing or broken stops everything
// before it begins; show and check say what holds.
func TestPolicyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	w.write(w.dir, "broken.yaml", "version: 1\nname: a\nrules:\n  - {id: a, severity: major, added: '('}\n")
	w.write(w.dir, "fine.yaml", shellOff)
	before := w.tree(dir)
	file := func(name string) string { return filepath.Join(w.dir, name) }
	for _, args := range [][]string{
		{"heal", dir, "--policy", file("broken.yaml")},
		{"heal", dir, "--policy", file("none.yaml")},
		{"heal", dir, "--policy", w.dir},
		{"policy", "check", file("broken.yaml")},
		{"policy", "check", file("none.yaml")},
		{"policy", "show", file("broken.yaml")},
		{"validate", "--base", dir, "--policy", file("broken.yaml")},
	} {
		r := w.nexus(args...)
		require.Equal(t, 1, r.exit, "%v: %s", args, r.out)
		require.Contains(t, r.err, "rules file")
	}
	require.Equal(t, before, w.tree(dir))
	require.Contains(t, w.nexus("policy", "check", file("fine.yaml")).out, "is fine")
	shown := w.nexus("policy", "show")
	require.Zero(t, shown.exit, shown.err)
	require.NoError(t, os.WriteFile(file("shown.yaml"), []byte(shown.out), 0o600))
	require.Zero(t, w.nexus("policy", "check", file("shown.yaml")).exit)
	require.NotContains(t, w.nexus("policy", "show", file("fine.yaml")).out, "id: shell")

	j, r := w.judged(fence(shellFixed), dir, "--policy", "default")
	require.Equal(t, "policy", j.Gate, r.out)
	require.Equal(t, "shell", j.Reason)
	j, r = w.judged(fence(shellFixed), dir, "--policy", file("fine.yaml"))
	require.True(t, j.Accepted, r.out)
	j, r = w.judged(fence(shellFixed), dir)
	require.True(t, j.Accepted, r.out)
}
