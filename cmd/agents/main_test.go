package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A wrong usage is exit status 1 and one sentence that says what to give.
func TestUsageErrorsAreOneSentence(t *testing.T) {
	t.Setenv("NEXUS_NATS", "")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for says, args := range map[string][]string{
		"as in 'agents --nats nats://127.0.0.1:4222'": {},
		"unexpected argument x; see 'agents --help'":  {"x"},
		"unknown flag --nat":                          {"--nat", "y"},
		`no worker "nobody"`:                          {"--nats", "nats://127.0.0.1:1", "--only", "nobody"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 1, execute(t.Context(), args, &out, &errs), says)
		require.Contains(t, errs.String(), says)
		require.Empty(t, out.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
	}
}

func TestVersionAndHelp(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, execute(t.Context(), []string{"--version"}, &out, &errs))
	require.Regexp(t, `^agents .*\(decider \d+\)\n$`, out.String())
	require.Equal(t, 0, execute(t.Context(), []string{"--help"}, &out, &errs))
	for _, text := range []string{"Examples:", "--only", "debugger", "NEXUS_NATS"} {
		require.Contains(t, out.String(), text)
	}
	require.Empty(t, errs.String())
}
