package testrun

import (
	"bufio"
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nexuscore.dev/nexus/internal/run"
)

// goEvent is one line of go test -json.
type goEvent struct {
	Action, Package, ImportPath, Test, Output string
}

// The actions that end a test or a package.
const (
	actionPass = "pass"
	actionFail = "fail"
	actionSkip = "skip"
)

// goRecord gathers the events of every pass.
type goRecord struct {
	outcomes map[string]run.Outcome
	tampered []string
	// ends are the actions with which packages ended in the last pass.
	ends map[string]string
	// planted counts the packages whose planted test failed.
	planted int
	passes  int
	broken  bool
	// filtered says that not all tests are asked for; seen holds those that
	// any pass began.
	filtered bool
	seen     map[string]bool
	text     bytes.Buffer

	packages map[string]*goPackage
	canary   string
	running  []string // started and not ended in this pass, in order
	done     map[string]bool
	failed   map[string]bool // packages with a canary that failed
	progress map[string]bool // packages of which a test ended in this pass
}

func newGoRecord() *goRecord {
	return &goRecord{outcomes: map[string]run.Outcome{}, failed: map[string]bool{}, seen: map[string]bool{}}
}

func (r *goRecord) begin(packages map[string]*goPackage, canary string) {
	r.packages, r.canary = packages, canary
	r.ends, r.done, r.progress = map[string]string{}, map[string]bool{}, map[string]bool{}
	r.running = nil
	r.text.Reset()
}

func (r *goRecord) read(in io.Reader, log io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		var e goEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			r.broken = true
			continue
		}
		r.take(e)
		// A package fails because of the planted test in any case.
		fails := e.Test == "" && strings.HasPrefix(e.Output, "FAIL") && !strings.Contains(e.Output, "[")
		if e.Output != "" && !fails && e.Test != r.canary && !strings.Contains(e.Output, r.canary) && r.text.Len() < maxTail<<7 {
			r.text.WriteString(e.Output)
			if log != nil {
				_, _ = io.WriteString(log, e.Output)
			}
		}
	}
	r.broken = r.broken || lines.Err() != nil
}

func (r *goRecord) take(e goEvent) {
	p := r.packages[e.Package]
	if p == nil {
		return
	}
	terminal := e.Action == actionPass || e.Action == actionFail || e.Action == actionSkip
	switch {
	case e.Test == "" && terminal:
		r.ends[e.Package] = e.Action
	case e.Test == r.canary:
		if e.Action == actionFail && !r.failed[e.Package] {
			r.failed[e.Package] = true
			r.planted++
		}
	case e.Action == "run":
		r.seen[p.id(e.Test)] = true
		r.running = append(r.running, p.id(e.Test))
	case terminal:
		id := p.id(e.Test)
		if r.done[id] {
			r.tamper("a test ended twice: " + id)
		}
		r.done[id], r.progress[p.rel] = true, true
		r.running = slices.DeleteFunc(r.running, func(x string) bool { return x == id })
		r.outcome(id, map[string]run.Outcome{actionPass: run.OutcomePassed, actionFail: run.OutcomeFailed, actionSkip: run.OutcomeSkipped}[e.Action])
	}
}

func (r *goRecord) tamper(why string) {
	if len(r.tampered) < 20 && !slices.Contains(r.tampered, why) {
		r.tampered = append(r.tampered, why)
	}
}

// outcome keeps the worst of what was said about a test.
func (r *goRecord) outcome(id string, o run.Outcome) {
	if old, ok := r.outcomes[id]; !ok || isRed(o) && !isRed(old) || old == run.OutcomePassed {
		r.outcomes[id] = o
	}
}

// end closes a pass. Of a process that ended with tests still running, the
// last one started is the one that ended it, unless another one failed.
func (r *goRecord) end(exit int, cut bool) {
	r.passes++
	if exit == 0 && len(r.failed) > 0 && slices.Contains(sortedValues(r.ends), actionFail) {
		r.tamper("exit status 0, although a package failed")
	}
	for _, path := range sortedKeys(r.packages) {
		p := r.packages[path]
		for _, id := range slices.Backward(r.running) {
			if strings.HasPrefix(id, p.rel+"::") && (cut || !r.progress[p.rel]) && !strings.Contains(strings.TrimPrefix(id, p.rel+"::"), "/") {
				r.outcome(id, run.OutcomeError)
				r.progress[p.rel] = true
				break
			}
		}
	}
}

func sortedValues(m map[string]string) []string {
	var out []string
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

// left lists the tests of a package that no pass has ended. A pass in which
// nothing ended, and nothing ran, makes no more of them.
func (r *goRecord) left(p *goPackage) []string {
	if !r.built(p) {
		return nil
	}
	var out []string
	for _, name := range p.tests {
		if _, ok := r.outcomes[p.id(name)]; !ok && (!r.filtered || r.seen[p.id(name)]) {
			out = append(out, name)
		}
	}
	if len(out) == 0 || r.reached(p, out) {
		return out
	}
	return nil
}

// reached reports whether the last pass began one of the tests, or ended
// another one of the package.
func (r *goRecord) reached(p *goPackage, names []string) bool {
	return r.progress[p.rel] || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(r.running, p.id(n)) })
}

// built reports whether the package was compiled into a test that ran at all.
func (r *goRecord) built(p *goPackage) bool {
	return r.failed[p.ImportPath] || r.any(p.rel)
}

func (r *goRecord) any(rel string) bool {
	for id := range r.outcomes {
		if strings.HasPrefix(id, rel+"::") {
			return true
		}
	}
	return false
}

func (r *goRecord) red(rel string) bool {
	for id, o := range r.outcomes {
		if isRed(o) && (id == rel || strings.HasPrefix(id, rel+"::")) {
			return true
		}
	}
	return false
}

// id names a test by its package's folder.
func (p *goPackage) id(test string) string { return p.rel + "::" + test }

// findTests lists the test functions of the package's files. They are read,
// not run, so that nothing but the files themselves can hide one.
func (p *goPackage) findTests() {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if f == nil || err != nil {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			switch {
			case fn.Name.Name == "TestMain":
				p.hasMain = true
			case isTestName(fn.Name.Name, "Test") && takes(fn, "T"), isTestName(fn.Name.Name, "Fuzz") && takes(fn, "F"),
				isTestName(fn.Name.Name, "Example") && fn.Body != nil && hasOutput(f, fn):
				p.tests = append(p.tests, fn.Name.Name)
			}
		}
	}
}

func isTestName(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	r, _ := utf8.DecodeRuneInString(rest)
	return ok && (rest == "" || !unicode.IsLower(r))
}

func takes(fn *ast.FuncDecl, kind string) bool {
	if fn.Type.TypeParams != nil || len(fn.Type.Params.List) != 1 || len(fn.Type.Params.List[0].Names) > 1 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch x := star.X.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == kind
	case *ast.Ident:
		return x.Name == kind
	}
	return false
}

// hasOutput reports whether an example's last comment states its output;
// others are compiled and not run.
func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	var last *ast.CommentGroup
	for _, c := range f.Comments {
		if c.Pos() > fn.Body.Lbrace && c.End() < fn.Body.Rbrace {
			last = c
		}
	}
	return last != nil && exampleOutput.MatchString(last.Text())
}
