package validate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"sort"
	"strings"

	"nexuscore.dev/nexus/internal/patch"
)

// The bounds of the structure gate.
const (
	// minDeleted statements must be gone from a function with nothing in
	// their place, and at least a third of it, before that is suspicious.
	minDeleted = 3
	// A file without a parser of ours shrinks when it had minShrink lines of
	// code and keeps fewer than half of them.
	minShrink = 20
)

// structure refuses candidates that lose definitions which the task did not
// name, or statements of a function that survives.
func (c *check) structure() *refusal {
	for _, f := range c.files {
		if r := c.structureOf(f); r != nil {
			return r
		}
	}
	return nil
}

func (c *check) structureOf(f *file) *refusal {
	if f.Op == patch.OpDelete {
		return c.deleted(f)
	}
	if f.python != nil {
		c.tripwires = append(c.tripwires, newUses(f.Path, f.python.Watched)...)
		if f.python.Error != nil {
			c.tripwires = append(c.tripwires, f.Path+": does not parse, so that nobody can see what it newly uses")
		}
	} else {
		c.tripwires = append(c.tripwires, watchedText(f.Path, f.Old, f.New)...)
	}
	if f.Op != patch.OpModify {
		return nil
	}
	if f.python != nil && f.syntax.old == nil && f.syntax.err == nil {
		if r := c.lostPython(f); r != nil {
			return r
		}
		return f.gutted()
	}
	if r := c.lostNames(f, definitions(f.Path, f.Old), definitions(f.Path, f.New)); r != nil {
		return r
	}
	return f.shrunk()
}

// deleted refuses a file that goes although the task does not name it. A moved
// file is not deleted.
func (c *check) deleted(f *file) *refusal {
	for _, g := range c.files {
		if g.From == f.Path {
			return nil
		}
	}
	if c.named(f.Path) || c.named(strings.TrimSuffix(baseOf(f.Path), extOf(f.Path))) {
		return nil
	}
	return refuse(GateStructure, "file_deleted", "%s would be deleted, and the task does not ask for that", f.Path)
}

func baseOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// named says whether the task names something as a whole word.
func (c *check) named(name string) bool {
	if name == "" || c.in.Task == "" {
		return false
	}
	re, err := regexp.Compile(`(^|[^\w])` + regexp.QuoteMeta(name) + `($|[^\w])`)
	return err == nil && re.MatchString(c.in.Task)
}

func (c *check) lostPython(f *file) *refusal {
	var lost []string
	for _, d := range f.python.Lost {
		if len(d) > 0 {
			lost = append(lost, fmt.Sprint(d[0]))
		}
	}
	if r := c.refuseLost(f, lost); r != nil {
		return r
	}
	for _, d := range f.python.LostNames {
		if len(d) < 3 {
			continue
		}
		name := fmt.Sprint(d[0])
		if used, ok := d[2].(bool); ok && used && !c.named(name) {
			return refuse(GateStructure, "lost_name", "%s no longer defines %s, which it still uses", f.Path, name)
		}
	}
	return nil
}

func (c *check) refuseLost(f *file, lost []string) *refusal {
	var kept []string
	for _, name := range lost {
		plain, _, _ := strings.Cut(name, "@")
		short := plain[strings.LastIndexByte(plain, '.')+1:]
		if !c.named(short) {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return refuse(GateStructure, "lost_definition",
		"%s no longer defines %s, and the task does not ask for that; keep it, or answer with an edit of the changed lines only",
		f.Path, list(kept))
}

// gutted refuses a function that survives by name while a good part of its
// statements is gone with nothing in their place, or all with a stub there.
// What is written anew in few words is a rewrite.
func (f *file) gutted() *refusal {
	for _, d := range f.python.Functions {
		limit := minDeleted
		if f.newComment(d) {
			limit = 2
		}
		if d.Stub && d.Old >= minDeleted {
			return refuse(GateStructure, "lost_statements",
				"%s: %s has lost its %d statements (from line %d on) and does nothing; write its whole body", f.Path, d.Name, d.Old, d.Line)
		}
		if d.Kept == 0 || d.Deleted < limit || d.Deleted*3 < d.Old {
			continue
		}
		where := "the module"
		if d.Name != "" {
			where = d.Name
		}
		return refuse(GateStructure, "lost_statements",
			"%s: %d of %d statements of %s are gone (from line %d on); keep what the task does not change",
			f.Path, d.Deleted, d.Old, where, d.Line)
	}
	return nil
}

// newComment says whether a function got a comment that it did not have.
func (f *file) newComment(d functionDiff) bool {
	old := comments(f.olds, d.OldSpan)
	for c := range comments(f.lines, d.NewSpan) {
		if !old[c] {
			return true
		}
	}
	return false
}

func comments(lines [][]byte, span [2]int) map[string]bool {
	out := map[string]bool{}
	for i := max(span[0], 1); i <= span[1] && i <= len(lines); i++ {
		if s := strings.TrimSpace(string(lines[i-1])); strings.HasPrefix(s, "#") {
			out[s] = true
		}
	}
	return out
}

func (c *check) lostNames(f *file, old, after map[string]bool) *refusal {
	var lost []string
	for name := range old {
		if !after[name] {
			lost = append(lost, name)
		}
	}
	sort.Strings(lost)
	return c.refuseLost(f, lost)
}

// shrunk refuses a file that loses most of its code.
func (f *file) shrunk() *refusal {
	before, after := code(f.olds), code(f.lines)
	if before < minShrink || after*2 >= before {
		return nil
	}
	return refuse(GateStructure, "shrunk",
		"%s would shrink from %d to %d lines of code; give the complete content, or an edit of the changed lines only",
		f.Path, before, after)
}

// definitions lists what a file defines, as far as its language is known.
func definitions(p string, src []byte) map[string]bool {
	switch extOf(p) {
	case ".go":
		return goDefinitions(src)
	case ".py", ".pyi", ".pyw":
		return matches(pythonDefinition, src)
	case ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts":
		return matches(scriptDefinition, src)
	}
	return nil
}

// The top-level definitions of languages, and Python's at any depth for files
// that do not parse.
var (
	pythonDefinition = regexp.MustCompile(`(?m)^\s*(?:async\s+def|def|class)\s+(\w+)`)
	scriptDefinition = regexp.MustCompile(`(?m)^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?` +
		`(?:(?:async\s+)?function\*?\s+|class\s+|interface\s+|enum\s+|type\s+|const\s+|let\s+|var\s+)([\w$]+)`)
)

func matches(re *regexp.Regexp, src []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range re.FindAllSubmatch(src, -1) {
		out[string(m[1])] = true
	}
	return out
}

func goDefinitions(src []byte) map[string]bool {
	out := map[string]bool{}
	tree, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil && tree == nil {
		return out
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					out[t.Name.Name] = true
				}
			}
		}
	}
	return out
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}
