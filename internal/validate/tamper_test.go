package validate_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate"
)

// project is a base with everything that candidates must not touch.
func project() tree {
	return tree{
		"calc.py": calc, "tests/test_calc.py": "from calc import add\n", "checks/behaviour.py": "import calc\n",
		"pyproject.toml": "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
		"setup.cfg":      "[metadata]\nname = x\n\n[tool:pytest]\naddopts = -q\n",
		"package.json":   "{\"version\": \"1\", \"scripts\": {\"test\": \"jest\"}}\n",
		"README.md":      "# x\n", "pkg/__init__.py": "", "pytest_own.py": "X = 1\n",
	}
}

func create(path, body string) string {
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	return "*** Begin Patch\n*** Add File: " + path + "\n+" + strings.Join(lines, "\n+") + "\n*** End Patch\n"
}

func replace(t *testing.T, path, search, with string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"path": path, "search": search, "replace": with})
	require.NoError(t, err)
	return string(b)
}

// TestTampering: tests, runner, pipeline and lock files are out of bounds
// unless they are declared targets; test files and .git always are.
func TestTampering(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	check := func(answer string, targets ...string) validate.Verdict {
		return v.Check(t.Context(), validate.Input{
			Answer: []byte(answer), Finish: "stop", Base: project(), Targets: targets,
			TestPaths: []string{"tests/test_calc.py", "checks/behaviour.py"},
		})
	}
	for _, p := range []string{
		"conftest.py", "tests/conftest.py", "sub/CONFTEST.py", "pytest.ini", "tox.ini", ".pytest.ini", "sitecustomize.py",
		"usercustomize.py", "x.pth", "pytest.py", "_pytest/runner.py", "unittest/__init__.py", "a.dist-info/entry_points.txt",
		"evil.egg-info/entry_points.txt", "fast.so", "calc.pyc", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml",
		"poetry.lock", "package-lock.json", "go.sum", "uv.lock", ".gitattributes", "tests/test_new.py", "test_more.py",
		"a_test.go", "src/a.test.ts", "__tests__/a.js", "jest.config.js", ".pre-commit-config.yaml",
		"vitest.config.mts", "web/vitest.config.cts", "jest.config.cts", "vitest.config.e2e.ts", "vite.config.ts", "vitest.workspace.js",
		"jest.setup.js", "vitest.setup.ts", "jest-setup.js", "src/setupTests.ts", "ava.config.js", "bunfig.toml", ".mocharc.cjs", "karma.conf.js",
		"pytest_cov.py", "coverage.py", "xdist/__init__.py", "xdist/plugin.py", "pytest_asyncio/__init__.py", "src/pytest_mock.py", "Hypothesis.py",
		"src/FooTest.java", "src/HTTPTests.kt", "src/TestFoo.cs", "src/FooTestCase.java", "src/foo_test.kt",
	} {
		body := "x = 1\n"
		switch {
		case strings.HasSuffix(p, ".json"):
			body = "{}\n"
		case strings.HasSuffix(p, ".go"):
			body = "package a\n"
		case strings.HasSuffix(p, ".yml"), strings.HasSuffix(p, ".yaml"):
			body = "a: 1\n"
		case strings.HasSuffix(p, ".toml"):
			body = "a = 1\n"
		}
		got := check(create(p, body))
		require.False(t, got.Accepted, p)
		require.Equal(t, validate.GateTamper, got.Gate, "%s: %s", p, got.Feedback)
		require.Equal(t, run.StatusGateFail, got.Status)
	}
	for _, p := range []string{".git/hooks/pre-commit", ".git/config", "sub/.git/config"} {
		require.Equal(t, validate.GatePaths, check(create(p, "x\n")).Gate, p)
		require.Equal(t, validate.GatePaths, check(create(p, "x\n"), p).Gate, p)
	}
	for _, p := range []string{"tests/test_calc.py", "checks/behaviour.py"} {
		answer := replace(t, p, "import", "import  ")
		require.Equal(t, validate.GateTamper, check(answer).Gate, p)
		require.Equal(t, validate.GateTamper, check(answer, p).Gate, "declared, yet a test path: "+p)
	}
	require.True(t, check(create("tests/test_new.py", "def test_x():\n    assert True\n"), "tests/test_new.py").Accepted)
	require.True(t, check(create("conftest.py", "X = 1\n"), "conftest.py").Accepted)
	for _, p := range []string{
		"helper.py", "pkg/coverage.py", "coverage.js", "tests_helper.py", "pytests.py", "src/Contest.java", "src/Latest.java", "src/Fastest.cs",
		"src/Testament.kt", "src/invite.config.ts", "src/configuration.ts",
	} {
		got := check(create(p, "X = 1\n"))
		require.True(t, got.Accepted, "%s: %s", p, got.Feedback)
	}
	require.True(t, check(replace(t, "pytest_own.py", "1", "2")).Accepted, "a plugin that is the project's own")
	require.Equal(t, "undeclared", check(create("helper.py", "X = 1\n"), "calc.py").Reason)
}

