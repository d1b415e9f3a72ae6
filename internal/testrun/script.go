package testrun

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

//go:embed script
var scripts embed.FS

// orderFD is where a script runner reads its order; record.cjs knows it.
const orderFD = 10

// scriptOrder is what record.cjs reads.
type scriptOrder struct {
	Nonce  string   `json:"nonce"`
	Canary string   `json:"canary"`
	Root   string   `json:"root"`
	Script string   `json:"script"`
	Names  []string `json:"names"`
	Tmp    string   `json:"tmp"`
}

func runScript(ctx context.Context, plan Plan, root string, opts Options) (ev run.Evidence, out []byte, err error) {
	temp, err := sandbox.MakeTemp(opts.Temp)
	if err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(temp)) }()
	var b [48]byte
	if _, err := rand.Read(b[:]); err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	order := scriptOrder{
		Nonce: hex.EncodeToString(b[:32]), Canary: "nexus" + hex.EncodeToString(b[32:]), Root: root,
		Script: plan.Tool.Script, Names: scriptNames(plan, root), Tmp: filepath.Join(temp, "tmp"),
	}
	if err := unpack(temp, order); err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	if err := linkModules(plan, root); err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	spec := opts.spec(plan, root, scriptArgv(plan, opts, temp, order))
	spec.Env = append([]string{"PATH=" + filepath.Dir(plan.Tool.Path) + ":" + plan.Search, "NO_COLOR=1", "CI=1"}, plan.Env...)
	spec.ReadOnly = append(slices.Clone(plan.Tool.ReadOnly), temp)
	spec.Writable = append(spec.Writable, order.Tmp)
	opts.protect(&spec)
	r, err := orderPipe(order)
	if err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	spec.ExtraFiles = []sandbox.ExtraFile{{File: r, FD: orderFD}}
	rec := record{}
	res, err := recording(ctx, spec, resultFD, func(in io.Reader) { rec = parseRecord(in, order.Nonce) })
	if err = errors.Join(err, r.Close()); err != nil {
		return ev, res.Output.Bytes(), fmt.Errorf("run tests: %w", err)
	}
	out = withoutLines(res.Output.Bytes(), order.Canary)
	ev = evidence(plan, opts, res, out)
	rec.into(&ev)
	ev.Declared = skipped(ev)
	// The planted tests make the status 1; what counts is that of the others.
	if ev.Completed && ev.Exit == 1 && !slices.ContainsFunc(sortedKeys(ev.Outcomes), func(id string) bool { return isRed(ev.Outcomes[id]) }) {
		ev.Exit = 0
	}
	ev.Lacks = append(ev.Lacks, plan.Runner+" cannot list tests without running their files: those that the base reported are expected")
	return ev, out, nil
}

// skipped lists the tests that skip themselves: in Go and JavaScript only a
// test holds what it takes to skip it.
func skipped(e run.Evidence) []string {
	return slices.DeleteFunc(sortedKeys(e.Outcomes), func(id string) bool { return e.Outcomes[id] != run.OutcomeSkipped })
}

// unpack writes our part of the runner, with the name of the planted test.
func unpack(temp string, order scriptOrder) error {
	if err := os.Mkdir(order.Tmp, 0o700); err != nil {
		return err
	}
	vitest, err := json.Marshal(filepath.Join(filepath.Dir(order.Script), "index.js"))
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("__CANARY__", order.Canary, "'__VITEST__'", string(vitest))
	return fs.WalkDir(scripts, "script", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := scripts.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(temp, path.Base(p)), []byte(fill.Replace(string(data))), 0o600)
	})
}

func scriptArgv(plan Plan, opts Options, temp string, order scriptOrder) []string {
	argv := []string{plan.Tool.Path}
	switch plan.Runner {
	case Jest:
		if slices.ContainsFunc(plan.Env, func(kv string) bool { return strings.Contains(kv, "experimental-vm-modules") }) {
			argv = append(argv, "--experimental-vm-modules")
		}
		return append(argv, filepath.Join(temp, "jest_runner.cjs"))
	case Vitest:
		return append(argv, filepath.Join(temp, "vitest_runner.mjs"))
	}
	argv = append(argv, "--import="+filepath.Join(temp, "node_plant.mjs"))
	argv = append(argv, plan.Args...)
	if slices.ContainsFunc(plan.Args, func(a string) bool { return strings.HasPrefix(a, "--test-name-pattern") }) {
		argv = append(argv, "--test-name-pattern="+order.Canary)
	}
	argv = append(argv, "--test", "--test-reporter="+filepath.Join(temp, "node_reporter.mjs"), "--test-reporter-destination=stdout")
	if opts.TestTimeout > 0 {
		argv = append(argv, fmt.Sprintf("--test-timeout=%d", opts.TestTimeout.Milliseconds()))
	}
	return append(argv, order.Names...)
}

// scriptNames are the files that were asked for, with globs as a shell would
// expand them.
func scriptNames(plan Plan, root string) []string {
	out := []string{}
	for _, name := range plan.Names {
		if within(plan.Root, name) {
			name = root + name[len(plan.Root):]
		}
		found, err := filepath.Glob(filepath.Join(root, name))
		if err != nil || len(found) == 0 || !strings.ContainsAny(name, "*?[") {
			out = append(out, name)
			continue
		}
		out = append(out, found...)
	}
	return out
}

// linkModules shows the project's installed packages in the copy. Packages
// that are links into the project itself lead into the copy.
func linkModules(plan Plan, root string) error {
	for _, m := range plan.Tool.Modules {
		dir := filepath.Join(root, m)
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		if err := linkFolder(plan.Root, root, m); err != nil {
			return err
		}
	}
	return nil
}

func linkFolder(origin, root, rel string) error {
	list, err := os.ReadDir(filepath.Join(origin, rel))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, rel), 0o755); err != nil { //nolint:gosec // as an installation would
		return err
	}
	for _, e := range list {
		p := filepath.Join(rel, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), "@") {
			if err := linkFolder(origin, root, p); err != nil {
				return err
			}
			continue
		}
		target := filepath.Join(origin, p)
		if at, err := filepath.EvalSymlinks(target); err == nil && within(origin, at) && !strings.Contains(at[len(origin):], "node_modules") {
			target = root + at[len(origin):]
		}
		if err := os.Symlink(target, filepath.Join(root, p)); err != nil {
			return err
		}
	}
	return nil
}

// orderPipe holds the order; it can be read once.
func orderPipe(order scriptOrder) (*os.File, error) {
	data, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	if len(data) > 48<<10 {
		return nil, errors.New("the test command names too many files")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data) // it fits the pipe, so nobody has to read yet
	return r, errors.Join(err, w.Close())
}
