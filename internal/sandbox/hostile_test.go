package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// python is a system Python, or the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	p, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("this machine has no /usr/bin/python3")
	}
	return p
}

// py runs a Python script in a fresh tree.
func py(t *testing.T, level sandbox.Level, script string, change ...func(*sandbox.Spec)) sandbox.Result {
	t.Helper()
	p := python(t)
	change = append([]func(*sandbox.Spec){func(s *sandbox.Spec) { s.Argv = []string{p, "-I", "-c", script} }}, change...)
	return sh(t, level, "", change...)
}

func timeout(d time.Duration) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Timeout = d } }

func limits(l sandbox.Limits) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Limits = l } }

func text(r sandbox.Result) string { return string(r.Output.Bytes()) }

// gone waits at most a second until no process has the marker in its
// arguments.
func gone(t *testing.T, marker string) {
	t.Helper()
	require.Eventually(t, func() bool { return !living(marker) }, time.Second, 10*time.Millisecond, "a process of the run lives on")
}

func living(marker string) bool {
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return true
	}
	for _, p := range list {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), marker) && !strings.Contains(p, strconv.Itoa(os.Getpid())) {
			return true
		}
	}
	return false
}

func marker(t *testing.T, level sandbox.Level) string {
	t.Helper()
	return fmt.Sprintf("88%d%d", os.Getpid(), time.Now().UnixNano()%1e6) + strings.Repeat("0", len(level)%2)
}

func TestTimeoutEndsDeafProcesses(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		m := marker(t, level)
		start := time.Now()
		res := sh(t, level, `trap '' TERM INT HUP; echo begun; sleep `+m+` & while :; do sleep 0.05; done`, timeout(500*time.Millisecond))
		require.True(t, res.Timeout)
		require.Empty(t, res.Limit)
		require.Equal(t, -1, res.Exit)
		require.Equal(t, "SIGKILL", res.Signal)
		require.Contains(t, text(res), "begun")
		require.Less(t, time.Since(start), 4*time.Second)
		gone(t, m)
	})
}

// case A155: the daemon holds the pipe; case A153 by the timeout above.
func TestDaemonHoldingTheOutputIsEnded(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		m := marker(t, level)
		start := time.Now()
		res := sh(t, level, `(setsid sh -c 'trap "" TERM HUP; setsid sleep `+m+` & sleep `+m+`' &) ; sleep 0.2; echo started`)
		require.Equal(t, 0, res.Exit)
		require.Equal(t, "started\n", text(res))
		require.GreaterOrEqual(t, res.Outlived, 1)
		require.False(t, res.Timeout)
		require.Less(t, time.Since(start), 5*time.Second)
		gone(t, m)
	})
}

// case A154: whatever wins, the output is kept and the run has one end.
func TestExitAtTheTimeout(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		for range 8 {
			res := sh(t, level, `echo kept; sleep 0.1; exit 3`, timeout(110*time.Millisecond))
			require.Equal(t, "kept\n", text(res))
			if res.Timeout {
				require.Equal(t, -1, res.Exit)
			} else {
				require.Equal(t, 3, res.Exit)
			}
		}
	})
}

func TestEnvironmentIsAllowListed(t *testing.T) {
	t.Setenv("NEXUS_MODEL_API_KEY", "sk-very-secret")
	for _, level := range levels(t) {
		res := sh(t, level, `env; cat /proc/self/environ | tr '\0' '\n'; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'`,
			func(s *sandbox.Spec) { s.Env = []string{"ADDED=yes", "LANG=de_DE.UTF-8"} })
		out := text(res)
		require.NotContains(t, out, "sk-very-secret")
		require.Contains(t, out, "ADDED=yes")
		require.Contains(t, out, "LANG=de_DE.UTF-8")
		for line := range strings.Lines(out) {
			k, _, _ := strings.Cut(line, "=")
			require.Contains(t, []string{
				"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "TERM", "PYTHONHASHSEED", "PYTHONPYCACHEPREFIX",
				"ADDED", "PWD", "OLDPWD", "SHLVL", "_", "GOMAXPROCS", "GOTRACEBACK",
			}, k)
		}
	}
}

func TestFilesOutsideAreOutOfReach(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		outside := t.TempDir()
		secret := filepath.Join(outside, "secret")
		require.NoError(t, os.WriteFile(secret, []byte("hush"), 0o644))
		chmod := ":"
		if level != sandbox.LevelThin {
			// Landlock alone does not cover modes, owners and times.
			chmod = "chmod 0 " + secret
		}
		res := sh(t, level, `
cat `+secret+`; echo x > `+secret+`; echo x > `+outside+`/new; mkdir `+outside+`/sub; rm -f `+secret+`
ln `+secret+` here; ln -s `+secret+` link; cat link; mv `+secret+` mine; `+chmod+`
cat /etc/shadow; ls -a "$(getent passwd $(id -u) | cut -d: -f6)"/.ssh
echo x > /usr/lib/nexus-test; echo 1 > /proc/sys/vm/drop_caches; echo h > /proc/sysrq-trigger
cat /proc/1/mem; ls /proc/1/root/; ls /proc/1/fd; cat ../../../etc/shadow
echo ok > own && cat own && echo tmp > $TMPDIR/a && cat $TMPDIR/a && echo home > ~/b && cat ~/b`)
		out := text(res)
		require.NotContains(t, out, "hush")
		require.NotContains(t, out, "root:")
		require.True(t, strings.HasSuffix(out, "ok\ntmp\nhome\n"), out)
		b, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, "hush", string(b))
		list, err := os.ReadDir(outside)
		require.NoError(t, err)
		require.Len(t, list, 1)
		fi, err := os.Stat(secret)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), fi.Mode().Perm())
		_, err = os.Stat("/usr/lib/nexus-test")
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestGrantedFoldersAreReadable(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		tool, scratch := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(tool, "lib"), []byte("tool\n"), 0o644))
		res := sh(t, level, `cat `+tool+`/lib; echo x > `+tool+`/lib; echo y > `+scratch+`/out; cat `+scratch+`/out`, func(s *sandbox.Spec) {
			s.ReadOnly = []string{tool, "/does/not/exist"}
			s.Writable = []string{scratch}
		})
		require.True(t, strings.HasPrefix(text(res), "tool\n"), text(res))
		require.True(t, strings.HasSuffix(text(res), "y\n"), text(res))
		b, err := os.ReadFile(filepath.Join(tool, "lib"))
		require.NoError(t, err)
		require.Equal(t, "tool\n", string(b))
	})
}

