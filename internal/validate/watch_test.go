package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/validate"
)

// What a candidate newly does that could deceive a runner, by language.
func TestWatch(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]struct{ path, old, after, want string }{
		"python":                {"a.py", "x = 1\n", "import gc\nx = 1\n", "a.py: new use of gc"},
		"python, as it was":     {"a.py", "import gc\nx = 1\n", "import gc\nx = 2\n", ""},
		"go: a system call":     {"a.go", "package a\n", "package a\n\nimport _ \"syscall\"\n", "a.go: new use of import syscall"},
		"go: an exit":           {"a.go", "package a\n", "package a\n\nimport \"os\"\n\nfunc f() { os.Exit(0) }\n", "a.go: new use of os.Exit"},
		"go: one exit more":     {"a.go", "package a\n\nfunc f() { os.Exit(0) }\n", "package a\n\nfunc f() { os.Exit(0); os.Exit(1) }\n", "a.go: new use of os.Exit"},
		"go: a forged line":     {"a.go", "package a\n", "package a\n\nconst s = \"--- PASS: TestA\"\n", "a.go: new use of --- PASS"},
		"go: ordinary":          {"a.go", "package a\n\nfunc f() int { return 1 }\n", "package a\n\nimport \"strings\"\n\nfunc f() int { return strings.Count(\"\", \"\") }\n", ""},
		"go.mod":                {"go.mod", "module a\n", "module a\n\nreplace b => ./c\n", "go.mod: new use of replace"},
		"go.mod, a requirement": {"go.mod", "module a\n", "module a\n\nrequire b v1.0.0\n", ""},
		"vendored":              {"vendor/b/b.go", "package b\n", "package b\n\nvar X = 1\n", "vendor/b/b.go: changes vendored code"},
		"js: an exit":           {"a.js", "f()\n", "f(); process.exit(0)\n", "a.js: new use of process.exit"},
		"js: assertions":        {"a.ts", "f()\n", "import assert from 'node:assert'\n", "a.ts: new use of node:assert"},
		"js: equality":          {"a.mjs", "f()\n", "Object.is = () => true\n", "a.mjs: new use of Object.is="},
		"js: a matcher":         {"a.js", "f()\n", "const o = { asymmetricMatch: () => true }\n", "a.js: new use of asymmetricMatch"},
		"js: ordinary":          {"a.js", "exports.add = (a, b) => a - b\n", "const fs = require('fs')\nexports.add = (a, b) => Object.is(a, b) ? 2 * a : a + b\n", ""},
		"other languages":       {"a.rs", "fn main() {}\n", "fn main() { std::process::exit(0) }\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := v.Watch(t.Context(), c.path, []byte(c.old), []byte(c.after))
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []string{c.want}, got)
		})
	}
}

func TestIsTest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"tests/a.py": true, "test_a.py": true, "a_test.go": true, "pkg/a.test.ts": true, "src/__tests__/x.js": true, "conftest.py": true,
		"pytest.ini": true, "jest.config.js": true, "x.pth": true, "a.dist-info/METADATA": true, "testdata/x.json": true,
		"src/FooTest.java": true, "vitest.config.mts": true, "src/Contest.java": false, "src/Latest.java": false,
		"calc.py": false, "go.sum": false, "package.json": false, "contest.py": false, "src/testing.go": false,
	} {
		require.Equal(t, want, validate.IsTest(path), path)
	}
}

// TestWatchCannotRead: what is too deep to look at, or no Python, is said to be
// so and does not pass for harmless.
func TestWatchCannotRead(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	evil := "import os\nos._exit(0)\n"
	for name, after := range map[string]string{
		"a long sum":      evil + "x = 1" + strings.Repeat("+1", 900) + "\n",
		"a longer sum":    evil + "x = 1" + strings.Repeat("+1", 5000) + "\n",
		"deep attributes": evil + "x = a" + strings.Repeat(".a", 3000) + "\n",
		"no Python":       evil + "x = (\n",
	} {
		got, err := v.Watch(t.Context(), "a.py", nil, []byte(after))
		require.True(t, err != nil || len(got) > 0, name)
	}
}
