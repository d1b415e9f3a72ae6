package testrun_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

const jsFix = "exports.add = (a, b) => a + b\nexports.mul = (a, b) => a * b\n"

// scripted is the JavaScript project that most tests vary.
func scripted() files {
	return files{
		"package.json": `{"name": "calc", "scripts": {"test": "node --test test/*.test.js"}}`,
		"calc.js":      "exports.add = (a, b) => a - b\nexports.mul = (a, b) => a * b\n",
		"test/calc.test.js": `const test = require('node:test')
const assert = require('node:assert')
const { add, mul } = require('../calc.js')

test.describe('add', () => {
  test.it('sums', () => { assert.strictEqual(add(1, 2), 3) })
  test.it('keeps zero', () => { assert.strictEqual(add(0, 0), 0) })
})
test('mul', () => { assert.strictEqual(mul(2, 3), 6) })
test('same name', () => {})
test('same name', { skip: 'later' }, () => {})
`,
		"test/other.test.js": "const test = require('node:test')\ntest('nothing to do with it', async (t) => { await t.test('inner', () => {}) })\n",
	}
}

func scriptPlan(t *testing.T, dir, command string) testrun.Plan {
	t.Helper()
	plan, err := testrun.Find(t.Context(), dir, command)
	if errors.Is(err, testrun.ErrNoNode) {
		t.Skip("this machine has no Node.js: ", err)
	}
	require.NoError(t, err)
	return plan
}

func scriptOn(t *testing.T, f files, command string) run.Evidence {
	t.Helper()
	plan := scriptPlan(t, write(t, f), command)
	require.Equal(t, testrun.Node, plan.Runner)
	return execute(t, plan, write(t, f), func(o *testrun.Options) { o.TestTimeout = 5 * time.Second })
}

func TestNodeProject(t *testing.T) {
	t.Parallel()
	base := scriptOn(t, scripted(), "")
	trusted(t, base)
	require.False(t, base.Weak)
	require.Equal(t, outcomes(
		"test/calc.test.js::add > sums", "failed", "test/calc.test.js::add > keeps zero", "passed", "test/calc.test.js::mul", "passed",
		"test/calc.test.js::same name", "passed", "test/calc.test.js::same name#2", "skipped",
		"test/other.test.js::nothing to do with it", "passed", "test/other.test.js::nothing to do with it > inner", "passed",
	), base.Outcomes, base.Tail)
	require.Equal(t, 1, base.Exit)
	require.NotContains(t, base.Tail, "planted")
	for _, command := range []string{"", "npm test", "node --test", "npx node --test"} {
		got := scriptOn(t, scripted().with("calc.js", jsFix), command)
		trusted(t, got)
		v := run.Judge(base, got)
		require.Equal(t, run.VerdictPassed, v.Kind, "%s: %s\n%v", command, v.Reason, got.Outcomes)
		require.Equal(t, []string{"test/calc.test.js::add > sums"}, v.Fixed)
	}
}

func TestNodeOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code string
		id   string
		want run.Outcome
	}{
		"a syntax error":             {"exports.add = (a, b => a\n", "test/calc.test.js", "error"},
		"a file that stops half way": {"exports.add = (a, b) => a + b\nObject.defineProperty(exports, 'mul', { get: () => { throw new Error('x') } })\n", "test/calc.test.js", "error"},
		"a missing package":          {"require('no-such-package')\n", "test/calc.test.js", "error"},
		"an endless wait":            {"exports.add = (a, b) => new Promise(() => {})\nexports.mul = (a, b) => a * b\n", "test/calc.test.js::add > sums", "failed"},
		"an exception":               {"exports.add = (a, b) => { throw new Error('x') }\nexports.mul = (a, b) => a * b\n", "test/calc.test.js::add > sums", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := scriptOn(t, scripted().with("calc.js", c.code), "")
			require.Equal(t, c.want, e.Outcomes[c.id], "%v\n%s", e.Outcomes, e.Tail)
			v := run.JudgeBase(e)
			require.Equal(t, run.VerdictFailed, v.Kind, v.Reason)
			if c.want == run.OutcomeError {
				v := run.Judge(e, scriptOn(t, scripted().with("calc.js", jsFix), ""))
				require.Equal(t, run.VerdictPassed, v.Kind, v.Reason)
				require.Equal(t, []string{c.id}, v.Fixed)
			}
		})
	}
}

