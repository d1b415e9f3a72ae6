package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// pair writes the calc project twice, the second time with other files.
func (w *world) pair(change map[string]string) (base, candidate string) {
	w.t.Helper()
	base, candidate = w.project("base"), w.project("candidate")
	for path, text := range change {
		w.write(candidate, path, text)
	}
	return base, candidate
}

// trialled runs `nexus test --json` and checks that neither folder was written.
func (w *world) trialled(base, candidate string, args ...string) (testReport, result) {
	w.t.Helper()
	wantBase, wantCandidate := w.tree(base), w.tree(candidate)
	r := w.nexus(append([]string{"test", "--base", base, "--candidate", candidate, "--json"}, args...)...)
	require.Equal(w.t, wantBase, w.tree(base), "the base was written")
	require.Equal(w.t, wantCandidate, w.tree(candidate), "the candidate was written")
	var got testReport
	require.NoError(w.t, json.Unmarshal([]byte(r.out), &got), "%s\n%s", r.out, r.err)
	for _, key := range []string{"verdict", "reason", "level", "fixed", "broken", "missing", "flaky", "seconds"} {
		require.Contains(w.t, r.out, strconv.Quote(key)+":")
	}
	require.Equal(w.t, got.Verdict == run.VerdictPassed, r.exit == 0, r.out)
	if r.exit != 0 {
		require.Equal(w.t, 2, r.exit, r.out)
	}
	return got, r
}

func TestTestVerdicts(t *testing.T) {
	t.Parallel()
	loop := strings.Replace(calcBroken, "return a - b", "while True: pass", 1)
	flood := "import os\nfor _ in range(120):\n    os.write(1, b'x' * (1 << 20))\n" + calcFixed
	for name, c := range map[string]struct {
		change  map[string]string
		args    []string
		verdict run.VerdictKind
		reason  string
	}{
		"the fix":            {map[string]string{"calc.py": calcFixed}, nil, run.VerdictPassed, ""},
		"nothing changed":    {nil, nil, run.VerdictFailed, "1 test did not pass"},
		"another test broke": {map[string]string{"calc.py": strings.Replace(calcFixed, "a * b", "a + b", 1)}, nil, run.VerdictFailed, "green on the base"},
		"an exit":            {map[string]string{"calc.py": "import os\nos._exit(0)\n"}, nil, run.VerdictUntrusted, "no completion record"},
		"a new construct":    {map[string]string{"calc.py": "import gc\n" + calcFixed}, nil, run.VerdictUntrusted, "only a person may approve this: calc.py: new use of gc"},
		"an endless loop":    {map[string]string{"calc.py": loop}, []string{"--test-timeout", "10m", "--timeout", "5s"}, run.VerdictTimeout, "time limit"},
		"an endless test":    {map[string]string{"calc.py": loop}, []string{"--test-timeout", "1s"}, run.VerdictFailed, "did not pass"},
		"endless output":     {map[string]string{"calc.py": flood}, []string{"--test", "python3 -m unittest"}, run.VerdictLimit, "output"},
		"an exit status":     {map[string]string{"calc.py": calcFixed}, []string{"--test", "python3 -c 'from calc import add; assert add(1, 2) == 3'"}, run.VerdictPassed, "by exit status alone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base, candidate := w.pair(c.change)
			got, r := w.trialled(base, candidate, c.args...)
			require.Equal(t, c.verdict, got.Verdict, "%s\n%s", r.out, r.err)
			require.Contains(t, got.Reason, c.reason)
			require.NotEmpty(t, got.Level)
			if name == "the fix" {
				require.Equal(t, []string{"test_calc.py::CalcTest::test_add"}, got.Fixed)
			}
			require.Equal(t, name == "an exit status", got.Weak)
		})
	}
}

