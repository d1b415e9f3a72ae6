package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/run"
)

// TestModelServerThatIsNone: whatever a model's server answers that is no
// answer, the next source is asked; without one the run ends as ERROR or goes
// to a person, with the folder as it was.
func TestModelServerThatIsNone(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a redirect":        `status 302 times=* Location=http://127.0.0.1:1/v1 "elsewhere"`,
		"permanently moved": `status 308 times=* Location=/v2 "elsewhere"`,
		"not found":         `status 404 times=* "nothing here"`,
		"bad request":       `status 400 times=* "what?"`,
		"forbidden":         `status 403 times=* "no"`,
		"a page":            `raw times=* "<html><body>welcome</body></html>"`,
		"half a message":    `raw times=* "data: {\"choices\": [{\"del"`,
		"an empty document": `json times=* ""`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script(line)
			dir := w.project("calc")
			before := w.tree(dir)
			sum, r := w.heal(dir, "--source", "model")
			require.NotEqual(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, before, w.tree(dir))
			sum, r = w.heal(dir, "--source", "model,engine")
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, run.SourceEngine, sum.Tries[len(sum.Tries)-1].Source)
		})
	}
}

// TestModelServerThatSpeaksNoHTTP: neither is a server of another protocol.
func TestModelServerThatSpeaksNoHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n")
			_ = c.Close()
		}
	}()
	w.env = append(w.env, "NEXUS_MODEL_BASE_URL=http://"+l.Addr().String()+"/v1", "NEXUS_MODEL=scripted")
	sum, r := w.heal(w.project("calc"), "--source", "model,engine")
	require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
}

// TestHealRefusesPathsThatReachOut: a candidate that would be written through
// a link out of the project, or to a file with several names, is refused by
// the paths gate; the next attempt, or nobody, is asked.
func TestHealRefusesPathsThatReachOut(t *testing.T) {
	t.Parallel()
	file := func(path, text string) string { return path + "\n```python\n" + text + "```\n" }
	for name, c := range map[string]struct {
		make func(w *world, dir string)
		says string
	}{
		"a folder that is a link": {func(w *world, dir string) {
			w.write(w.dir, "outside/helper.py", "x = 1\n")
			require.NoError(w.t, os.Symlink("../outside", filepath.Join(dir, "lib")))
		}, "```diff\n" + string(patch.Diff("lib/new.py", nil, []byte("x = 2\n"))) + "```\n"},
		"a file that is a link": {func(w *world, dir string) {
			w.write(w.dir, "outside/helper.py", "x = 1\n")
			require.NoError(w.t, os.Symlink("../outside/helper.py", filepath.Join(dir, "helper.py")))
		}, file("helper.py", "x = 2\n")},
		"a file with several names": {func(w *world, dir string) {
			require.NoError(w.t, os.Link(filepath.Join(dir, "calc.py"), filepath.Join(w.dir, "other.py")))
		}, fenced(calcFixed)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script("answer times=* " + answer(c.says)[len("answer "):])
			dir := w.project("calc")
			c.make(w, dir)
			before := w.tree(dir)
			sum, r := w.heal(dir, "--source", "model")
			require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, run.StatusGateFail, sum.Tries[0].Status)
			require.Equal(t, before, w.tree(dir))
			outside, err := filepath.Glob(filepath.Join(w.dir, "outside", "*"))
			require.NoError(t, err)
			require.LessOrEqual(t, len(outside), 1)
		})
	}
}

// TestHealOfAHardLinkedSource: the engine, too, offers nothing that could be
// written.
func TestHealOfAHardLinkedSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	require.NoError(t, os.Link(filepath.Join(dir, "calc.py"), filepath.Join(w.dir, "other.py")))
	before := w.tree(dir)
	sum, r := w.heal(dir, "--source", "engine")
	require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
	require.Equal(t, before, w.tree(dir))
}

