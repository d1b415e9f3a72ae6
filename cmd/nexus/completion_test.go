package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// What may follow a line: the part of the word that is typed decides, quotes
// count as the shell counts them, and paths are left to the shell.
func TestRunCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ line, want string }{
		{"nexus he", "heal help"},
		{"bin/nexus hea", "heal"},
		{"nexus  run ", "cancel diff export import ls show watch"},
		{"nexus help run s", "show"},
		{"nexus help heal ", ""},
		{"nexus heal ", ":folders"},
		{"nexus heal 'my pro", ":folders"},
		{"nexus heal . --in", "--in-place"},
		{"nexus heal --deliver ", "apply patch"},
		{"nexus heal --deliver=p", "patch"},
		{`nexus heal my\ project --json --source e`, "engine"},
		{"nexus heal . --source model,", "model,engine"},
		{"nexus heal . --source=model,e", "model,engine"},
		{"nexus heal . --source model,engine,", ""},
		{"nexus heal . --deliver apply,", ""},
		{"nexus review retry x --source engine,", "engine,model"},
		{"nexus heal . --policy ", ":files"},
		{"nexus heal . --state=", ":folders"},
		{`nexus test --base "a b" --candidate c\ d --level `, "full thin user"},
		{"nexus sandbox --net l", "loopback"},
		{"nexus completion ", "bash fish zsh"},
		{"nexus heal . --timeout ", ""},
		{"nexus run show ", ""},
		{"nexus nonsense --x", ""},
		{"", ""},
	} {
		r := w.nexus("completion", "bash", "--line", c.line)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, c.want, strings.Join(strings.Fields(r.out), " "), c.line)
	}
	r := w.nexus("completion", "fish", "--line", "nexus heal --deliver=p")
	require.Equal(t, "--deliver=patch\n", r.out, "fish replaces the whole word")
	require.NoDirExists(t, filepath.Join(w.dir, "xdg"), "a key press makes no state folder")

	r = w.nexus("completion", "tcsh")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "bash")
}

// Runs are completed to their whole ids, on the bus that the line names.
func TestRunCompletionOfRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := filepath.Join(w.dir, "a state")
	sum, _ := w.heal(w.project("calc"), "--source", "engine", "--dry-run", "--state", state)
	for line, want := range map[string]string{
		"nexus run show --state 'a state' " + sum.Run[:3]: sum.Run,
		`nexus replay --state=a\ state `:                  sum.Run,
		"nexus run show --state 'a state' nobody":         "",
		"nexus run show " + sum.Run[:3]:                   "",
	} {
		cmd := exec.CommandContext(t.Context(), binary, "completion", "bash", "--line", line)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(string(out)), line)
	}
}

// The script works in the shell itself.
func TestRunCompletionInBash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("this machine has no bash")
	}
	script := w.nexus("completion", "bash")
	require.Zero(t, script.exit, script.err)
	for line, want := range map[string]string{
		"nexus run s":            "show",
		"nexus heal --source ":   "engine model",
		"nexus heal ":            "-o dirnames",
		"nexus policy check r":   "-o default",
		"nexus heal . --nothing": "",
	} {
		// Outside of a key press compopt refuses, so it tells what it was asked.
		text := script.out + "\ncompopt() { echo \"$@\"; }\nCOMP_LINE=$1 COMP_POINT=${#1}\n_nexus nexus\n" +
			"printf '%s\\n' \"${COMPREPLY[@]}\"\ncomplete -p nexus >&2"
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", text, "bash", line)
		cmd.Env = w.env
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, errs.String())
		require.Equal(t, want, strings.Join(strings.Fields(string(out)), " "), line)
		require.Contains(t, errs.String(), "complete -F _nexus nexus")
	}
}

func TestRunCompletionInFish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("this machine has no fish")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "my project"), 0o755))
	for line, want := range map[string]string{
		"nexus run s":            "show",
		"nexus heal --deliver=p": "--deliver=patch",
		"nexus heal my":          "my project/",
	} {
		cmd := exec.CommandContext(t.Context(), fish, "--no-config", "-c", `$argv[1] completion fish | source; complete -C $argv[2]`, binary, line)
		cmd.Dir, cmd.Env = w.dir, append(w.env, "HOME="+w.dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		got, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
		require.Equal(t, want, got, line)
	}
}

// Whatever takes a path or a run completes it: a new flag cannot forget to.
func TestCompletionKnowsEveryPath(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{})
	require.NoError(t, err)
	wants := map[string]string{"DIR": "folder", "FILE": "file", "PATH": "file"}
	require.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		switch v := node.(type) {
		case *kong.Flag:
			require.Equal(t, wants[v.PlaceHolder], v.Tag.Get("predictor"), v.Name)
		case *kong.Node:
			for _, arg := range v.Positional {
				if strings.HasPrefix(arg.Help, "The run;") {
					require.Contains(t, []string{"run", "undecided"}, arg.Tag.Get("predictor"), v.FullPath())
				}
				if arg.Name == "dir" || arg.Name == "file" {
					require.NotEmpty(t, arg.Tag.Get("predictor"), v.FullPath())
				}
			}
		}
		return next(nil)
	}))
}