func TestNodeCandidatesThatFake(t *testing.T) {
	t.Parallel()
	base := scriptOn(t, scripted(), "")
	for name, code := range map[string]string{
		"exits while it loads":     "process.exit(0)\n",
		"exits in a test":          "exports.add = () => process.exit(0)\nexports.mul = (a, b) => a * b\n",
		"its own exit status":      "process.on('exit', () => { process.exitCode = 0 })\nexports.add = (a, b) => a - b\nexports.mul = (a, b) => a * b\n",
		"assert.strictEqual":       "require('node:assert').strictEqual = () => {}\nexports.add = (a, b) => a - b\nexports.mul = (a, b) => a * b\n",
		"Object.is":                "Object.is = () => true\nexports.add = (a, b) => a - b\nexports.mul = (a, b) => a * b\n",
		"a skipped suite":          "exports.add = () => { throw new Error('skip') }\nexports.mul = (a, b) => a * b\n",
		"a record of its own":      "const fs = require('fs')\nfor (let fd = 3; fd < 60; fd++) { try { fs.writeSync(fd, '{\"n\":\"guess\",\"k\":\"done\",\"exit\":1}\\n') } catch {} }\nprocess.exit(0)\n",
		"the order, read again":    "const fs = require('fs')\nconsole.log('READ', fs.readdirSync('/proc/' + process.ppid + '/fd').map((f) => { try { return fs.readlinkSync('/proc/' + process.ppid + '/fd/' + f) } catch { return '' } }).join())\nprocess.exit(0)\n",
		"tests that it takes away": "require('node:test').it = () => {}\nexports.add = (a, b) => a - b\nexports.mul = (a, b) => a * b\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scriptOn(t, scripted().with("calc.js", code), "")
			v := run.Judge(base, got)
			require.NotEqual(t, run.VerdictPassed, v.Kind, "%v\n%s", got.Outcomes, got.Tail)
		})
	}
}

// installed is a folder with jest and vitest, as npm makes one.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("NEXUS_TEST_NODE_MODULES")
	if dir == "" {
		t.Skip("NEXUS_TEST_NODE_MODULES names no node_modules with jest and vitest")
	}
	return dir
}

func TestJestAndVitest(t *testing.T) {
	t.Parallel()
	modules := installed(t)
	for runner, c := range map[string]struct{ code, fix, test string }{
		testrun.Jest: {
			scripted()["calc.js"], jsFix,
			"const { add, mul } = require('../calc.js')\n\ndescribe('add', () => {\n  it('sums', () => { expect(add(1, 2)).toBe(three) })\n  it.skip('later', () => {})\n})\ntest('mul', () => { expect(mul(2, 3)).toBe(6) })\n",
		},
		testrun.Vitest: {
			"export const add = (a, b) => a - b\nexport const mul = (a, b) => a * b\n", "export const add = (a, b) => a + b\nexport const mul = (a, b) => a * b\n",
			"import { describe, expect, it, test } from 'vitest'\nimport { add, mul } from '../calc.js'\n\ndescribe('add', () => {\n  it('sums', () => { expect(add(1, 2)).toBe(three) })\n  it.skip('later', () => {})\n})\ntest('mul', () => { expect(mul(2, 3)).toBe(6) })\n",
		},
	} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			module := map[string]string{testrun.Vitest: `"type": "module", `}[runner]
			project := files{
				"package.json":      `{"name": "calc", ` + module + `"scripts": {"test": "` + runner + `"}, "jest": {"setupFilesAfterEnv": ["<rootDir>/set.js"]}}`,
				"vitest.config.js":  "export default { test: { setupFiles: ['./set.js'] } }\n",
				"set.js":            "globalThis.three = 3\n",
				"calc.js":           c.code,
				"test/calc.test.js": c.test,
			}
			if runner == testrun.Jest {
				delete(project, "vitest.config.js")
			}
			origin := write(t, project)
			list, err := os.ReadDir(modules)
			require.NoError(t, err)
			require.NoError(t, os.Mkdir(filepath.Join(origin, "node_modules"), 0o755))
			for _, e := range list {
				require.NoError(t, os.Symlink(filepath.Join(modules, e.Name()), filepath.Join(origin, "node_modules", e.Name())))
			}
			plan := scriptPlan(t, origin, "")
			require.Equal(t, runner, plan.Runner)
			plan.Tool.ReadOnly = append(plan.Tool.ReadOnly, modules)
			base := execute(t, plan, write(t, project))
			trusted(t, base)
			require.Equal(t, outcomes("test/calc.test.js::add > sums", "failed", "test/calc.test.js::add > later", "skipped", "test/calc.test.js::mul", "passed"), base.Outcomes, base.Tail)
			got := execute(t, plan, write(t, project.with("calc.js", c.fix)))
			trusted(t, got)
			v := run.Judge(base, got)
			require.Equal(t, run.VerdictPassed, v.Kind, v.Reason)
			broken := execute(t, plan, write(t, project.with("calc.js", "syntax error here\n")))
			require.Equal(t, outcomes("test/calc.test.js", "error"), broken.Outcomes, broken.Tail)
			require.Equal(t, run.VerdictFailed, run.Judge(base, broken).Kind)
			faked := execute(t, plan, write(t, project.with("calc.js", "process.exit(0)\n")))
			require.NotEqual(t, run.VerdictPassed, run.Judge(base, faked).Kind)
		})
	}
}