// What the candidate says about tests and configuration does not count.
func TestTestTakesTestsFromTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, candidate := w.pair(map[string]string{
		"test_calc.py": strings.Replace(calcTests, "1, 2), 3", "1, 2), -1", 1), "test_more.py": "import unittest\n",
		"conftest.py": "raise SystemExit(0)\n", "pytest.ini": "[pytest]\naddopts = -k mul\n", "sitecustomize.py": "raise SystemExit(0)\n",
	})
	got, r := w.trialled(base, candidate)
	require.Equal(t, run.VerdictFailed, got.Verdict, r.out)
	require.Equal(t, []string{"conftest.py", "pytest.ini", "sitecustomize.py", "test_calc.py", "test_more.py"}, got.Ignored)
	require.NoError(t, os.Remove(filepath.Join(candidate, "test_calc.py")))
	w.write(candidate, "calc.py", calcFixed)
	got, r = w.trialled(base, candidate)
	require.Equal(t, run.VerdictPassed, got.Verdict, r.out)

	text := w.nexus("test", "--base", base, "--candidate", candidate)
	require.Equal(t, 0, text.exit, text.out)
	require.Contains(t, text.out, "fixed    test_calc.py::CalcTest::test_add")
	require.Contains(t, text.out, "✓ passed")
}

func TestTestWithoutTestsOrWithWrongUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, candidate := w.pair(nil)
	require.NoError(t, os.Remove(filepath.Join(base, "test_calc.py")))
	got, r := w.trialled(base, candidate)
	require.Equal(t, run.VerdictInfrastructure, got.Verdict, r.out)
	require.Contains(t, got.Reason, "no tests found")
	for _, args := range [][]string{
		{"--base", base},
		{"--base", base, "--candidate", filepath.Join(w.dir, "none")},
		{"--base", filepath.Join(candidate, "calc.py"), "--candidate", candidate},
		{"--base", candidate, "--candidate", candidate, "--test", "'unclosed"},
		{"--base", candidate, "--candidate", candidate, "--test", "no-such-program"},
		{"--base", candidate, "--candidate", candidate, "--level", "best"},
		{"--base", candidate, "--candidate", candidate, "--timeout", "0s"},
	} {
		r := w.nexus(append([]string{"test"}, args...)...)
		require.Equal(t, 1, r.exit, "%v\n%s", args, r.out)
		require.Contains(t, r.err, "nexus:")
	}
}

func TestTestWritesWhatWasPrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, candidate := w.pair(map[string]string{"calc.py": "print('\\x1b[31mred\\x1b[0m')\n" + calcFixed})
	file := filepath.Join(w.dir, "out.txt")
	got, _ := w.trialled(base, candidate, "--output", file, "--test", "python3 -m unittest")
	require.Equal(t, run.VerdictPassed, got.Verdict, got.Reason)
	require.NotContains(t, got.Tail, "\x1b")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(data), "\x1b[31mred")
}

// otherLanguages are projects with the fault of calc.py in other languages.
var otherLanguages = map[string]struct {
	program string
	files   map[string]string
	source  string
	fixed   string
	test    string
	id      string
}{
	"go": {
		program: "go",
		files: map[string]string{
			"go.mod":       "module example.com/calc\n\ngo 1.22\n",
			"calc_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n\nfunc TestZero(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
		},
		source: "calc.go", fixed: "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n", id: ".::TestAdd",
	},
	"node": {
		program: "node",
		files: map[string]string{
			"package.json": `{"name": "calc", "scripts": {"test": "node --test"}}`,
			"calc.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\nconst { add } = require('./calc.js')\n\ntest('add', () => { assert.strictEqual(add(1, 2), 3) })\ntest('zero', () => { assert.strictEqual(add(0, 0), 0) })\n",
		},
		source: "calc.js", fixed: "exports.add = (a, b) => a + b\n", id: "calc.test.js::add",
	},
}

// A model's patch to a project in another language is tested, not just run.
func TestHealOtherLanguages(t *testing.T) {
	t.Parallel()
	for name, c := range otherLanguages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip("this machine has no ", c.program)
			}
			broken := strings.Replace(c.fixed, "a + b", "a - b", 1)
			cheat := c.source + "\n```\n" + strings.Replace(broken, "a - b", "a * b", 1) + "```\n"
			m := w.script(answer(cheat), answer(c.source+"\n```\n"+c.fixed+"```\n"))
			dir := filepath.Join(w.dir, "calc")
			for path, text := range c.files {
				w.write(dir, path, text)
			}
			w.write(dir, c.source, broken)
			sum, r := w.heal(dir, "--source", "model")
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			require.Equal(t, 2, m.Count())
			data, err := os.ReadFile(filepath.Join(dir, c.source))
			require.NoError(t, err)
			require.Equal(t, c.fixed, string(data))
			require.Contains(t, r.out, c.id)

			got, r := w.trialled(dir, dir)
			require.Equal(t, run.VerdictPassed, got.Verdict, r.out)
		})
	}
}