// TestHealWithTestsThatDestroy: tests that delete the project or kill what
// runs them prove nothing, which is a person's to see and no fault of ours.
func TestHealWithTestsThatDestroy(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"delete the source":       "import os\nos.remove('calc.py')\n",
		"delete everything":       "import os, shutil\nshutil.rmtree('.', ignore_errors=True)\n",
		"delete after the import": "import calc, os\nos.remove(calc.__file__)\n",
		"kill the process":        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
		"kill the parent":         "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
		"kill the group":          "import os, signal\nos.killpg(0, signal.SIGKILL)\n",
		"leave":                   "import os\nos._exit(3)\n",
	} {
		for _, at := range []string{"import", "test"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				dir := w.project("calc")
				text := body + calcTests
				if at == "test" {
					lines := strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n        ")
					text = strings.Replace(calcTests, "    def test_add(self):\n", "    def test_add(self):\n        "+lines+"\n", 1)
				}
				w.write(dir, "test_calc.py", text)
				before := w.tree(dir)
				sum, r := w.heal(dir, "--source", "engine", "--timeout", "60s")
				if sum.State == run.Approved { // what is staged anew for each test run can be healed
					require.Contains(t, sum.Diff, "+    return a + b")
					return
				}
				require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
				require.Equal(t, before, w.tree(dir))
			})
		}
	}
}

// TestHealKeepsAChmod: a mode that the user changed during the run is an edit
// of the user's, which no delivery and no rollback undoes.
func TestHealKeepsAChmod(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--in-place"}} {
		w := newWorld(t)
		m := w.script(`hang "def"`, "answer times=* "+answer(fenced(calcFixed))[len("answer "):])
		dir := w.project("calc")
		w.env = append(w.env, "NEXUS_MODEL_IDLE_TIMEOUT=1s")
		cmd := w.background(append([]string{"heal", dir, "--source", "model"}, args...)...)
		<-m.Arrived()
		require.NoError(t, os.Chmod(filepath.Join(dir, "calc.py"), 0o640))
		_ = cmd.Wait()
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%v", cmd.Stdout)
		info, err := os.Stat(filepath.Join(dir, "calc.py"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode(), "%v %v", args, cmd.Stdout)
		data, err := os.ReadFile(filepath.Join(dir, "calc.py"))
		require.NoError(t, err)
		require.Equal(t, calcBroken, string(data))
	}
}

// TestHealProvesAgain: what the user does beside the fix during the run is
// tested together with it before anything is written.
func TestHealProvesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args       []string
		file, text string
		exit       int
		says       string
	}{
		"a note":           {nil, "notes.txt", "theirs", 0, "it was tested again with them"},
		"a note, in place": {[]string{"--in-place"}, "notes.txt", "theirs", 0, "it was tested again with them"},
		"another test": {
			[]string{"--test", "python3 -m unittest"},
			"test_more.py",
			"import unittest\nimport calc\nclass More(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(calc.add(2, 2), 5)\n",
			2, "it repeated itself",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.script(`hang "def"`, "answer times=* "+answer(fenced(calcFixed))[len("answer "):])
			dir := w.project("calc")
			w.env = append(w.env, "NEXUS_MODEL_IDLE_TIMEOUT=1s")
			cmd := w.background(append([]string{"heal", dir, "--source", "model"}, c.args...)...)
			<-m.Arrived()
			w.write(dir, c.file, c.text)
			_ = cmd.Wait()
			out := cmd.Stdout.(*buffer).String()
			require.Equal(t, c.exit, cmd.ProcessState.ExitCode(), out)
			require.Contains(t, out, c.file+" changed during the run; nothing was written yet")
			require.Contains(t, out, c.says)
			data, err := os.ReadFile(filepath.Join(dir, "calc.py"))
			require.NoError(t, err)
			require.Equal(t, map[int]string{0: calcFixed, 2: calcBroken}[c.exit], string(data))
			data, err = os.ReadFile(filepath.Join(dir, c.file))
			require.NoError(t, err)
			require.Equal(t, c.text, string(data))
			w.clean(dir)
		})
	}
}
