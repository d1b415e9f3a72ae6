package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/llm/llmtest"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// binary is the command, built once with its fault points.
var binary string

func TestMain(m *testing.M) {
	if now := os.Getenv(envGCNow); now != "" {
		os.Exit(gcChild(now))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nexus-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "nexus")
	build := exec.CommandContext(context.Background(), "go", "build", "-tags", "nexusfault", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}

// world is a place of its own for one test: state, claims, projects.
type world struct {
	t     *testing.T
	dir   string
	env   []string
	model *llmtest.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the projects of these tests are Python, and this machine has no python3")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{t: t, dir: dir}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "NEXUS_") || strings.HasPrefix(kv, "NEXUS_PYTHON=") {
			w.env = append(w.env, kv)
		}
	}
	w.env = append(w.env, "XDG_STATE_HOME="+filepath.Join(dir, "xdg"), "NEXUS_CLAIMS="+filepath.Join(dir, "claims.json"), "NEXUS_DELAY_SCALE=0.01")
	return w
}

// script starts a model server that answers from the script.
func (w *world) script(lines ...string) *llmtest.Server {
	w.t.Helper()
	w.model = llmtest.Script(w.t, strings.Join(lines, "\n"))
	w.env = append(w.env, "NEXUS_MODEL_BASE_URL="+w.model.URL, "NEXUS_MODEL=scripted", "NEXUS_MODEL_API_KEY=sk-test-0123456789")
	return w.model
}

// The project of most tests: add subtracts.
const (
	calcBroken = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
	calcFixed  = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"
	calcTests  = `import unittest

from calc import add, mul


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
        self.assertEqual(add(-4, 4), 0)

    def test_mul(self):
        self.assertEqual(mul(2, 3), 6)
`
)

// project writes the calc project and files of the user's own beside it.
func (w *world) project(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.dir, name)
	w.write(dir, "calc.py", calcBroken)
	w.write(dir, "test_calc.py", calcTests)
	w.write(dir, "notes.txt", "mine\r\nwithout end")
	w.write(dir, "pkg/__init__.py", "")
	require.NoError(w.t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	require.NoError(w.t, os.Symlink("notes.txt", filepath.Join(dir, "link")))
	require.NoError(w.t, os.Chmod(filepath.Join(dir, "calc.py"), 0o755))
	return dir
}

func (w *world) write(dir, path, text string) {
	w.t.Helper()
	p := filepath.Join(dir, path)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(w.t, os.WriteFile(p, []byte(text), 0o644))
}

// tree is the tree hash of a folder, by the same code that proves a restore
// and with nothing left out that the drills could miss.
func (w *world) tree(dir string) string {
	w.t.Helper()
	m, err := rollback.Scan(w.t.Context(), dir, rollback.Limits{})
	require.NoError(w.t, err)
	return m.Hash()
}

// result is what a finished command left behind.
type result struct {
	exit     int
	out, err string
}

// nexus runs the command to its end.
func (w *world) nexus(args ...string) result {
	w.t.Helper()
	return w.with(nil, args...)
}

func (w *world) with(env []string, args ...string) result {
	w.t.Helper()
	return w.feed("", env, args...)
}

// feed runs the command with a text on its standard input.
func (w *world) feed(stdin string, env []string, args ...string) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(append([]string{}, w.env...), env...)
	var out, errOut bytes.Buffer
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	require.NoError(w.t, ctx.Err(), "the command hangs: %v\n%s%s", args, out.String(), errOut.String())
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// heal runs `nexus heal --json` and decodes the result, the last line.
func (w *world) heal(dir string, args ...string) (run.Summary, result) {
	w.t.Helper()
	return w.healWith(nil, dir, args...)
}

func (w *world) healWith(env []string, dir string, args ...string) (run.Summary, result) {
	w.t.Helper()
	r := w.with(env, append([]string{"heal", dir, "--json"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var sum struct {
		Type string `json:"type"`
		run.Summary
	}
	require.NoError(w.t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum), "%s\n%s", r.out, r.err)
	require.Equal(w.t, "result", sum.Type, "%s\n%s", r.out, r.err)
	require.Equal(w.t, r.exit, sum.Status(), "%s\n%s", r.out, r.err)
	return sum.Summary, r
}

// buffer is a bytes.Buffer that may be read while a process writes.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// String returns what was written so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// background starts the command; it is killed with the test.
func (w *world) background(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, &buffer{}, &buffer{}
	require.NoError(w.t, cmd.Start())
	return cmd
}
