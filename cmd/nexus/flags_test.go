package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/wire"
)

// Whoever writes an option of 'nexus heal' into a task either means a field of
// it or is told how a task says the same.
func TestATaskKnowsWhatEveryFlagIsCalled(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{})
	require.NoError(t, err)
	tasks, err := wire.NewTasks()
	require.NoError(t, err)
	heal := slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "heal" })
	ofTheCommand := []string{"detach", "help", "json", "state", "nats", "replicas", "verbose", "version"}
	for _, f := range parser.Model.Children[heal].Flags {
		if slices.Contains(ofTheCommand, f.Name) {
			continue
		}
		field := strings.ReplaceAll(f.Name, "-", "_")
		_, err := tasks.Decode(nil, wire.KindHeal, []byte(`{"dir":"/a","`+field+`":[]}`))
		require.Error(t, err, "no field is a list of nothing")
		if strings.Contains(err.Error(), "unknown field") {
			require.NotContains(t, err.Error(), "the known ones are", f.Name)
			require.NotContains(t, err.Error(), "did you mean", f.Name)
		}
	}
}

// A negative number is the value of the flag before it, but never in what a
// command of the sandbox gets.
func TestNegatives(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"heal . --max-calls -1":                 "heal . --max-calls=-1",
		"heal . --timeout -1.5s --json":         "heal . --timeout=-1.5s --json",
		"heal . -v -1":                          "heal . -v -1",
		"heal . --max-calls=2 -1":               "heal . --max-calls=2 -1",
		"sandbox --memory -1 -- head -n --x -1": "sandbox --memory=-1 -- head -n --x -1",
		"sandbox head --lines -1":               "sandbox head --lines -1",
	} {
		require.Equal(t, want, strings.Join(arguments(strings.Fields(line)), " "))
	}
}