// TestTargets: a folder stands for what is below it, however it is spelt, and
// opens no door to what is protected; what is no plain file is never written.
func TestTargets(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	base := tree{
		"src/a.py": calc, "src/b.py": "B = 1\n", "src/tests/test_a.py": "import a\n", "c.py": "C = 1\n",
		"link.py": "-> src/a.py", "test_link.py": "-> src/a.py", "to_test.py": "-> src/tests/test_a.py", "out.py": "-> /etc/x",
	}
	for name, c := range map[string]struct{ answer, target, reason string }{
		"file in the folder":     {replace(t, "src/a.py", "a - b", "a + b"), "src", ""},
		"slash at the end":       {replace(t, "src/a.py", "a - b", "a + b"), "src/", ""},
		"dot before":             {replace(t, "src/a.py", "a - b", "a + b"), "./src/a.py", ""},
		"everything":             {replace(t, "c.py", "1", "2"), ".", ""},
		"new file in it":         {create("src/new.py", "x = 1\n"), "src", ""},
		"beside it":              {replace(t, "c.py", "1", "2"), "src", "undeclared"},
		"name that begins so":    {create("src2/new.py", "x = 1\n"), "src", "undeclared"},
		"test in it":             {replace(t, "src/tests/test_a.py", "import a", "import b"), "src", "test"},
		"new conftest in it":     {create("src/conftest.py", "x = 1\n"), "src", "runner"},
		"new conftest anywhere":  {create("src/conftest.py", "x = 1\n"), ".", "runner"},
		"through a link":         {replace(t, "link.py", "a - b", "a + b"), "", ""},
		"a link as the target":   {replace(t, "src/a.py", "a - b", "a + b"), "link.py", ""},
		"file named like a link": {replace(t, "link.py", "a - b", "a + b"), "src", ""},
		"link to a test":         {replace(t, "to_test.py", "import a", "import b"), "", "test"},
		"target that is one":     {replace(t, "to_test.py", "import a", "import b"), "to_test.py", ""},
		"link that leaves":       {create("out.py", "y = 1\n"), "", "barred"},
		"a link deleted":         {"*** Begin Patch\n*** Delete File: link.py\n*** End Patch\n", "", "barred"},
		"one file, two names":    {"*** Begin Patch\n*** Update File: link.py\n@@\n-    return a - b\n+    return a + b\n*** Update File: src/a.py\n@@\n-    return a - b\n+    return a * b\n*** End Patch\n", "", "alias"},
		"below a file":           {create("c.py/a.py", "x = 1\n"), "", "barred"},
		"far below a file":       {create("c.py/x/y/a.py", "x = 1\n"), "", "barred"},
		"a file and its folder":  {"*** Begin Patch\n*** Add File: pkg\n+x\n*** Add File: pkg/a.py\n+x = 1\n*** End Patch\n", "", "barred"},
		"folder, then its file":  {"*** Begin Patch\n*** Add File: pkg/a.py\n+x = 1\n*** Add File: pkg\n+x\n*** End Patch\n", "", "barred"},
		"a folder":               {create("src", "x\n"), "", "barred"},
		"junk in it":             {create("src/repro.py", "x = 1\n"), "src", "junk"},
	} {
		in := validate.Input{Answer: []byte(c.answer), Finish: "stop", Base: base}
		if c.target != "" {
			in.Targets = []string{c.target}
		}
		got := v.Check(t.Context(), in)
		require.Equal(t, c.reason, got.Reason, "%s: %s", name, got.Feedback)
		require.Equal(t, c.reason == "", got.Accepted, name)
	}
}

