package testrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"nexuscore.dev/nexus/internal/sandbox"
)

// Find says how the project in dir is tested. A testCommand decides alone:
// the runners of this package are recognised and run test by test, anything
// else by its exit status. Without one the project's own files decide. Errors
// wrap ErrNoTests, ErrNoInterpreter, ErrNoGo, ErrNoNode, ErrCommandNotFound,
// ErrTestCommand, or those of the sandbox, in which every interpreter is asked.
func Find(ctx context.Context, dir, testCommand string) (Plan, error) {
	s, err := newSearch(dir)
	if err != nil {
		return Plan{}, err
	}
	return s.find(ctx, testCommand)
}

// FindPython says which interpreter the project in dir runs under: the one of
// its tests, or where it has none the first that answers. Errors wrap
// ErrNoInterpreter or those of the sandbox.
func FindPython(ctx context.Context, dir string) (*Interpreter, error) {
	s, err := newSearch(dir)
	if err != nil {
		return nil, err
	}
	if plan, err := s.find(ctx, ""); err == nil && plan.Python != nil {
		return plan.Python, nil
	}
	var tried error
	for _, python := range s.candidates() {
		a, err := s.probe(ctx, python, nil)
		if err == nil && a.tooOld() {
			err = errTooOld
		}
		if err == nil {
			return s.interpreter(a), nil
		}
		tried = errors.Join(tried, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrNoInterpreter, tried)
}

func newSearch(dir string) (search, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return search{}, fmt.Errorf("find tests: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return search{}, fmt.Errorf("find tests: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	return search{root: root, home: home, path: os.Getenv("PATH"), getenv: os.Getenv, self: self}, nil
}

func (s search) find(ctx context.Context, testCommand string) (Plan, error) {
	want := asked{}
	if strings.TrimSpace(testCommand) != "" {
		var err error
		if want, err = understand(testCommand); err != nil {
			return Plan{}, err
		}
	}
	switch want.runner {
	case Command:
		return s.command(want)
	case Go:
		return s.golang(ctx, want)
	case Node, Jest, Vitest, scriptOfPackage:
		return s.script(ctx, want)
	}
	has, err := scan(s.root)
	if err != nil {
		return Plan{}, err
	}
	if want.runner != "" {
		return s.python(ctx, want, has)
	}
	return s.guess(ctx, has)
}

// guess decides by the project's own files: a configuration of pytest, else
// the language that has the most test files.
func (s search) guess(ctx context.Context, has found) (Plan, error) {
	goTests, scripts := 0, 0
	if hasModule(s.root) {
		goTests = has.goTests
	}
	packed := s.packed()
	if packed.runner != "" {
		scripts = max(1, has.scripts)
	}
	switch {
	case has.pytest || len(has.files) > 0 && len(has.files) >= max(goTests, scripts):
		return s.python(ctx, asked{}, has)
	case goTests > 0 && goTests >= scripts:
		return s.golang(ctx, asked{})
	case scripts > 0:
		return s.script(ctx, packed)
	}
	return Plan{}, fmt.Errorf("%w in %s: no test_*.py, *_test.py or pytest configuration, no go.mod with *_test.go, no test script in package.json; name the command with --test",
		ErrNoTests, s.root)
}

func (s search) command(want asked) (Plan, error) {
	if err := program(want.args[0], s.root, s.path); err != nil {
		return Plan{}, err
	}
	return Plan{
		Runner: Command, Root: s.root, Args: want.args, Env: want.env, Weak: true,
		Search: s.path, ReadOnly: toolFolders(s.path, s.home),
		Note: "known by its exit status alone: weak evidence",
	}, nil
}

// python asks the interpreters, in order, until one can run the tests.
func (s search) python(ctx context.Context, want asked, has found) (Plan, error) {
	list := s.candidates()
	if want.python != "" {
		p := want.python
		if !strings.Contains(p, "/") {
			p = s.onPath(p)
		} else if !filepath.IsAbs(p) {
			p = filepath.Join(s.root, p)
		}
		if !runnable(p) {
			return Plan{}, fmt.Errorf("%w: %s", ErrCommandNotFound, want.python)
		}
		list = []string{p}
	}
	var tried []string
	var first *answer
	for _, python := range list {
		a, err := s.probe(ctx, python, has.files)
		switch {
		case ctx.Err() != nil:
			return Plan{}, ctx.Err()
		case errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrSetup):
			return Plan{}, err
		case err != nil:
			tried = append(tried, fmt.Sprintf("%s: %v", python, err))
			continue
		case a.tooOld():
			tried = append(tried, fmt.Sprintf("%s: %v", python, errTooOld))
			continue
		case want.runner == Unittest:
			return s.unittest(want, a), nil
		case want.runner == "" && !has.pytest && unseen(a.Files):
			plan := s.unittest(want, a)
			plan.Note = "no file is named as pytest wants it (test_*.py, *_test.py), so unittest runs the tests"
			return plan, nil
		case a.Pytest != "":
			return Plan{Runner: Pytest, Root: s.root, Python: s.interpreter(a), Args: want.args, Env: want.env}, nil
		}
		tried = append(tried, fmt.Sprintf("%s (Python %s): %s", python, a.Version, a.Problem))
		if first == nil {
			first = &a
		}
		if want.runner == "" && !has.pytest && onlyCases(a.Files) {
			return s.unittest(want, a), nil
		}
	}
	return s.without(want, first, tried)
}

func (s search) onPath(name string) string {
	for _, dir := range filepath.SplitList(s.path) {
		if p := filepath.Join(dir, name); filepath.IsAbs(dir) && runnable(p) {
			return p
		}
	}
	return name
}

// without plans for a machine that has no pytest: the unittest runner, when
// the tests need nothing that only pytest can give.
func (s search) without(want asked, first *answer, tried []string) (Plan, error) {
	list := "; tried: " + strings.Join(tried, "; ")
	if len(tried) == 0 {
		list = "; none was found"
	}
	if first == nil {
		return Plan{}, fmt.Errorf("%w%s", ErrNoInterpreter, list)
	}
	if len(want.args) > 0 {
		return Plan{}, fmt.Errorf("%w: pytest is asked for with arguments, and no interpreter has it%s", ErrNoInterpreter, list)
	}
	tests := 0
	for _, name := range sortedKeys(first.Files) {
		n := first.Files[name]
		if n.Why != "" {
			return Plan{}, fmt.Errorf("%w: %s %s, and no interpreter has pytest%s", ErrNoInterpreter, name, n.Why, list)
		}
		tests += n.Cases + n.Plain
	}
	if tests == 0 {
		return Plan{}, fmt.Errorf("%w that can be run without pytest%s", ErrNoTests, list)
	}
	plan := s.unittest(want, *first)
	plan.Plain, plan.Note = true, "no interpreter has pytest; the tests need nothing of it, so our own unittest runner runs them"
	return plan, nil
}

func (s search) unittest(want asked, a answer) Plan {
	patterns := want.patterns
	if len(patterns) == 0 {
		patterns = []string{"test*.py", "*_test.py"}
	}
	return Plan{
		Runner: Unittest, Root: s.root, Python: s.interpreter(a), Args: want.args, Env: want.env,
		Names: want.names, Patterns: patterns,
	}
}

// unseen reports whether pytest, left to its defaults, would look at none of
// the test files while unittest finds tests in them.
func unseen(files map[string]need) bool {
	for name, n := range files {
		if pytestFile(path.Base(name)) || n.Why != "" {
			return false
		}
	}
	return hasCases(files)
}

// onlyCases reports whether every test file holds TestCase classes only.
func onlyCases(files map[string]need) bool {
	for _, n := range files {
		if n.Why != "" || n.Plain > 0 {
			return false
		}
	}
	return hasCases(files)
}

func hasCases(files map[string]need) bool {
	for _, n := range files {
		if n.Cases > 0 {
			return true
		}
	}
	return false
}
