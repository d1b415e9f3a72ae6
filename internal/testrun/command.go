package testrun

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// asked is a test command after it was understood.
type asked struct {
	runner   string
	python   string
	args     []string
	names    []string
	patterns []string
	env      []string
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	pythonName = regexp.MustCompile(`^(python|python3|python3\.\d+)$`)
)

// scriptPrograms start the test runners of JavaScript.
var scriptPrograms = []string{"node", "npx", "npm", "yarn", "pnpm", "jest", "vitest", "cross-env"}

// understand recognises the runners whose tests can be reported one by one;
// anything else is a command known by its exit status only.
func understand(text string) (asked, error) {
	if strings.ContainsRune(text, 0) {
		return asked{}, fmt.Errorf("%w: it holds a NUL byte", ErrTestCommand)
	}
	list, shell, err := words(text)
	if err != nil {
		return asked{}, err
	}
	// The brackets of a parametrised id need no shell.
	plainIDs := strings.NewReplacer("[", "", "]", "")
	if _, still, err := words(plainIDs.Replace(text)); err == nil && !still {
		shell = false
	}
	var a asked
	for len(list) > 0 && assignment.MatchString(list[0]) {
		a.env, list = append(a.env, list[0]), list[1:]
	}
	if len(list) == 0 {
		return asked{}, fmt.Errorf("%w: it only sets variables", ErrTestCommand)
	}
	if shell {
		// The runners of scripts expand the patterns of files, or we do.
		plainGlobs := strings.NewReplacer("*", "", "?", "", "[", "", "]", "", "{", "", "}", "")
		if _, still, err := words(plainGlobs.Replace(text)); err == nil && !still && slices.Contains(scriptPrograms, list[0]) && a.understandScript(list) {
			return a, nil
		}
		return asked{runner: Command, args: []string{"/bin/sh", "-c", text}}, nil
	}
	return a.recognise(list), nil
}

func (a asked) recognise(list []string) asked {
	base := filepath.Base(list[0])
	switch {
	case base == "pytest" || base == "py.test":
		a.runner, a.args = Pytest, list[1:]
		if base != list[0] {
			a.python = filepath.Join(filepath.Dir(list[0]), "python")
		}
		return a
	case list[0] == "go" && len(list) > 1 && list[1] == "test":
		if want := (asked{env: a.env}); want.gotest(list[2:]) {
			return want
		}
	case slices.Contains(scriptPrograms, list[0]):
		if want := (asked{env: a.env}); want.understandScript(list) {
			return want
		}
	case pythonName.MatchString(base) && len(list) > 2 && list[1] == "-m":
		if list[0] != "python" && list[0] != "python3" {
			a.python = list[0]
		}
		if list[2] == "pytest" {
			a.runner, a.args = Pytest, list[3:]
			return a
		}
		if list[2] == "unittest" && a.unittest(list[3:]) {
			return a
		}
	}
	return asked{runner: Command, args: list, env: a.env}
}

// unittest understands the usual arguments; others leave it a command.
func (a *asked) unittest(args []string) bool {
	a.runner = Unittest
	quiet := []string{"-v", "--verbose", "-q", "--quiet", "-b", "--buffer", "-f", "--failfast", "-c", "--catch"}
	var rest []string
	for _, arg := range args {
		if !slices.Contains(quiet, arg) {
			rest = append(rest, arg)
		}
	}
	if len(rest) == 0 {
		return true
	}
	if rest[0] == "discover" {
		return a.discover(rest[1:])
	}
	for _, name := range rest {
		if strings.HasPrefix(name, "-") {
			return false
		}
		a.names = append(a.names, moduleName(name))
	}
	return true
}

// moduleName accepts a file name where unittest does.
func moduleName(name string) string {
	if stem, ok := strings.CutSuffix(name, ".py"); ok {
		return strings.ReplaceAll(strings.TrimPrefix(stem, "./"), "/", ".")
	}
	return name
}

func (a *asked) discover(args []string) bool {
	start, pattern := ".", "test*.py"
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "-s", "--start-directory":
			start = args[i+1]
		case "-p", "--pattern":
			pattern = args[i+1]
		case "-t", "--top-level-directory":
		default:
			return false
		}
	}
	if len(args)%2 == 1 {
		start = args[len(args)-1]
	}
	a.patterns = []string{pattern}
	if start != "." {
		a.args = []string{filepath.Clean(start)}
	}
	return true
}

// program finds the command for the plan: on the caller's PATH, or in the
// project when the name holds a slash.
func program(name, root, search string) error {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		if !runnable(path) {
			return fmt.Errorf("%w: %s is no executable file", ErrCommandNotFound, name)
		}
		return nil
	}
	for _, dir := range filepath.SplitList(search) {
		if filepath.IsAbs(dir) && runnable(filepath.Join(dir, name)) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not on PATH", ErrCommandNotFound, name)
}

func runnable(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// toolFolders lists what the programs of a PATH need beside the system's own
// folders: the installation round each bin folder, never a whole home.
func toolFolders(search, home string) []string {
	var out []string
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		out = append(out, dir)
		parent := filepath.Dir(dir)
		if parent == "/" || parent == home || filepath.Base(dir) != "bin" && filepath.Base(dir) != "shims" {
			continue
		}
		for _, sub := range []string{"bin", "lib", "lib64", "libexec", "include", "share", "shims", "versions", "pyvenv.cfg"} {
			out = append(out, filepath.Join(parent, sub))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