// TestRunnerSections: of shared configuration only the runner's part counts.
func TestRunnerSections(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]struct {
		answer string
		ok     bool
	}{
		"pytest options":   {replace(t, "pyproject.toml", "-q", "--co"), false},
		"project name":     {replace(t, "pyproject.toml", "name = \"x\"", "name = \"y\""), true},
		"entry point":      {replace(t, "pyproject.toml", "name = \"x\"", "name = \"x\"\n[project.entry-points.pytest11]\nq = \"q\""), false},
		"setup.cfg pytest": {replace(t, "setup.cfg", "-q", "--co"), false},
		"setup.cfg name":   {replace(t, "setup.cfg", "name = x", "name = y"), true},
		"setup.cfg new":    {replace(t, "setup.cfg", "name = x", "name = x\n[pytest]\naddopts=--co"), false},
		"a comment behind": {replace(t, "setup.cfg", "name = x", "name = x\n[pytest] # x\naddopts=--co"), false},
		"semicolon":        {replace(t, "setup.cfg", "[tool:pytest]", "[tool:pytest];[metadata]"), false},
		"white space":      {replace(t, "setup.cfg", "name = x", "name = x\n[ pytest ]\naddopts=--co"), false},
		"a form feed":      {replace(t, "setup.cfg", "name = x", "name = x\f[pytest]\faddopts=--co"), false},
		"a line separator": {replace(t, "setup.cfg", "name = x", "name = x\u2028[pytest]\u2028addopts=--co"), false},
		"indented":         {replace(t, "setup.cfg", "-q", "-q\n [x]\n --co"), false},
		"no heading":       {replace(t, "setup.cfg", "-q", "-q\n[x]y\nz=--co"), false},
		"coverage":         {replace(t, "setup.cfg", "name = x", "name = x\n[coverage:run] x\nomit=a"), false},
		"a comment in it":  {replace(t, "setup.cfg", "-q", "-q\n# quiet"), true},
		"another section":  {replace(t, "setup.cfg", "name = x", "name = x\n[flake8]\nignore = E1"), true},
		"npm test":         {replace(t, "package.json", "jest", "true"), false},
		"npm version":      {replace(t, "package.json", "\"1\"", "\"2\""), true},
		"npm jest":         {replace(t, "package.json", "\"version\"", "\"jest\": {}, \"version\""), false},
	} {
		got := v.Check(t.Context(), validate.Input{Answer: []byte(c.answer), Finish: "stop", Base: project()})
		require.Equal(t, c.ok, got.Accepted, "%s: %s/%s %s", name, got.Gate, got.Reason, got.Feedback)
	}
}

func TestJunk(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for _, p := range []string{
		"reproduce_bug.py", "repro.py", "calc.py.orig", "calc.py.rej", "calc.py~", ".pytest_cache/README.md",
		"debug_calc.py", "pkg/__pycache__/x.txt", "fix.patch", "scratch.py",
	} {
		got := v.Check(t.Context(), validate.Input{Answer: []byte(create(p, "x = 1\n")), Finish: "stop", Base: project()})
		require.Equal(t, "junk", got.Reason, "%s: %s", p, got.Feedback)
	}
}

