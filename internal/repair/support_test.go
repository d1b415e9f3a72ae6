package repair_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// candidates lists interpreters that may be there: those on PATH, and those of
// a version manager, newest name first.
func candidates() []string {
	var paths []string
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			paths = append(paths, path)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return paths
	}
	found, err := filepath.Glob(filepath.Join(home, ".pyenv/versions/*/bin/python3"))
	if err != nil {
		return paths
	}
	slices.Reverse(found)
	return append(paths, found...)
}

var interpreters = sync.OnceValue(func() map[string][]string {
	found := map[string][]string{}
	for _, path := range candidates() {
		for runner, check := range map[string]string{
			repair.RunnerPytest:   "import sys, pytest; assert sys.version_info >= (3, 8); print(sys.executable)",
			repair.RunnerUnittest: "import sys, unittest; assert sys.version_info >= (3, 8); print(sys.executable)",
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			err := exec.CommandContext(ctx, path, "-c", check).Run()
			cancel()
			if err == nil && !slices.Contains(found[runner], path) {
				found[runner] = append(found[runner], path)
			}
		}
	}
	return found
})

// interpreter returns a Python that can import the runner, or skips the test.
func interpreter(t *testing.T, runner string) string {
	t.Helper()
	found := interpreters()[runner]
	if len(found) == 0 {
		t.Skipf("no Python 3.8 or later that can import %s was found", runner)
	}
	return found[0]
}

// slots keeps the number of searches at a time near that of the processors.
var slots = make(chan struct{}, 2)

func propose(t *testing.T, python, runner string, req repair.Request, env ...string) ([]repair.Fix, repair.Report) {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	engine, err := repair.New(repair.Config{Python: python, Runner: runner, Launcher: repair.Unconfined{}, Env: append(os.Environ(), env...)})
	require.NoError(t, err)
	if req.Budget == 0 {
		req.Budget = time.Minute
	}
	fixes, report, err := engine.Propose(t.Context(), req)
	require.NoError(t, err)
	require.Empty(t, report.Faults, "an operator met code that it does not know")
	return fixes, report
}

// runTests runs files with the runner in a process of its own, as a user would.
func runTests(t *testing.T, python, runner, dir string, files ...string) (string, error) {
	t.Helper()
	args := []string{"-B", "-m", runner}
	if runner == repair.RunnerPytest {
		args = append(args, "-q", "-p", "no:cacheprovider")
	}
	cmd := exec.CommandContext(t.Context(), python, append(args, files...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPYCACHEPREFIX="+t.TempDir())
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// project writes files into a new folder.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, dir, name, text)
	}
	return dir
}
