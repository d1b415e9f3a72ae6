// Package nexus_test holds the rules that the tree as a whole keeps: who may
// import whom, how long a file may be, what its text may not contain. It reads
// the files itself, because go test would serve the answer of a child process
// such as go list from its cache after the tree has changed.
package nexus_test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "nexuscore.dev/nexus"

// shelves is the layer rule, bottom first: a package imports from shelves below
// its own, never from its own and never from above. What lies in a folder below
// a listed package is part of it. A test may reach across its own shelf, and a
// test helper package (x/xtest) counts as a test: only tests import it.
// Packages that do not exist yet keep their place.
var shelves = []shelf{
	{"0 crash points", []string{"internal/fault"}},
	{"0 decide, lower shelf", []string{"internal/failure", "internal/patch"}},
	{"0 decide, upper shelf", []string{"internal/run"}},
	{"1 speak, lower shelf", []string{"schemas"}},
	{"1 speak, upper shelf", []string{"internal/wire"}},
	{"2 act", []string{"internal/bus", "internal/sandbox", "internal/rollback", "internal/kb", "internal/llm"}},
	{"3 judge", []string{"internal/validate", "internal/testrun", "internal/repair", "agentkit"}},
	{"4 work", []string{"internal/agents", "internal/archive", "internal/gateway"}},
	{"4 one process's part", []string{"internal/node"}},
	{"5 wire up", []string{"cmd/agents", "cmd/corpus", "cmd/gateway", "cmd/nexus"}},
}

// pure are the packages that only decide: no file, socket, clock, chance or
// context. They may name types and errors of the packages below (an error is
// classified by its type) but not call into them.
var pure = []string{"internal/failure", "internal/patch", "internal/run"}

// impure are the standard library's doors to the outside.
var impure = []string{
	"context", "crypto/rand", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os",
	"os/exec", "os/signal", "os/user", "runtime", "syscall",
}

// askers are functions of impure packages that look at a value and at nothing else.
var askers = []string{
	"http.StatusText", "net.JoinHostPort", "net.ParseIP", "net.SplitHostPort", "os.IsExist", "os.IsNotExist",
	"os.IsPermission", "os.IsTimeout",
}

// clock are the functions of package time that read or wait for it.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

type shelf struct {
	name     string
	packages []string
}

func TestImportsGoDownwards(t *testing.T) {
	t.Parallel()
	requireNone(t, violations(sources(t), upwards))
}

func TestOnlyTheBusSpeaksNATS(t *testing.T) {
	t.Parallel()
	requireNone(t, violations(sources(t), nats))
}

func TestDecidingIsPure(t *testing.T) {
	t.Parallel()
	requireNone(t, violations(sources(t), impurity))
}

// upwards says which imports of f break the layer rule.
func upwards(f source) []string {
	home, from, listed := place(f.dir)
	if !listed {
		if f.dir == "." && f.test {
			return nil // the rules of the whole tree, in this folder
		}
		return []string{fmt.Sprintf(
			"package %s has no shelf: give it a place in the table of layers_test.go, as low as its imports allow", f.dir)}
	}
	var found []string
	for _, target := range f.imports() {
		dir, inside := strings.CutPrefix(target, module+"/")
		if !inside {
			continue
		}
		family, to, known := place(dir)
		switch {
		case !known:
			found = append(found, fmt.Sprintf("imports %s, which has no shelf", dir))
		case helper(dir) && !f.test:
			found = append(found, fmt.Sprintf("imports %s, which is for tests only", dir))
		case family == home || to < from || (f.test && to == from):
		default:
			found = append(found, fmt.Sprintf("imports %s (%s) from %s (%s): imports go downwards only; "+
				"take a small interface beside its consumer", dir, shelves[to].name, f.dir, shelves[from].name))
		}
	}
	return found
}

// nats says which imports of f only internal/bus may have.
func nats(f source) []string {
	if home, _, _ := place(f.dir); f.test || home == "internal/bus" {
		return nil
	}
	var found []string
	for _, target := range f.imports() {
		if strings.HasPrefix(target, "github.com/nats-io/") {
			found = append(found, fmt.Sprintf("imports %s: only internal/bus speaks NATS", target))
		}
	}
	return found
}