// TestSecrets: the values are put together here so that no scanner takes this
// file for a leak.
func TestSecrets(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{Secrets: []string{"correct horse battery", "another horse"}})
	secrets := map[string]string{
		"aws": "AK" + "IA" + strings.Repeat("Z", 16), "github": "gh" + "p_" + strings.Repeat("a", 36),
		"private key": "-----BEGIN RSA PRIV" + "ATE KEY-----", "openai": "sk" + "-proj-" + strings.Repeat("a1", 20),
		"anthropic": "sk" + "-ant-" + strings.Repeat("b2", 20), "slack": "xo" + "xb-" + strings.Repeat("1", 12),
		"google": "AI" + "za" + strings.Repeat("c", 35), "known": "correct horse battery",
	}
	for name, s := range secrets {
		line := "KEY = '" + s + "'\n"
		got := requireGate(t, v, name, gateCase{path: "calc.py", base: calc, answer: whole(line + fixed), gate: "secrets"})
		require.NotContains(t, got.Feedback, s, "the feedback repeats the secret")
		if name != "known" {
			requireGate(t, v, name+" was there", gateCase{path: "calc.py", base: line + calc, answer: whole(line + fixed)})
		}
	}
	mask := "KEY = '" + llm.MaskPrefix + "openai key]'\n"
	got := requireGate(t, v, "mask", gateCase{path: "calc.py", base: "KEY = 'x'\n" + calc, answer: whole(mask + fixed), gate: "secrets", reason: "masked"})
	require.NotContains(t, got.Feedback, llm.MaskPrefix+"openai", "the feedback is no mask itself")
	requireGate(t, v, "mask was there", gateCase{path: "calc.py", base: mask + calc, answer: whole(mask + fixed)})
	requireGate(t, v, "mask kept in a changed line", gateCase{path: "calc.py", base: mask + calc, answer: whole("MY_" + mask + "KEY = MY_KEY\n" + fixed)})
	requireGate(t, v, "password, not a credential", gateCase{path: "calc.py", base: calc, answer: whole("password = 'hunter2'\n" + fixed)})
	requireGate(t, v, "escaped", gateCase{path: "a.json", base: "{}\n", answer: whole("{\"u\": \"correct+horse+battery\"}\n"), gate: "secrets"})
	requireGate(t, v, "known, in the edited line", gateCase{path: "calc.py", base: "f('correct horse battery', 1)\n" + calc, answer: whole("f('correct horse battery', 2)\n" + fixed)})
	requireGate(t, v, "another one in its line", gateCase{path: "calc.py", base: "f('correct horse battery')\n" + calc, answer: whole("f('another horse')\n" + fixed), gate: "secrets"})
	requireGate(t, v, "known, in another line", gateCase{path: "calc.py", base: "f('correct horse battery', 1)\n" + calc, answer: whole("f('correct horse battery', 1)\n" + fixed + "\nX = 'correct horse battery'\n"), gate: "secrets"})
	requireGate(t, v, "ordinary", gateCase{path: "calc.py", base: calc, answer: whole("task = 'sk-learn-based-estimator'\nkey_id = 'AKIAEXAMPLE'\n" + fixed)})
}

// TestTripwires: suspicious constructs are reported, new ones only.
func TestTripwires(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for code, want := range map[string]string{
		"import os\nos._exit(0)\n":                                  "os._exit",
		"from os import _exit\n":                                    "os._exit",
		"import os\ngetattr(os, '_exit')(0)\n":                      "os._exit",
		"import atexit\n":                                           "atexit",
		"import sys\nsys.modules['x'] = None\n":                     "sys.modules",
		"from sys import modules\n":                                 "sys.modules",
		"import _pytest.runner\n":                                   "_pytest",
		"from _pytest import runner\n":                              "_pytest",
		"def f(i):\n    return i('_pytest')\n":                      "_pytest",
		"import gc\n":                                               "gc",
		"import inspect\n":                                          "inspect",
		"from ctypes import c_int\n":                                "ctypes",
		"class A:\n    def __eq__(self, o):\n        return True\n": "constant __eq__",

		"class A:\n    def __eq__(self, o):\n        return self is self\n": "constant __eq__",
		"class A:\n    def __ne__(self, o):\n        return not 1\n":        "constant __ne__",
		"class A:\n    __eq__ = lambda self, o: o is o\n":                   "assigned __eq__",
		"A = type('A', (), {'__eq__': print})\n":                            "__eq__",
		"import sys\nsys.exit = print\n":                                    "assignment into the imported sys",
		"import json as j\nsetattr(j, 'dumps', str)\n":                      "assignment into the imported j",
		"def f(e):\n    return e.__traceback__.tb_frame\n":                  "frames",
		"import sys\nX = sys._getframe()\n":                                 "frames",
		"def f(g):\n    return g.f_locals\n":                                "frames",
		"X = object.__subclasses__()\n":                                     "__subclasses__",
		"def f(g):\n    g.__code__ = None\n":                                "__code__",
		"exec('1')\n":                                                       "exec",
		"import os\nos.fork()\n":                                            "os.fork",
		"import os\nos.write(3, b'')\n":                                     "os.write",
		"import unittest\n":                                                 "unittest",
		"import pytest\n":                                                   "pytest",
		"X = open('/proc/self/mem')\n":                                      "/proc/self/mem",
	} {
		got := requireGate(t, v, code, gateCase{path: "calc.py", base: calc, answer: whole(fixed + "\n" + code)})
		require.Len(t, got.Tripwires, 1, code)
		require.Contains(t, got.Tripwires[0], want)
		require.Equal(t, got.Tripwires, got.Candidate.Tripwires)
		old := requireGate(t, v, code, gateCase{path: "calc.py", base: calc + "\n" + code, answer: whole(fixed + "\n" + code)})
		require.Empty(t, old.Tripwires, code)
	}
	exits := "import os\n\n\ndef stop(n):\n    os._exit(n)\n"
	used := requireGate(t, v, "the function had it", gateCase{path: "a.py", base: exits, answer: whole(strings.Replace(exits, "(n)\n", "(n + 1)\n", 1))})
	require.Empty(t, used.Tripwires)
	got := requireGate(t, v, "harmless", gateCase{path: "calc.py", base: calc, answer: whole(fixed + "\n# os._exit and atexit\nTEXT = 'use os._exit with care'\n\n\nclass A:\n    def __eq__(self, o):\n        return o is self\n\n\nclass B:\n    def __init__(self):\n        self.os = 1\n")})
	require.Empty(t, got.Tripwires)
}

