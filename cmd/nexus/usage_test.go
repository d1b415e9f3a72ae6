package main

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// What a newcomer types first is answered, and a mistake is answered with the
// help of the command that was meant.
func TestRunUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{nil, 0, "Usage: nexus <command>"},
		{[]string{"help"}, 0, "Usage: nexus <command>"},
		{[]string{"--help"}, 0, "Usage: nexus <command>"},
		{[]string{"help", "heal"}, 0, "Usage: nexus heal <dir>"},
		{[]string{"help", "run", "show"}, 0, "Usage: nexus run show <id>"},
		{[]string{"help", "nonsense"}, 1, "Try 'nexus --help'."},
		{[]string{"--version"}, 0, "(decider "},
		{[]string{"version"}, 0, "(decider "},
		{[]string{"heal", "--tset", "x", "."}, 1, "Try 'nexus heal --help'."},
		{[]string{"run", "show", "--jsn", "x"}, 1, "Try 'nexus run show --help'."},
		{[]string{"run"}, 1, "Try 'nexus run --help'."},
		{[]string{"heal"}, 1, "Try 'nexus heal --help'."},
		{[]string{"nonsense"}, 1, "Try 'nexus --help'."},
	} {
		r := w.nexus(c.args...)
		require.Equal(t, c.exit, r.exit, "%v: %s%s", c.args, r.out, r.err)
		require.Contains(t, r.out+r.err, c.want, c.args)
	}
	require.NoDirExists(t, filepath.Join(w.dir, "xdg"), "no help needs a state folder")
}

// doctor says what the machine offers to every project, or how one project
// would be tested.
func TestRunDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.nexus("doctor")
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Regexp(t, `(?m)^✓ python +3\.\d+`, r.out)
	require.NotRegexp(t, `(?m)^✓ python +3\.[67]\.`, r.out, "the engine needs 3.8")
	require.Regexp(t, `(?m)^✓ state .* on the disk`, r.out)
	require.Regexp(t, `(?m)^✓ go +1\.\d+`, r.out)
	require.Regexp(t, `(?m)^. node `, r.out)
	require.Regexp(t, `(?m)^✓ runners .*unittest, go test`, r.out)
	for _, level := range []string{"user", "thin", "none"} {
		require.Regexp(t, `(?m)^ +\*? +`+level+` `, r.out)
	}
	require.Equal(t, 1, strings.Count(r.out, " * "), "the level of this machine is marked")
	dir := w.project("calc")
	r = w.nexus("doctor", dir)
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Regexp(t, `(?m)^✓ tests .* under Python`, r.out)
	require.NotContains(t, r.out, "PYTHONPATH")
	r = w.with([]string{"PYTHONPATH=lib"}, "doctor", dir)
	require.Contains(t, r.out, `--test "PYTHONPATH=lib `)
	r = w.nexus("doctor", filepath.Join(w.dir, "nowhere"))
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "no such file")
}

// A run under way is called running, one that nobody drives waiting, and both
// name the step; a cancel of an ended run says that it has ended.
func TestRunListAndCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(`hang "def"`)
	dir := w.project("calc")
	first := w.background("heal", dir, "--source", "model")
	<-m.Arrived()
	require.Regexp(t, `RUNNING +debugger +1 `, w.nexus("run", "ls").out)
	var listed run.Summary
	require.NoError(t, json.Unmarshal([]byte(w.nexus("run", "ls", "--json").out), &listed))
	require.Equal(t, run.Running, listed.State)
	require.Nil(t, listed.Exit, "it has none yet")
	require.Equal(t, "debugger", listed.Step)
	shown := w.nexus("run", "show", listed.Run[:4]).out
	require.Contains(t, shown, "\nRUNNING  debugger\n")
	require.NotContains(t, shown, "NOT PROVEN", "its folder is in work")
	require.NoError(t, first.Process.Kill())
	require.Error(t, first.Wait())
	require.Regexp(t, `WAITING +debugger +1 `, w.nexus("run", "ls").out)
	require.NoError(t, json.Unmarshal([]byte(w.nexus("run", "ls", "--json").out), &listed))
	require.Equal(t, run.Waiting, listed.State)
	require.Contains(t, w.nexus("run", "show", listed.Run[:4]).out, "'nexus heal "+dir+"' goes on with it")
	var id string
	for _, line := range strings.Split(w.nexus("run", "ls").out, "\n")[1:2] {
		id = strings.Fields(line)[0]
	}
	r := w.nexus("run", "cancel", id)
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Contains(t, r.out, "NEEDS_HUMAN_REVIEW")
	require.Regexp(t, `NEEDS_HUMAN_REVIEW +closed +1 `, w.nexus("run", "ls").out)
	r = w.nexus("run", "cancel", id)
	require.Zero(t, r.exit, "%s%s", r.out, r.err)
	require.Contains(t, r.out, "has ended already: NEEDS_HUMAN_REVIEW; there is nothing to cancel")
	require.Equal(t, "nothing waits for a person\n", w.nexus("review", "ls").out)
	require.Regexp(t, id+` +cancelled `, w.nexus("review", "ls", "--all").out)
	shown = w.nexus("review", "show", id).out
	require.Contains(t, shown, "nexus review retry "+id)
	require.NotContains(t, shown, "  next ")
	require.Contains(t, w.nexus("run", "show", id).out, "  next      'nexus review show "+id+"'")
	diff := w.nexus("run", "diff", id)
	require.Equal(t, 1, diff.exit)
	require.Contains(t, diff.err, "has no candidate that the gates let through: cancelled by the user")
	w.clean(dir)
}

// up on an external server says where that is, without its password.
func TestServiceNamesTheExternalBus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := external(t, true)
	u, err := url.Parse(server)
	require.NoError(t, err)
	u.User = url.UserPassword("me", "hush-hush")
	cmd := w.background("up", "--listen", "off", "--nats", u.String())
	out, _ := cmd.Stdout.(*buffer)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "nexus is up") }, 30*time.Second, 20*time.Millisecond)
	require.Contains(t, out.String(), u.Host+" (external)")
	require.NotContains(t, out.String(), "hush-hush")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Wait())
}

// What is no terminal gets no colour and no control character.
func TestRunOutputWithoutATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.nexus("heal", w.project("calc"), "--source", "engine", "--dry-run")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.out, "\x1b")
	require.NotContains(t, r.out, "\r")
	require.Contains(t, r.out, string(run.Approved))
}

// NO_COLOR takes the colour away from a terminal, and nothing else.
func TestRunColour(t *testing.T) {
	v := &view{live: true}
	t.Setenv("NO_COLOR", "")
	require.Equal(t, "\x1b[1;32mAPPROVED\x1b[0m", v.paint(run.Approved))
	require.Equal(t, "\x1b[1;31mERROR\x1b[0m", v.paint(run.Failed))
	t.Setenv("NO_COLOR", "1")
	require.Equal(t, "APPROVED", v.paint(run.Approved))
}
