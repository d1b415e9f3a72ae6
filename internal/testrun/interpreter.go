package testrun

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/sandbox"
)

//go:embed probe.py
var probeSource string

// Environment variables that point to interpreters.
const (
	// EnvPython names an interpreter to prefer over those on PATH.
	EnvPython = "NEXUS_PYTHON"
	// EnvVenv names a virtual environment that has pytest.
	EnvVenv = "NEXUS_PYTEST_VENV"
)

// search is where to look; the fields are what the process's environment says.
type search struct {
	root   string
	home   string
	path   string
	getenv func(string) string
	self   string
}

// candidates lists the interpreters to ask, in order of preference: the
// project's own environments, what the environment names, PATH, pyenv, the
// system, and the environment that comes with the product.
func (s search) candidates() []string {
	var list []string
	add := func(p string) {
		if p != "" && runnable(p) && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	for _, venv := range []string{".venv", "venv", "env"} {
		add(filepath.Join(s.root, venv, "bin", "python"))
	}
	if venv := s.getenv("VIRTUAL_ENV"); venv != "" {
		add(filepath.Join(venv, "bin", "python"))
	}
	add(s.getenv(EnvPython))
	for _, name := range []string{"python3", "python"} {
		for _, dir := range filepath.SplitList(s.path) {
			if filepath.IsAbs(dir) {
				add(filepath.Join(dir, name))
			}
		}
	}
	for _, p := range s.pyenv() {
		add(p)
	}
	add("/usr/bin/python3")
	add("/usr/local/bin/python3")
	if venv := s.getenv(EnvVenv); venv != "" {
		add(filepath.Join(venv, "bin", "python"))
	}
	for _, dir := range []string{filepath.Dir(s.self), filepath.Dir(filepath.Dir(s.self))} {
		add(filepath.Join(dir, ".tools", "venv", "bin", "python"))
	}
	return list
}

func (s search) pyenvRoot() string {
	if root := s.getenv("PYENV_ROOT"); root != "" {
		return root
	}
	return filepath.Join(s.home, ".pyenv")
}

// around lists what a program may need to say what it is: the project, the
// installations on PATH, its own, under the name that it is called by and under
// its real one, and where version managers and users keep theirs.
func (s search) around(program string) []string {
	out := append(toolFolders(s.path, s.home), s.root, s.pyenvRoot(),
		filepath.Join(s.home, ".local", "lib"), filepath.Join(s.home, ".config", "go"))
	at, err := filepath.EvalSymlinks(program)
	if err != nil {
		at = program
	}
	for _, p := range []string{program, at, s.getenv("VIRTUAL_ENV"), s.getenv("GOROOT")} {
		for range 2 { // its folder, and the one round bin
			if p = filepath.Dir(p); filepath.IsAbs(p) {
				out = append(out, p)
			}
		}
	}
	out = slices.DeleteFunc(append(out, s.getenv("VIRTUAL_ENV"), s.getenv("GOROOT")), func(p string) bool {
		return !filepath.IsAbs(p) || p == "/" || within(p, s.home)
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// pyenv lists its versions, newest first.
func (s search) pyenv() []string {
	root := s.pyenvRoot()
	list, err := filepath.Glob(filepath.Join(root, "versions", "3.*", "bin", "python3"))
	if err != nil {
		return nil
	}
	slices.SortFunc(list, func(a, b string) int { return -slices.Compare(numbers(a), numbers(b)) })
	return list
}

func numbers(path string) []int {
	var out []int
	version := filepath.Base(filepath.Dir(filepath.Dir(path)))
	for _, f := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

// need is what one test file needs.
type need struct {
	// Why says what only pytest can give; empty when nothing.
	Why   string `json:"why"`
	Cases int    `json:"cases"`
	Plain int    `json:"plain"`
}

// answer is what probe.py prints.
type answer struct {
	Executable string          `json:"executable"`
	Version    string          `json:"version"`
	Prefixes   []string        `json:"prefixes"`
	Path       []string        `json:"path"`
	Editable   []string        `json:"editable"`
	Pytest     string          `json:"pytest"`
	UserSite   string          `json:"usersite"`
	Problem    string          `json:"problem"`
	Files      map[string]need `json:"files"`
}

const probeTimeout = 30 * time.Second

// probe asks an interpreter what it is. It may be any program, so it is asked
// in the sandbox: it can read, but neither write nor speak to anybody.
func (s search) probe(ctx context.Context, python string, files []string) (a answer, err error) {
	dir, err := sandbox.MakeTemp("")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(dir)) }()
	question, err := json.Marshal(map[string]any{"root": s.root, "home": s.home, "files": files})
	if err != nil {
		return a, err
	}
	res, err := sandbox.Run(ctx, sandbox.Spec{
		Dir: dir, Argv: []string{python, "-s", "-c", probeSource}, Stdin: question, ReadOnly: s.around(python),
		Env:     []string{"PATH=" + s.path, "PYENV_DIR=" + s.root, "PYTHONSAFEPATH=1", "PYTHONPYCACHEPREFIX="},
		Timeout: probeTimeout,
	})
	if err != nil {
		return a, err
	}
	out := bytes.TrimSpace(res.Output.Bytes())
	last := out[bytes.LastIndexByte(out, '\n')+1:]
	if res.Exit != 0 || json.Unmarshal(last, &a) != nil || !filepath.IsAbs(a.Executable) {
		return a, fmt.Errorf("it did not answer (exit %d): %s", res.Exit, sandbox.Printable(last[:min(len(last), 200)]))
	}
	return a, nil
}

// interpreter turns an answer into what a run needs.
func (s search) interpreter(a answer) *Interpreter {
	in := &Interpreter{Path: a.Executable, Version: a.Version, Pytest: a.Pytest, UserSite: a.UserSite}
	add := func(p string) {
		if p == "" || p == "/" || within(p, s.home) || within(p, s.root) {
			// Never a folder that holds the home or the whole project.
			return
		}
		in.ReadOnly = append(in.ReadOnly, p)
	}
	for _, prefix := range a.Prefixes {
		for _, sub := range []string{"bin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg"} {
			add(filepath.Join(prefix, sub))
		}
		if within(s.root, prefix) && prefix != s.root {
			in.Keep = append(in.Keep, prefix)
		}
	}
	add(a.UserSite)
	for _, p := range slices.Concat(a.Path, a.Editable, []string{filepath.Dir(a.Executable)}) {
		kept := slices.ContainsFunc(in.Keep, func(k string) bool { return within(k, p) })
		if !within(s.root, p) || kept {
			add(p)
		}
	}
	if target, err := filepath.EvalSymlinks(a.Executable); err == nil {
		add(target)
	}
	slices.Sort(in.ReadOnly)
	in.ReadOnly = slices.Compact(in.ReadOnly)
	return in
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	return dir != "" && (dir == path || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

var errTooOld = errors.New("older than Python 3.6")

func (a answer) tooOld() bool { return olderThan(a.Version, 6) }

// Older reports whether the interpreter is older than Python 3.minor.
func (i *Interpreter) Older(minor int) bool { return olderThan(i.Version, minor) }

func olderThan(version string, minor int) bool {
	v := strings.Split(version, ".")
	if len(v) < 2 {
		return true
	}
	first, err1 := strconv.Atoi(v[0])
	second, err2 := strconv.Atoi(v[1])
	return err1 != nil || err2 != nil || first < 3 || first == 3 && second < minor
}