// TestNoEffect: an answer that changes nothing is no success.
func TestNoEffect(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]gateCase{
		"same file":     {answer: whole(calc), gate: "empty", reason: "no_op"},
		"same edit":     {answer: replace(t, "calc.py", "a - b", "a - b"), gate: "empty", reason: "no_op"},
		"comments only": {answer: whole("# fixed\n" + calc), gate: "empty", reason: "comments_only"},
		"emptied":       {answer: `{"path": "calc.py", "content": "\n"}`, gate: "empty", reason: "emptied"},
		"second place":  {base: "# a\nX = \"\"\"\n# b\n\"\"\"\n", answer: whole("# b\nX = \"\"\"\n# c\n\"\"\"\n")},
		"in a string":   {answer: whole("X = '''\n# a\n'''\n" + calc)},
	} {
		c.path, c.base = "calc.py", cmp.Or(c.base, calc)
		requireGate(t, v, name, c)
	}
}

// TestRepeat: the same change under another disguise is the same candidate.
func TestRepeat(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	in := validate.Input{Answer: []byte(whole(fixed)), Finish: "stop", Base: tree{"calc.py": calc}, Targets: []string{"calc.py"}}
	first := v.Check(t.Context(), in)
	require.True(t, first.Accepted)
	require.Equal(t, first.Candidate.Hash, run.HashChanges(first.Candidate.Changes))
	in.Answer = []byte(replace(t, "calc.py", "a - b", "a + b"))
	in.Tried = []string{first.Candidate.Hash}
	second := v.Check(t.Context(), in)
	require.Equal(t, validate.GateRepeat, second.Gate)
	require.Equal(t, first.Candidate.Hash, second.Candidate.Hash)
}

// TestVerdictDescribesTheChange: contents, hashes, modes and diff agree.
func TestVerdictDescribesTheChange(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	base := tree{"calc.py": calc, "old.txt": "a\n"}
	got := v.Check(t.Context(), validate.Input{
		Answer: []byte("diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+echo\n" +
			"diff --git a/old.txt b/new.txt\nrename from old.txt\nrename to new.txt\n" +
			"--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"),
		Finish: "stop", Base: base, Task: "move old.txt",
	})
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, tree{"calc.py": fixed, "new.txt": "a\n", "run.sh": "echo\n"}, base.after(got))
	modes := map[string]uint32{}
	for _, c := range got.Candidate.Changes {
		modes[c.Path] = c.Mode
	}
	require.Equal(t, map[string]uint32{"calc.py": 0o644, "new.txt": 0o644, "old.txt": 0, "run.sh": 0o755}, modes)
	require.Equal(t, int64(len(got.Diff)), got.Candidate.Diff.Size)
	require.Contains(t, string(got.Diff), "+    return a + b")
	require.Equal(t, "diff", got.Candidate.Note)
}

// secondCandidateStartsFromTheBase: a refused candidate leaves no trace, so
// a hunk that is sent again is applied once.
func secondCandidateStartsFromTheBase(t *testing.T, v *validate.Validator) {
	t.Helper()
	base := tree{"l.py": "A = 1\nB = 2\n"}
	in := validate.Input{Finish: "stop", Base: base, Targets: []string{"l.py"}}
	first := "--- a/l.py\n+++ b/l.py\n@@\n A = 1\n+C = 3\n"
	in.Answer = []byte(first + "@@\n-X = 9\n+X = 8\n")
	require.Equal(t, validate.GatePlace, v.Check(t.Context(), in).Gate)
	in.Answer = []byte(first + "@@\n-B = 2\n+B = 4\n")
	got := v.Check(t.Context(), in)
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, "A = 1\nC = 3\nB = 4\n", base.after(got)["l.py"])
}
