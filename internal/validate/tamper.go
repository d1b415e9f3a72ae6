package validate

import (
	"encoding/json"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// why explains a protected path; its feedback takes the path.
type why struct{ reason, feedback string }

var (
	whyTest   = why{"test", "%s is a test; fix the code, not the test"}
	whyRunner = why{"runner", "%s configures or shadows the test runner and may not be changed"}
	whyCI     = why{"ci", "%s belongs to the build pipeline and may not be changed"}
	whyLock   = why{"lock", "%s is a lock file and may not be changed"}
	whyGit    = why{"git", "%s belongs to git and may not be changed"}
)

// protectedNames are base names, in lower case, that no candidate touches.
var protectedNames = map[string]why{
	"conftest.py": whyRunner, "pytest.ini": whyRunner, ".pytest.ini": whyRunner, "tox.ini": whyRunner,
	"sitecustomize.py": whyRunner, "usercustomize.py": whyRunner, "pytest.py": whyRunner, "unittest.py": whyRunner,
	"noxfile.py": whyRunner, ".coveragerc": whyRunner, "pytest.toml": whyRunner, ".pytest.toml": whyRunner,
	"bunfig.toml": whyRunner, ".npmrc": whyRunner, ".yarnrc": whyRunner, ".yarnrc.yml": whyRunner,
	"phpunit.xml": whyRunner, "phpunit.xml.dist": whyRunner, ".rspec": whyRunner,
	".gitlab-ci.yml": whyCI, ".travis.yml": whyCI, "jenkinsfile": whyCI, "azure-pipelines.yml": whyCI,
	"bitbucket-pipelines.yml": whyCI, ".drone.yml": whyCI, "appveyor.yml": whyCI, ".pre-commit-config.yaml": whyCI,
	"go.sum": whyLock, "package-lock.json": whyLock, "npm-shrinkwrap.json": whyLock, "yarn.lock": whyLock,
	"pnpm-lock.yaml": whyLock, "bun.lockb": whyLock, "bun.lock": whyLock, "poetry.lock": whyLock, "pipfile.lock": whyLock,
	"pdm.lock": whyLock, "uv.lock": whyLock, "cargo.lock": whyLock, "composer.lock": whyLock, "gemfile.lock": whyLock,
	".gitattributes": whyGit, ".gitmodules": whyGit,
}

var (
	// runnerName matches, in lower case, what JavaScript runners read before
	// the tests, under every extension and suffix that they accept.
	runnerName = regexp.MustCompile(`^(?:(?:jest|vitest|vite|ava|karma|playwright|cypress)[.-](?:config|conf|setup|workspace|projects|global-?setup|preset)` +
		`(?:\.[\w-]+)*\.(?:[cm]?[jt]sx?|json5?)|setup-?tests?\.[cm]?[jt]sx?|\.mocharc(?:\.\w+)?|\.nycrc(?:\.\w+)?|\.c8rc(?:\.\w+)?)$`)
	testName = regexp.MustCompile(`^(?:test_.*\.py|.*_test\.(?:py|go|rb|rs|cc|cpp|java|kt|cs)|tests?\.py|.*\.(?:test|spec)\.[cm]?[jt]sx?|.*_spec\.rb)$`)
	// camelTest matches the names of classes, where only the capital tells a
	// test from a contest.
	camelTest = regexp.MustCompile(`^(?:Test(?:[A-Z0-9_].*)?|.*Test(?:s|Cases?)?|tests?)\.(?:java|kt|cs)$`)
	testDirs  = []string{"tests", "test", "__tests__", "spec", "testdata"}
	ciDirs    = []string{".github/workflows/", ".github/actions/", ".circleci/", ".buildkite/", ".gitlab/", ".husky/"}
)

// protected says whether a path is none of a candidate's business unless it is
// declared as a target. Test paths and .git are so even then.
func (c *check) protected(p string) (why, bool) {
	if slices.Contains(c.in.TestPaths, p) {
		return whyTest, true
	}
	low := strings.ToLower(p)
	if w, ok := protectedName(path.Base(low)); ok {
		return w, true
	}
	for _, d := range ciDirs {
		if strings.HasPrefix(low, d) || strings.Contains(low, "/"+d) {
			return whyCI, true
		}
	}
	if w, ok := runnerPath(low); ok {
		return w, true
	}
	if c.shadowsRunner(p) {
		return whyRunner, true
	}
	return whyTest, isTestPath(p)
}

// protectedName looks a base name in lower case up.
func protectedName(base string) (why, bool) {
	if w, ok := protectedNames[base]; ok {
		return w, true
	}
	return whyRunner, runnerName.MatchString(base)
}

// runnerModule matches the modules that a Python runner imports from what is
// installed: itself, what it needs, and the plugins that it loads unasked.
var runnerModule = regexp.MustCompile(`^(?:pytest_\w+|coverage|xdist|iniconfig|execnet|exceptiongroup|tomli|hypothesis|_hypothesis_\w+|nose2?|anyio|faker|syrupy|` +
	`respx|requests_mock|pyfakefs|typeguard|allure_pytest|pytestqt|ddtrace)$`)

// shadowsRunner says whether a new file takes the place of an installed module
// of the runner: it has such a name where modules are found by one name alone,
// which is outside of every package. A file that is there is the project's own.
func (c *check) shadowsRunner(p string) bool {
	parts := strings.Split(strings.ToLower(p), "/")
	for i, part := range parts {
		if i == len(parts)-1 {
			if !isPython(p) {
				break
			}
			part = strings.TrimSuffix(part, path.Ext(part))
		}
		if !runnerModule.MatchString(part) {
			continue
		}
		if _, exists := c.in.Base.Read(p); exists {
			return false
		}
		if i == 0 {
			return true
		}
		parent := strings.Join(strings.Split(p, "/")[:i], "/")
		_, inPackage := c.in.Base.Read(parent + "/__init__.py")
		return !inPackage
	}
	return false
}

// runnerPath covers what an interpreter loads by itself or before the tests.
func runnerPath(low string) (why, bool) {
	for part := range strings.SplitSeq(low, "/") {
		switch {
		case part == "_pytest" || part == "pytest" || part == "unittest" || part == "pluggy",
			strings.HasSuffix(part, ".dist-info"), strings.HasSuffix(part, ".egg-info"), strings.HasSuffix(part, ".egg-link"):
			return whyRunner, true
		}
	}
	switch path.Ext(low) {
	case ".pth", ".so", ".pyd", ".pyc", ".pyo", ".dll", ".dylib":
		return whyRunner, true
	}
	return why{}, false
}

// isTestPath tells tests by their names; it takes the path as it is written.
func isTestPath(p string) bool {
	low := strings.ToLower(p)
	if testName.MatchString(path.Base(low)) || camelTest.MatchString(path.Base(p)) {
		return true
	}
	for part := range strings.SplitSeq(path.Dir(low), "/") {
		if slices.Contains(testDirs, part) {
			return true
		}
	}
	return false
}

// rubbish names what models leave behind while they work.
func rubbish(p string) (string, bool) {
	low := strings.ToLower(p)
	base := path.Base(low)
	switch {
	case scratch.MatchString(base):
		return "a scratch file", true
	case leftover.MatchString(base):
		return "a backup or temporary file", true
	}
	for part := range strings.SplitSeq(low, "/") {
		switch part {
		case "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".tox", ".venv":
			return "part of a cache or an installation", true
		}
	}
	return "", false
}

var (
	scratch  = regexp.MustCompile(`^(?:repro(?:duce)?(?:[_-].*)?|debug[_-].*|scratch.*|tmp[_-].*|temp[_-].*|fix[_-]?(?:script|test).*)\.(?:py|js|ts|sh)$`)
	leftover = regexp.MustCompile(`(?:\.(?:orig|rej|bak|swp|tmp|patch|diff)|~)$`)
)

// noTampering refuses changes of tests, runner, pipeline and lock files.
func (c *check) noTampering() *refusal {
	for _, f := range c.files {
		for _, p := range []string{f.Path, f.From} {
			if p == "" {
				continue
			}
			w, ok := c.protected(p)
			if ok && (!slices.Contains(c.in.Targets, p) || slices.Contains(c.in.TestPaths, p)) {
				return refuse(GateTamper, w.reason, w.feedback, p)
			}
		}
		if section, changed := runnerSection(f); changed {
			return refuse(GateTamper, whyRunner.reason, "the section %s of %s configures the tests and may not be changed", section, f.Path)
		}
	}
	return nil
}

// runnerSection compares the parts of shared configuration files that speak to
// the test runner.
func runnerSection(f *file) (string, bool) {
	switch strings.ToLower(path.Base(f.Path)) {
	case "pyproject.toml":
		for _, keys := range [][]string{{"tool", "pytest"}, {"tool", "coverage"}, {"tool", "tox"}, {"project", "entry-points", "pytest11"}} {
			if !reflect.DeepEqual(tomlAt(f.Old, keys), tomlAt(f.New, keys)) {
				return strings.Join(keys, "."), true
			}
		}
	case "setup.cfg":
		return iniRunner(f.Old, f.New)
	case "package.json":
		for _, key := range []string{"scripts", "jest", "mocha", "vitest", "ava"} {
			if !reflect.DeepEqual(jsonAt(f.Old, key), jsonAt(f.New, key)) {
				return key, true
			}
		}
	}
	return "", false
}

func tomlAt(src []byte, keys []string) any {
	var m map[string]any
	if toml.Unmarshal(src, &m) != nil {
		return nil
	}
	var v any = m
	for _, k := range keys {
		t, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = t[k]
	}
	return v
}

func jsonAt(src []byte, key string) any {
	var m map[string]any
	if json.Unmarshal(src, &m) != nil {
		return nil
	}
	return m[key]
}
