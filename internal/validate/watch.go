package validate

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Watch lists the constructs of a changed source file that only a person may
// approve: what after uses more often than old, nil for a new file, and what
// could deceive a test runner. It knows Python, Go, JavaScript and TypeScript;
// other files have none. An error means that a Python file can't be judged,
// and is as good a reason to ask a person as a construct.
func (v *Validator) Watch(ctx context.Context, path string, old, after []byte) ([]string, error) {
	if !isPython(path) {
		return watchedText(path, old, after), nil
	}
	r, err := v.worker.Analyse(ctx, old, after)
	switch {
	case err == nil && r.Pathological:
		err = errPathological
	case err == nil && !r.OK && r.Error != nil:
		err = fmt.Errorf("line %d: %s", r.Error.Line, r.Error.Msg)
	}
	if err != nil {
		return nil, fmt.Errorf("%s can't be checked: %w", path, err)
	}
	return newUses(path, r.Watched), nil
}

// IsTest reports whether a path is, by its name, a test, a part of one, or
// configures the test runner.
func IsTest(path string) bool {
	if isTestPath(path) {
		return true
	}
	low := strings.ToLower(path)
	w, ok := protectedName(baseOf(low))
	if !ok {
		w, ok = runnerPath(low)
	}
	return ok && w == whyRunner
}

func newUses(path string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, path+": new use of "+name)
	}
	return out
}

// watchedText compares the counts of both sides.
func watchedText(path string, old, after []byte) []string {
	count := countScript
	low := strings.ToLower(path)
	switch ext := extOf(path); {
	case baseOf(low) == "go.mod" || baseOf(low) == "go.work":
		count = countReplacements
	case ext == ".go" && (strings.HasPrefix(low, "vendor/") || strings.Contains(low, "/vendor/")):
		return []string{path + ": changes vendored code"}
	case ext == ".go":
		count = countGo
	case slices.Contains(scriptExts, ext):
	default:
		return nil
	}
	before, now := count(old), count(after)
	var names []string
	for name, n := range now {
		if n > before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return newUses(path, names)
}

// watchedImports are Go packages, watchedGo their functions, with which code
// ends its process, reads how it was started, or speaks for the runner.
var (
	watchedImports = []string{"syscall", "unsafe", "testing", "plugin", "golang.org/x/sys/unix", "runtime/debug", "C"}
	watchedGo      = []string{
		"os.Exit", "os.Args", "os.Stdout", "os.NewFile", "os.StartProcess", "flag.Set", "flag.Lookup", "flag.CommandLine",
		"flag.VisitAll", "runtime.Goexit", "runtime.Callers", "runtime.Caller", "runtime.Stack", "exec.Command", "exec.CommandContext",
	}
	goWords = regexp.MustCompile(`//go:linkname|--- (?:PASS|FAIL|SKIP)|\\x16|/proc/`)
)

var (
	scriptExts  = []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx"}
	replacement = regexp.MustCompile(`=>|(?m)^\s*(?:replace|toolchain|use)\b`)
)

// countReplacements counts what puts other code in the place of a module.
func countReplacements(src []byte) map[string]int {
	return map[string]int{"replace": len(replacement.FindAll(src, -1))}
}

// countGo counts by syntax; of a file that does not parse it counts what does.
func countGo(src []byte) map[string]int {
	out := map[string]int{}
	for _, w := range goWords.FindAllString(string(src), -1) {
		out[w]++
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if f == nil {
		return out
	}
	if err != nil && len(f.Decls) == 0 {
		return out
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportSpec:
			if p, err := strconv.Unquote(x.Path.Value); err == nil && (slices.Contains(watchedImports, p) || x.Name != nil && x.Name.Name == ".") {
				out["import "+p]++
			}
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok && slices.Contains(watchedGo, id.Name+"."+x.Sel.Name) {
				out[id.Name+"."+x.Sel.Name]++
			}
		}
		return true
	})
	return out
}

// scriptWords are the ways of a script to the same ends; comments and strings
// count too, because scripts name what they load by strings.
var scriptWords = regexp.MustCompile(`process\s*(?:\.|\?\.|\[)\s*['"]?(?:exit|reallyExit|exitCode|kill|abort|binding|execArgv|argv|_\w+|on|once|emit\w*|stdout|send|dlopen)\b` +
	`|\bnode:(?:test|assert|vm|inspector|worker_threads|child_process|module|v8)\b|['"](?:assert|vm|inspector|worker_threads|child_process|module|v8)(?:/\w+)?['"]` +
	`|\b(?:asymmetricMatch|globalThis|__proto__|setPrototypeOf|require\s*\.\s*cache|_load|_extensions|toPrimitive|valueOf)\b` +
	`|\bnew\s+(?:Proxy|Function)\b|\beval\s*\(|\.\s*prototype\s*[.[]|\b(?:Object|Array|Number|String|Math|JSON|Reflect|Promise|Error)\s*\.\s*\w+\s*=[^=]` +
	`|\b(?:defineProperty|defineProperties)\b|/proc/|['"](?:@?vitest|@?jest|chai|mocha)\b|\bexpect\b`)

func countScript(src []byte) map[string]int {
	out := map[string]int{}
	for _, w := range scriptWords.FindAllString(string(src), -1) {
		out[strings.Join(strings.Fields(w), "")]++
	}
	return out
}
