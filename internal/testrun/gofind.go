package testrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/sandbox"
)

// ErrNoGo says that no Go toolchain can run the project's tests.
var ErrNoGo = errors.New("no usable Go toolchain")

// Tool is a toolchain that was asked where it lives.
type Tool struct {
	// Path is the program, Version what it says of itself.
	Path    string `json:"path"`
	Version string `json:"version"`
	// Env is what it needs of an environment, ReadOnly which folders.
	Env      []string `json:"env,omitempty"`
	ReadOnly []string `json:"read_only,omitempty"`
	// Script is the entry of a test runner that the project has installed.
	Script string `json:"script,omitempty"`
	// Modules are the folders with installed packages, relative to the project.
	Modules []string `json:"modules,omitempty"`
}

// goFlags are the flags of go test that leave a run what it is. The value says
// whether one takes an argument, and dropped whether ours replaces it.
var goFlags = map[string]struct{ value, dropped bool }{
	"race": {}, "msan": {}, "asan": {}, "trimpath": {}, "short": {}, "cover": {}, "fullpath": {}, "buildvcs": {}, "linkshared": {},
	"v": {dropped: true}, "x": {dropped: true}, "json": {dropped: true}, "failfast": {dropped: true}, "benchmem": {dropped: true},
	"count": {true, true}, "coverprofile": {true, true}, "p": {value: true}, "parallel": {value: true}, "cpu": {value: true},
	"tags": {value: true}, "ldflags": {value: true}, "gcflags": {value: true}, "asmflags": {value: true}, "mod": {value: true},
	"modfile": {value: true}, "run": {value: true}, "skip": {value: true}, "timeout": {value: true}, "covermode": {value: true},
	"coverpkg": {value: true}, "shuffle": {value: true}, "vet": {value: true},
}

// gotest understands `go test` with flags that it knows; -mod=mod is left out,
// because it would let a run rewrite go.mod.
func (a *asked) gotest(args []string) bool {
	a.runner = Go
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") {
			a.names = append(a.names, arg)
			continue
		}
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag, known := goFlags[strings.TrimPrefix(name, "test.")]
		if !known {
			return false
		}
		kept := "-" + strings.TrimPrefix(name, "test.")
		if flag.value && !joined {
			if i++; i == len(args) {
				return false
			}
			value, joined = args[i], true
		}
		if joined {
			kept += "=" + value
		}
		if !flag.dropped && kept != "-mod=mod" {
			a.args = append(a.args, kept)
		}
	}
	return true
}

// golang plans for a Go module.
func (s search) golang(ctx context.Context, want asked) (Plan, error) {
	tool, err := s.goTool(ctx)
	if err != nil {
		return Plan{}, err
	}
	names := want.names
	if len(names) == 0 {
		names = []string{"."}
		if want.runner == "" {
			names = []string{"./..."}
		}
	}
	return Plan{Runner: Go, Root: s.root, Tool: tool, Args: want.args, Names: names, Env: want.env, Search: s.path}, nil
}

// goTool asks the toolchain where its folders are.
func (s search) goTool(ctx context.Context) (*Tool, error) {
	var tried []string
	for _, p := range []string{s.onPath("go"), "/usr/local/go/bin/go", "/usr/lib/go/bin/go", filepath.Join(s.home, "go", "bin", "go")} {
		if !filepath.IsAbs(p) || !runnable(p) {
			continue
		}
		tool, err := s.askGo(ctx, p)
		if err == nil || errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrSetup) || ctx.Err() != nil {
			return tool, err
		}
		tried = append(tried, err.Error())
	}
	if len(tried) == 0 {
		return nil, fmt.Errorf("%w: go is not on PATH", ErrNoGo)
	}
	return nil, fmt.Errorf("%w: %s", ErrNoGo, strings.Join(tried, "; "))
}

func (s search) askGo(ctx context.Context, path string) (*Tool, error) {
	env := []string{"PATH=" + s.path, "HOME=" + s.home, "GOTOOLCHAIN=local", "GOFLAGS="}
	for _, k := range []string{"GOROOT", "GOPATH", "GOMODCACHE", "GOENV", "CGO_ENABLED", "CC", "CXX"} {
		if v := s.getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	var a struct{ GOROOT, GOMODCACHE, GOVERSION, CGO_ENABLED, CC, CXX string } //nolint:revive // the names of go env
	argv := []string{path, "env", "-json", "GOROOT", "GOMODCACHE", "GOVERSION", "CGO_ENABLED", "CC", "CXX"}
	out, err := s.ask(ctx, argv, env)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &a); err != nil || !filepath.IsAbs(a.GOROOT) {
		return nil, fmt.Errorf("%s did not say where it lives", path)
	}
	t := &Tool{Path: path, Version: a.GOVERSION, ReadOnly: []string{a.GOROOT}}
	if filepath.IsAbs(a.GOMODCACHE) {
		t.ReadOnly = append(t.ReadOnly, a.GOMODCACHE)
		t.Env = append(t.Env, "GOMODCACHE="+a.GOMODCACHE)
	}
	for k, v := range map[string]string{"GOROOT": a.GOROOT, "CGO_ENABLED": a.CGO_ENABLED, "CC": a.CC, "CXX": a.CXX} {
		if v != "" {
			t.Env = append(t.Env, k+"="+v)
		}
	}
	slices.Sort(t.Env)
	t.ReadOnly = slices.DeleteFunc(append(t.ReadOnly, toolFolders(s.path, s.home)...), func(p string) bool {
		return p == "/" || within(p, s.home) || within(p, s.root)
	})
	return t, nil
}

// ask runs a program of the toolchain in the sandbox, where it can read but
// neither write nor speak to anybody, and returns what it prints.
func (s search) ask(ctx context.Context, argv, env []string) (out []byte, err error) {
	dir, err := sandbox.MakeTemp("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(dir)) }()
	res, err := sandbox.Run(ctx, sandbox.Spec{Dir: dir, Argv: argv, Env: env, ReadOnly: s.around(argv[0]), Timeout: probeTimeout})
	if err != nil {
		return nil, err
	}
	out = bytes.TrimSpace(res.Output.Bytes())
	if res.Exit != 0 {
		return nil, fmt.Errorf("%s did not answer (exit %d): %s", argv[0], res.Exit, sandbox.Printable(out[:min(len(out), 200)]))
	}
	return out, nil
}

// hasModule reports whether the folder is a Go module or workspace.
func hasModule(root string) bool {
	return slices.ContainsFunc([]string{"go.mod", "go.work"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	})
}
