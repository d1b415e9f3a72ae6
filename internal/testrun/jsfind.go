package testrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/sandbox"
)

// ErrNoNode says that no Node.js can run the project's tests.
var ErrNoNode = errors.New("no usable Node.js")

// packed is what the project's package.json asks for: its test script, or node
// --test when it names none. Its runner is empty where there is no package.json.
func (s search) packed() asked {
	data, err := os.ReadFile(filepath.Join(s.root, "package.json"))
	if err != nil {
		return asked{}
	}
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return asked{}
	}
	text := strings.TrimSpace(p.Scripts["test"])
	if text == "" || strings.Contains(text, "no test specified") {
		return asked{runner: Node}
	}
	a, err := understand(text)
	if err != nil || a.runner == Command {
		return asked{runner: Command, args: []string{"/bin/sh", "-c", text}}
	}
	return a
}

// understandScript recognises node --test, jest and vitest, also through npx
// and as the test script of package.json.
func (a *asked) understandScript(list []string) bool {
	for len(list) > 0 && (list[0] == "npx" || list[0] == "cross-env" || list[0] == "--no-install" || list[0] == "-y" || assignment.MatchString(list[0])) {
		if assignment.MatchString(list[0]) {
			a.env = append(a.env, list[0])
		}
		list = list[1:]
	}
	if len(list) == 0 {
		return false
	}
	switch rest := list[1:]; list[0] {
	case "npm", "yarn", "pnpm":
		line := strings.Join(rest, " ")
		a.runner = scriptOfPackage
		return slices.Contains([]string{"test", "t", "run test"}, line)
	case "node":
		return slices.Contains(rest, "--test") && a.nodeFlags(rest)
	case "jest":
		a.runner = Jest
		return a.plainWords(rest, []string{"--ci", "--verbose", "--silent", "--no-cache", "--passWithNoTests", "--runInBand", "-i"})
	case "vitest":
		a.runner = Vitest
		if len(rest) > 0 && rest[0] == "run" {
			rest = rest[1:]
		}
		return a.plainWords(rest, []string{"--run", "--silent", "--passWithNoTests"})
	}
	return false
}

// scriptOfPackage stands for the test script of package.json until it is read.
const scriptOfPackage = "package.json"

// plainWords takes file names; flags that only change what is printed are left
// out, any other one is not understood.
func (a *asked) plainWords(words, quiet []string) bool {
	for _, w := range words {
		switch {
		case slices.Contains(quiet, w):
		case strings.HasPrefix(w, "-"):
			return false
		default:
			a.names = append(a.names, w)
		}
	}
	return true
}

// nodeValued are the flags of node that take an argument, nodePlain those that
// do not; a reporter is replaced by ours.
var (
	nodeValued = []string{
		"--import", "--require", "-r", "--loader", "--experimental-loader", "--test-concurrency", "--test-timeout",
		"--test-name-pattern", "--test-skip-pattern", "--conditions", "-C", "--env-file",
	}
	nodePlain = []string{"--test-only", "--experimental-strip-types", "--no-warnings", "--enable-source-maps", "--experimental-vm-modules", "--test-force-exit"}
)

func (a *asked) nodeFlags(words []string) bool {
	a.runner = Node
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, _, joined := strings.Cut(w, "=")
		switch {
		case w == "--test":
		case strings.HasPrefix(name, "--test-reporter"):
			if !joined {
				i++
			}
		case slices.Contains(nodePlain, w):
			a.args = append(a.args, w)
		case slices.Contains(nodeValued, name):
			a.args = append(a.args, w)
			if i++; joined {
				i--
			} else if i < len(words) {
				a.args = append(a.args, words[i])
			}
		case strings.HasPrefix(w, "-"):
			return false
		default:
			a.names = append(a.names, w)
		}
	}
	return true
}

// script plans for a project in JavaScript or TypeScript.
func (s search) script(ctx context.Context, want asked) (Plan, error) {
	if want.runner == scriptOfPackage {
		env := want.env
		if want = s.packed(); want.runner == "" {
			return Plan{}, fmt.Errorf("%w: %s has no package.json that can be read", ErrTestCommand, s.root)
		}
		want.env = append(env, want.env...)
	}
	if want.runner == Command {
		return s.command(want)
	}
	entry := ""
	if name := map[string]string{Jest: "jest/bin/jest.js", Vitest: "vitest/dist/node.js"}[want.runner]; name != "" {
		entry = filepath.Join(s.root, "node_modules", filepath.FromSlash(name))
		if _, err := os.Stat(entry); err != nil {
			return Plan{}, fmt.Errorf("%w: %s is not installed in node_modules: install the project's packages first", ErrCommandNotFound, want.runner)
		}
	}
	tool, err := s.askNode(ctx)
	if err != nil {
		return Plan{}, err
	}
	tool.Script, tool.Modules = entry, modules(s.root)
	for _, m := range tool.Modules {
		tool.ReadOnly = append(tool.ReadOnly, filepath.Join(s.root, m))
	}
	return Plan{Runner: want.runner, Root: s.root, Tool: tool, Args: want.args, Names: want.names, Env: want.env, Search: s.path}, nil
}

func (s search) askNode(ctx context.Context) (*Tool, error) {
	path := s.onPath("node")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w: node is not on PATH", ErrNoNode)
	}
	env := []string{"PATH=" + s.path, "HOME=" + s.home}
	out, err := s.ask(ctx, []string{path, "-p", "JSON.stringify([process.execPath, process.versions.node])"}, env)
	if errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrSetup) || ctx.Err() != nil {
		return nil, err
	}
	var a []string
	if err != nil || json.Unmarshal(out, &a) != nil || len(a) != 2 || !filepath.IsAbs(a[0]) {
		return nil, fmt.Errorf("%w: %s did not say what it is: %w", ErrNoNode, path, err)
	}
	if n := numbers(filepath.Join(a[1], "bin", "node")); len(n) == 0 || n[0] < 20 {
		return nil, fmt.Errorf("%w: Node %s is older than 20", ErrNoNode, a[1])
	}
	return &Tool{Path: a[0], Version: a[1], ReadOnly: append(toolFolders(s.path, s.home), a[0])}, nil
}

// modules finds the folders with installed packages: the project's own, and
// those of its workspaces.
func modules(root string) []string {
	var out []string
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not used
		}
		rel, relErr := filepath.Rel(root, p)
		switch {
		case relErr != nil:
			return fs.SkipDir
		case d.Name() == "node_modules":
			out = append(out, rel)
			return fs.SkipDir
		case p != root && strings.HasPrefix(d.Name(), "."), strings.Count(rel, string(filepath.Separator)) >= 3:
			return fs.SkipDir
		}
		return nil
	})
	return out
}