// impurity says where f, a file of a pure package, reaches for the outside.
func impurity(f source) []string {
	if f.test || !slices.Contains(pure, f.dir) {
		return nil
	}
	names := f.names()
	var found []string
	report := func(node ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("line %d: ", f.line(node))+fmt.Sprintf(format, args...))
	}
	ast.Inspect(f.file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			target, name := selected(node.Fun, names)
			if slices.Contains(impure, target) && !slices.Contains(askers, path.Base(target)+"."+name) {
				report(node, "calls %s.%s, but %s only decides", target, name, f.dir)
			}
		case *ast.SelectorExpr:
			target, name := selected(node, names)
			if target == "time" && slices.Contains(clock, name) {
				report(node, "reads the clock (time.%s); time comes in through events", name)
			}
			if target == "context" && name == "Context" {
				report(node, "takes a context; a decision neither waits nor is cancelled")
			}
		}
		return true
	})
	return found
}

// place returns the listed package that dir belongs to and its shelf.
func place(dir string) (home string, number int, listed bool) {
	for i, s := range shelves {
		for _, p := range s.packages {
			if dir == p || strings.HasPrefix(dir, p+"/") {
				return p, i, true
			}
		}
	}
	return "", 0, false
}

// helper reports whether dir is a test helper package such as internal/bus/bustest.
func helper(dir string) bool {
	parent, name := path.Split(dir)
	return parent != "" && name == path.Base(parent)+"test"
}

// selected resolves package.Name: the import path of the package, or nothing
// when the expression is something else.
func selected(e ast.Expr, names map[string]string) (target, name string) {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return names[x.Name], sel.Sel.Name
		}
	}
	return "", ""
}

func TestTheRulesFindWhatTheyForbid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     func(source) []string
		file     string
		imports  string
		body     string
		sentence string // "" when the file is fine
	}{
		{upwards, "internal/bus/a.go", module + "/internal/run", "", ""},
		{upwards, "internal/run/a.go", module + "/internal/bus", "", "downwards only"},
		{upwards, "internal/run/a_test.go", module + "/internal/bus", "", "downwards only"},
		{upwards, "internal/bus/a.go", module + "/internal/rollback", "", "downwards only"},
		{upwards, "internal/bus/a_test.go", module + "/internal/rollback", "", ""},
		{upwards, "internal/bus/store/a.go", module + "/internal/bus", "", ""},
		{upwards, "internal/bus/store/a.go", module + "/internal/kb", "", "downwards only"},
		{upwards, "internal/bus/a.go", module + "/internal/llm/llmtest", "", "for tests only"},
		{upwards, "internal/bus/a_test.go", module + "/internal/llm/llmtest", "", ""},
		{upwards, "internal/bus/bustest/a.go", module + "/internal/llm/llmtest", "", ""},
		{upwards, "internal/testrun/a.go", module + "/internal/run", "", ""},
		{upwards, "internal/busy/a.go", "fmt", "", "has no shelf"},
		{upwards, "cmd/nexus/a.go", module + "/internal/busy", "", "has no shelf"},
		{nats, "internal/bus/store/a.go", "github.com/nats-io/nats.go", "", ""},
		{nats, "internal/agents/a.go", "github.com/nats-io/nats.go/jetstream", "", "only internal/bus"},
		{nats, "internal/agents/a_test.go", "github.com/nats-io/nats.go", "", ""},
		{impurity, "internal/run/a.go", "time", "const d = 3 * time.Second", ""},
		{impurity, "internal/run/a.go", "time", "var now = time.Now", "reads the clock"},
		{impurity, "internal/run/a.go", "os", "var b, err = os.ReadFile(`x`)", "only decides"},
		{impurity, "internal/failure/a.go", "os", "var err = os.ErrNotExist; var is = os.IsTimeout(err)", ""},
		{impurity, "internal/failure/a.go", "context", "func f(ctx context.Context) {}", "takes a context"},
		{impurity, "internal/bus/a.go", "os", "var b, err = os.ReadFile(`x`)", ""},
	} {
		text := fmt.Sprintf("package p\nimport %q\n%s\n", c.imports, c.body)
		found := c.rule(parse(t, c.file, text))
		if c.sentence == "" {
			require.Empty(t, found, "%s importing %s", c.file, c.imports)
			continue
		}
		require.Len(t, found, 1, "%s importing %s", c.file, c.imports)
		require.Contains(t, found[0], c.sentence)
	}
}
