package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

// spaces is each for the levels with a file system of the command's own.
func spaces(t *testing.T, f func(t *testing.T, level sandbox.Level)) {
	t.Helper()
	each(t, func(t *testing.T, level sandbox.Level) {
		if level == sandbox.LevelThin {
			t.Skip("level thin mounts nothing")
		}
		f(t, level)
	})
}

// staged makes a small tree.
func staged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"src/calc.py": "x = 1\n", "tests/unit/test_calc.py": "assert True\n", "tests/data.txt": "old\n", "setup.cfg": "[x]\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestTreeIsFoundAtTheProjectsOwnPath(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		dir, project := staged(t), "/srv/people/anne's, project:1\\2"
		res := sh(t, level, `pwd; echo new >> src/calc.py; cat "`+project+`/src/calc.py"; rm -r tests; ls; ls `+filepath.Dir(dir)+` 2>/dev/null; ls /srv/people`,
			func(s *sandbox.Spec) { s.Dir, s.MountAt = dir, project })
		require.NotContains(t, text(res), "001", "the staged tree's own place is not there")
		require.Contains(t, text(res), project+"\nx = 1\nnew\nsetup.cfg\nsrc\n")
		require.Equal(t, "overlay", res.Features.Tree)
		require.FileExists(t, filepath.Join(dir, "tests/data.txt"))
		b, err := os.ReadFile(filepath.Join(dir, "src/calc.py"))
		require.NoError(t, err)
		require.Equal(t, "x = 1\n", string(b), "the host's tree is as it was")
		require.Positive(t, res.Usage.TreeBytes)
	})
}

func TestPartsOfTheTreeAreReadOnly(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		dir := staged(t)
		res := sh(t, level, `
try() { "$@" 2>/dev/null && echo "DONE $*"; }
try sh -c 'echo x > tests/unit/test_calc.py'; try sh -c 'echo x >> setup.cfg'; try rm -f setup.cfg; try chmod 777 setup.cfg
try mv tests other; try mv tests/unit tests/moved; try rm -rf tests; try ln -f src/calc.py setup.cfg; try mv src/calc.py tests/unit/test_calc.py
echo new > tests/data.txt && echo x > tests/unit/fresh && rm -r src && cat tests/unit/test_calc.py setup.cfg`,
			func(s *sandbox.Spec) {
				s.Dir, s.MountAt = dir, "/project/at/home"
				s.ReadOnlyOver = []string{"tests/unit/test_calc.py", "setup.cfg", "missing"}
			})
		require.Equal(t, "assert True\n[x]\n", text(res))
		require.True(t, res.Features.ReadOnlyOver)
		// A path in the tree that was granted for reading means the same.
		res = sh(t, level, `echo x > setup.cfg; rm -rf tests; cat setup.cfg; ls tests/unit`,
			func(s *sandbox.Spec) {
				s.Dir, s.ReadOnly = dir, []string{filepath.Join(dir, "setup.cfg"), filepath.Join(dir, "tests")}
			})
		require.Contains(t, text(res), "\n[x]\ntest_calc.py\n")
	})
}

func TestGrantsInAndAroundTheProject(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		project := staged(t)
		for _, d := range []string{".venv/bin", "secret"} {
			require.NoError(t, os.MkdirAll(filepath.Join(project, d), 0o755))
		}
		require.NoError(t, os.WriteFile(filepath.Join(project, ".venv/bin/tool"), []byte("#!/bin/sh\necho tool $PWD\n"), 0o755))
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(filepath.Join(project, ".venv"), link))
		res := sh(t, level, "", func(s *sandbox.Spec) {
			s.Dir, s.MountAt = staged(t), project
			s.Argv = []string{"/bin/sh", "-c", link + `/bin/tool; .venv/bin/tool; echo x > .venv/bin/tool; ls -A`}
			s.ReadOnly, s.Hidden = []string{filepath.Join(project, ".venv"), link}, []string{project}
		})
		require.Contains(t, text(res), "tool "+project+"\ntool "+project+"\n")
		require.Contains(t, text(res), "Read-only file system")
		require.Contains(t, text(res), "\n.venv\nsetup.cfg\nsrc\ntests\n")
		// Hidden wins over what a grant around it would show.
		res = sh(t, level, `ls -A `+project+`; ls -A `+filepath.Dir(project), func(s *sandbox.Spec) {
			s.ReadOnly, s.Hidden = []string{filepath.Dir(project), filepath.Join(project, "src")}, []string{project}
		})
		require.Contains(t, text(res), filepath.Base(project)+"\n")
		require.True(t, strings.HasPrefix(text(res), "src\n"), text(res))
		require.NotContains(t, text(res), "secret")
	})
}

func TestTheWholeMachineCanBeRead(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		other := staged(t)
		hidden := filepath.Join(other, "src")
		res := sh(t, level, `cat /etc/hostname >/dev/null && echo yes; ls `+hidden+`; echo x > /etc/hostname; echo x > here && cat here`,
			func(s *sandbox.Spec) { s.ReadOnly, s.Hidden = []string{"/"}, []string{hidden} })
		require.Contains(t, text(res), "yes\n")
		require.NotContains(t, text(res), "calc.py")
		require.Contains(t, text(res), "Read-only file system")
		require.Contains(t, text(res), "x\n")
	})
}

func TestTreeIsBoundedInBytesAndInodes(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `head -c 3000000 /dev/zero > a; head -c 3000000 /dev/zero > $TMPDIR/b; wc -c < a; rm a; echo again > c && cat c`,
			limits(sandbox.Limits{TreeBytes: 4 << 20}))
		require.Contains(t, text(res), "No space left on device")
		require.Contains(t, text(res), "3000000\nagain\n")
		require.Empty(t, res.Limit, "there is room again")
		res = sh(t, level, `i=0; while [ $i -lt 300 ]; do : > f$i || exit 3; i=$((i+1)); done`, limits(sandbox.Limits{Inodes: 100}))
		require.Equal(t, sandbox.LimitInodes, res.Limit)
		require.NotZero(t, res.Exit)
		res = sh(t, level, `exec head -c 9000000 /dev/zero > a`, limits(sandbox.Limits{TreeBytes: 4 << 20}))
		require.Equal(t, sandbox.LimitTree, res.Limit)
		require.LessOrEqual(t, res.Usage.TreeBytes, int64(4<<20))
	})
}

func TestMemoryOutsideProcessesIsCharged(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		for name, script := range map[string]string{
			"tmpfs": `
import time
with open("/dev/shm/x", "wb") as f:
    for i in range(200): f.write(b"x" * (1 << 20))
time.sleep(30)`,
			"memfd": `
import os, time
fd = os.memfd_create("x")
for i in range(200): os.write(fd, b"x" * (1 << 20))
time.sleep(30)`,
			"shared": `
import mmap, time
m = mmap.mmap(-1, 200 << 20)
for i in range(0, 200 << 20, 4096): m[i] = 1
time.sleep(30)`,
		} {
			res := py(t, level, script, limits(sandbox.Limits{MemoryBytes: 100 << 20}))
			require.Equal(t, sandbox.LimitMemory, res.Limit, name)
		}
	})
}

func TestCPUOfTheWholeTreeIsBounded(t *testing.T) {
	spaces(t, func(t *testing.T, level sandbox.Level) {
		res := sh(t, level, `for i in 1 2 3 4; do (while :; do :; done) & done; wait`, limits(sandbox.Limits{CPU: time.Second}))
		require.Equal(t, sandbox.LimitCPU, res.Limit)
		require.Greater(t, res.Usage.User+res.Usage.System, 500*time.Millisecond)
	})
}