func TestLoopbackOfItsOwn(t *testing.T) {
	t.Parallel()
	loop := func(s *sandbox.Spec) { s.Network = sandbox.NetLoopback }
	for _, level := range levels(t) {
		if level == sandbox.LevelThin {
			_, err := sandbox.Run(t.Context(), sandbox.Spec{
				Dir: t.TempDir(), Argv: []string{"/bin/true"}, Level: level, Network: sandbox.NetLoopback,
			})
			require.ErrorIs(t, err, sandbox.ErrUnavailable)
			continue
		}
		res := py(t, level, `
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); c.send(b"hello")
print(s.accept()[0].recv(5).decode())
`, loop)
		require.Equal(t, "hello\n", text(res))
	}
}

func TestCapabilitiesAndPrivilegesAreGone(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `grep -E '^(Cap(Inh|Prm|Eff|Amb|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status; ls /proc/self/fd; tty`)
		out := text(res)
		sets := 4
		if os.Getuid() == 0 || level != sandbox.LevelThin {
			sets = 5 // the bounding set too, where it can be dropped
		}
		require.Equal(t, sets, strings.Count(out, "\t0000000000000000\n"), out)
		require.Contains(t, out, "NoNewPrivs:\t1")
		require.Contains(t, out, "Seccomp:\t2")
		require.Contains(t, out, "\n0\n1\n2\n3\nnot a tty\n", "descriptor 3 is ls's own")
	})
}

func TestInheritedDescriptorsAndStdin(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		res := sh(t, level, `cat; echo record >&77`, func(s *sandbox.Spec) {
			s.Argv[0] = "/bin/bash"
			s.Stdin = []byte("from stdin\n")
			s.ExtraFiles = []sandbox.ExtraFile{{File: w, FD: 77}}
		})
		require.NoError(t, w.Close())
		require.Equal(t, "from stdin\n", text(res))
		var b [64]byte
		n, err := r.Read(b[:])
		require.NoError(t, err)
		require.Equal(t, "record\n", string(b[:n]))
		n, _ = r.Read(b[:])
		require.Zero(t, n, "no writer is left")
	})
}

// TestLowDescriptors: the numbers that the command's files get are those that
// the launcher's own would have, which must not be in the way.
func TestLowDescriptors(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		write := ""
		res := sh(t, level, "", func(s *sandbox.Spec) {
			for fd := 3; fd < 11; fd++ {
				s.ExtraFiles = append(s.ExtraFiles, sandbox.ExtraFile{File: w, FD: fd})
				write += fmt.Sprintf("echo %d >&%d; ", fd, fd)
			}
			s.Argv = []string{"/bin/bash", "-c", write}
		})
		require.NoError(t, w.Close())
		require.Empty(t, text(res))
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "3\n4\n5\n6\n7\n8\n9\n10\n", string(got))
	})
}

func TestCancelEndsTheRunAndCleansUp(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		m := marker(t, level)
		ctx, cancel := context.WithCancel(t.Context())
		temp := t.TempDir()
		res, err := sandbox.Run(ctx, sandbox.Spec{
			Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", "echo out; sleep " + m}, Level: level, Temp: temp,
			Log: writerFunc(func([]byte) { cancel() }),
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "out\n", string(res.Output.Bytes()))
		list, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, list)
		gone(t, m)
	})
}

// writerFunc is called with what is written.
type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestKillingTheParentEndsTheTree(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		m := marker(t, level)
		temp := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestHelperVictim$")
		cmd.Env = append(os.Environ(), "VICTIM="+m, "VICTIM_TEMP="+temp, "TMPDIR="+temp, sandbox.EnvLevel+"="+string(level))
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return living("sleep\x00" + m) }, 20*time.Second, 10*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		_ = cmd.Wait()
		gone(t, "sleep\x00"+m)
		n, err := sandbox.SweepTemp(temp)
		require.NoError(t, err)
		if level == sandbox.LevelThin {
			require.Equal(t, 1, n, "its private folder; the other levels have none")
		}
	})
}

// TestHelperVictim is the process that the test above kills.
func TestHelperVictim(t *testing.T) {
	m := os.Getenv("VICTIM")
	if m == "" {
		t.Skip("runs as a child of another test")
	}
	_, err := sandbox.Run(t.Context(), sandbox.Spec{
		Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", "setsid sleep " + m + " & sleep " + m}, Temp: os.Getenv("VICTIM_TEMP"),
	})
	require.NoError(t, err)
}

func TestSweepLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"nexus-sandbox-1-99999999999-x", "nexus-sandbox-999999999-1-x", "other", "nexus-sandbox-x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, "sub"), 0o755))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "nexus-sandbox-999999999-1-x", "sub"), 0))
	n, err := sandbox.SweepTemp(dir)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 2)
}
