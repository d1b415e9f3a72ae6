package testrun_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/testrun"
)

// TestInterpreters lists each interpreter once, and says why one that does not
// answer cannot be used.
func TestInterpreters(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "python3")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	seen, problems := map[string]int{}, map[string]error{}
	require.NoError(t, testrun.Interpreters(t.Context(), func(path string, in *testrun.Interpreter, problem error) {
		if problem != nil {
			require.Nil(t, in)
			problems[path] = problem
			return
		}
		require.NotEmpty(t, in.Version)
		seen[in.Path]++
	}))
	require.ErrorContains(t, problems[broken], "exit 3")
	for path, n := range seen {
		require.Equal(t, 1, n, path)
	}
}

// TestToolchains names what is there, and says what is missing.
func TestToolchains(t *testing.T) {
	seen := map[string]*testrun.Tool{}
	ask := func() {
		require.NoError(t, testrun.Toolchains(t.Context(), func(name string, tool *testrun.Tool, problem error) {
			require.NotEqual(t, tool == nil, problem == nil, name)
			seen[name] = tool
		}))
	}
	ask()
	require.NotNil(t, seen["go"], "it runs these tests")
	require.Regexp(t, `^go1\.\d+`, seen["go"].Version)
	t.Setenv("PATH", t.TempDir())
	ask()
	require.Contains(t, seen, "node")
	require.Nil(t, seen["node"])
}
