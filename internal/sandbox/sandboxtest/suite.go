package sandboxtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// Row is one line of the table: a program at a level.
type Row struct {
	Program, Tried string
	Level          sandbox.Level
	Happened       string
	OK             bool
}

// Run runs every program at the level and returns the table. A level that the
// machine does not grant gives no rows.
func Run(t *testing.T, level sandbox.Level) []Row {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("the programs are Python, and this machine has no /usr/bin/python3")
	}
	report := sandbox.Detect(t.Context(), level)
	if report.Level != level {
		t.Skipf("this machine grants no level %s: %v", level, report.Missing)
	}
	list, err := Programs()
	require.NoError(t, err)
	var mu sync.Mutex
	var rows []Row
	t.Run("programs", func(t *testing.T) {
		for _, p := range list {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				row := Row{Program: p.Name, Tried: p.Tried, Level: level, OK: true}
				if p.unless != nil {
					if row.Happened = p.unless(report.Features); row.Happened != "" {
						row.Happened = "not run: " + row.Happened
					}
				}
				if row.Happened == "" {
					happened, err := p.run(t, level, python)
					if row.Happened, row.OK = happened, err == nil; err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				rows = append(rows, row)
				mu.Unlock()
			})
		}
	})
	for _, p := range elsewhere {
		rows = append(rows, Row{Program: p.Name, Tried: p.Tried, Level: level, Happened: "not the sandbox's to judge", OK: true})
	}
	return rows
}

// run runs the program in a host of its own and looks at both.
func (p Program) run(t *testing.T, level sandbox.Level, python string) (string, error) {
	t.Helper()
	h := newHost(t)
	spec := sandbox.Spec{
		Dir: h.tree, Argv: []string{python, "-I", "-c", p.Script}, Env: h.env(), Level: level, Limits: p.limits,
		Timeout: p.timeout, Hidden: []string{h.store}, Temp: h.temp,
	}
	if spec.Timeout == 0 {
		spec.Timeout = 30 * time.Second
	}
	res, err := sandbox.Run(t.Context(), spec)
	if err != nil {
		return "the sandbox failed", err
	}
	happened, wrong := p.judge(res)
	if res.Level != level {
		wrong = errors.Join(wrong, fmt.Errorf("it ran at level %s", res.Level))
	}
	return happened, errors.Join(wrong, h.unharmed(res.Features))
}

// host is what a program may want to harm.
type host struct {
	tree, temp     string
	outside, store string
	victim         *exec.Cmd
	port           int
	sock, abstract string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{tree: t.TempDir(), temp: t.TempDir(), outside: t.TempDir(), store: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(h.outside, "secret"), []byte("very-secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(h.store, "blob"), []byte("very-secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(h.tree, "source.py"), []byte("x = 1\n"), 0o600))
	h.victim = exec.CommandContext(t.Context(), "sleep", "600")
	h.victim.Env = []string{"API_KEY=very-secret"}
	require.NoError(t, h.victim.Start())
	t.Cleanup(func() {
		_ = h.victim.Process.Kill()
		_ = h.victim.Wait()
	})
	var lc net.ListenConfig
	listen := func(network, address string) net.Listener {
		l, err := lc.Listen(t.Context(), network, address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	h.port = listen("tcp", "127.0.0.1:0").Addr().(*net.TCPAddr).Port
	h.sock, h.abstract = filepath.Join(h.outside, "s"), fmt.Sprintf("nexus-%d-%d", os.Getpid(), h.port)
	listen("unix", h.sock)
	listen("unix", "@"+h.abstract)
	return h
}

func (h *host) env() []string {
	return []string{
		"OUTSIDE=" + h.outside, "STORE=" + h.store, fmt.Sprintf("PORT=%d", h.port), "SOCK=" + h.sock, "ABSTRACT=" + h.abstract,
		fmt.Sprintf("PARENT=%d", os.Getpid()), fmt.Sprintf("VICTIM=%d", h.victim.Process.Pid),
	}
}

// unharmed says what the program changed on the host.
func (h *host) unharmed(f sandbox.Features) error {
	var errs []error
	for dir, files := range map[string]map[string]string{
		h.outside: {"secret": "very-secret"}, h.store: {"blob": "very-secret"},
	} {
		for name, text := range files {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != text {
				errs = append(errs, fmt.Errorf("%s is %q now: %w", name, b, err))
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 2 {
			errs = append(errs, fmt.Errorf("%d things lie in %s: %w", len(list), dir, err))
		}
	}
	if err := h.victim.Process.Signal(syscall.Signal(0)); err != nil {
		errs = append(errs, errors.New("another process was ended"))
	}
	if list, err := os.ReadDir(h.temp); err != nil || len(list) > 0 {
		errs = append(errs, fmt.Errorf("%d things were left in the temporary folder: %w", len(list), err))
	}
	if f.Tree != "overlay" {
		return errors.Join(errs...)
	}
	if list, err := os.ReadDir(h.tree); err != nil || len(list) != 1 {
		errs = append(errs, fmt.Errorf("%d things lie in the staged tree: %w", len(list), err))
	}
	return errors.Join(errs...)
}
