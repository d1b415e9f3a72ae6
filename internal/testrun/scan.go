package testrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxScan bounds how many files of a project are looked at.
const maxScan = 200_000

// errScan ends a walk that would not end.
var errScan = errors.New("the project is too large to look for tests")

// found is what the project's own files say about its tests.
type found struct {
	// pytest is true when a configuration or a conftest.py asks for it.
	pytest bool
	// files are Python's test files, relative and slash-separated.
	files []string
	// goTests and scripts count the test files of Go and of JavaScript.
	goTests, scripts int
}

// skippedFolders hold no tests of the project's own; runner.py knows them too.
var skippedFolders = map[string]bool{
	"node_modules": true, "site-packages": true, "__pycache__": true,
	"build": true, "dist": true, "venv": true, "env": true,
}

func scan(root string) (found, error) {
	f := found{pytest: configured(root)}
	seen := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p == root {
				return err
			}
			return nil
		}
		if seen++; seen > maxScan {
			return errScan
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || skippedFolders[name]) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f.pytest = f.pytest || name == "conftest.py"
		switch {
		case strings.HasSuffix(name, "_test.go"):
			f.goTests++
		case scriptTest.MatchString(name):
			f.scripts++
		}
		if testFile(name) {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			f.files = append(f.files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		return f, fmt.Errorf("look for tests in %s: %w", root, err)
	}
	return f, nil
}

var scriptTest = regexp.MustCompile(`(^|[._-])(test|spec)\.[cm]?[jt]sx?$`)

// testFile reports whether a file is named as one of the runners wants it.
func testFile(name string) bool { return matches(name, "test*.py", "*_test.py") }

// pytestFile reports whether pytest looks into a file when nothing else is
// configured.
func pytestFile(name string) bool { return matches(name, "test_*.py", "*_test.py") }

func matches(name string, patterns ...string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// configured reports whether a configuration of pytest's own is there.
func configured(root string) bool {
	for _, name := range []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			return true
		}
	}
	for name, section := range map[string]string{"tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && strings.Contains("\n"+string(b), "\n"+section) {
			return true
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "pyproject.toml"))
	if err != nil {
		return false
	}
	var project struct {
		Tool struct {
			Pytest map[string]any `toml:"pytest"`
		} `toml:"tool"`
	}
	return toml.Unmarshal(b, &project) == nil && project.Tool.Pytest != nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
