package testrun

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

// maxPasses bounds how often a package is started again because its process
// ended before all of its tests had run.
const maxPasses = 30

// goRun is one execution of a Go project's tests: the packages are listed,
// compiled where nothing of the project runs, and executed with the compiler's
// cache read-only.
type goRun struct {
	plan  Plan
	opts  Options
	root  string
	temp  string // private, readable for the tests
	cache string // the compiler's cache, written by the compiler alone
	until time.Time

	packages map[string]*goPackage
	canary   string
	rec      *goRecord
	ev       run.Evidence
	log      bytes.Buffer
	seconds  float64
}

func runGo(ctx context.Context, plan Plan, root string, opts Options) (ev run.Evidence, out []byte, err error) {
	temp, err := sandbox.MakeTemp(opts.Temp)
	if err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(temp)) }()
	cache, err := opts.goCache(plan)
	if err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return ev, nil, fmt.Errorf("run tests: %w", err)
	}
	g := &goRun{
		plan: plan, opts: opts, root: root, temp: temp, cache: cache, until: time.Now().Add(orTimeout(opts.Timeout)),
		packages: map[string]*goPackage{}, canary: "TestNexus" + hex.EncodeToString(b[:]), rec: newGoRecord(),
	}
	g.rec.filtered = len(withoutFilters(plan.Args)) < len(plan.Args)
	if err := g.execute(ctx); err != nil {
		return run.Evidence{}, g.log.Bytes(), fmt.Errorf("run tests: %w", err)
	}
	g.finish()
	return g.ev, g.log.Bytes(), nil
}

func orTimeout(d time.Duration) time.Duration {
	if d <= 0 {
		return 10 * time.Minute
	}
	return d
}

// goCache is where compiled packages stay between runs: the caller's folder,
// else one of this user's own. Only the compiler ever writes there.
func (o Options) goCache(plan Plan) (string, error) {
	dir := o.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "nexus")
	}
	dir = filepath.Join(dir, "go-build-"+plan.Tool.Version)
	return dir, os.MkdirAll(dir, 0o700)
}

// spec is a command of the toolchain; compiling says that it may write to the
// cache, which no code of the project may.
func (g *goRun) spec(compiling bool, args ...string) sandbox.Spec {
	s := g.opts.spec(g.plan, g.root, append([]string{g.plan.Tool.Path}, args...))
	s.Timeout = max(time.Until(g.until), time.Second)
	s.Env = append([]string{"PATH=" + filepath.Dir(g.plan.Tool.Path) + ":" + g.plan.Search}, g.plan.Env...)
	// Of a folder that has just been written the toolchain keeps an index in
	// the cache, which is read-only where tests run; without one it reads.
	s.Env = append(append(s.Env, g.plan.Tool.Env...), "GODEBUG=#goindex=0,goindex=0", // later entries win
		"GOCACHE="+g.cache, "GOFLAGS=", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOENV=off", "GOTELEMETRY=off",
		"GOPATH="+filepath.Join(g.temp, "gopath"))
	s.ReadOnly = append(slices.Clone(g.plan.Tool.ReadOnly), g.temp)
	if compiling {
		s.Writable = append(s.Writable, g.cache)
		s.Limits.Processes, s.Limits.MemoryBytes = max(s.Limits.Processes, 512), max(s.Limits.MemoryBytes, 4<<30)
	} else {
		s.ReadOnly = append(s.ReadOnly, g.cache)
		g.opts.protect(&s)
	}
	return s
}

func (g *goRun) execute(ctx context.Context) error {
	if err := g.list(ctx); err != nil || g.ev.Infrastructure != "" {
		return err
	}
	overlay, err := g.plant()
	if err != nil {
		return err
	}
	flags := append([]string{"-count=1", "-overlay=" + overlay}, g.plan.Args...)
	build := slices.Concat([]string{"test", "-run=^$", "-exec=/bin/true"}, withoutFilters(flags), g.plan.Names)
	// What fails to compile fails again below, where it is recorded.
	res, err := sandbox.Run(ctx, g.spec(true, build...))
	if err != nil || g.over(res) {
		return err
	}
	flags = append(flags, "-json")
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "-timeout=") }) {
		flags = append(flags, fmt.Sprintf("-timeout=%ds", max(1, int(time.Until(g.until).Seconds()*0.8))))
	}
	// The planted test must run whatever a filter selects.
	first := make([]string, 0, len(flags))
	for _, f := range flags {
		if p, ok := strings.CutPrefix(f, "-run="); ok {
			f = "-run=" + p + "|^" + g.canary + "$"
		}
		first = append(first, f)
	}
	if err := g.pass(ctx, slices.Concat([]string{"test"}, first, g.plan.Names)); err != nil {
		return err
	}
	return g.again(ctx, withoutFilters(flags))
}

func withoutFilters(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, "-run=") || strings.HasPrefix(f, "-skip=") })
}

// again starts packages whose process ended early once more, for the tests
// that were not reached, and those with a TestMain without the planted test,
// because they may do more when all tests have passed.
func (g *goRun) again(ctx context.Context, flags []string) error {
	for _, p := range g.sorted() {
		for range maxPasses {
			left := g.rec.left(p)
			if len(left) == 0 || g.ended() {
				break
			}
			pattern := "-run=^(" + strings.Join(append(left, g.canary), "|") + ")$"
			if err := g.pass(ctx, slices.Concat([]string{"test"}, flags, []string{pattern, p.ImportPath})); err != nil {
				return err
			}
		}
		if !p.hasMain || g.rec.red(p.rel) || g.ended() {
			continue
		}
		if err := g.pass(ctx, slices.Concat([]string{"test"}, flags, g.filters(), []string{"-skip=^" + g.canary + "$", p.ImportPath})); err != nil {
			return err
		}
		if g.rec.ends[p.ImportPath] == actionFail && !g.rec.red(p.rel) {
			g.rec.outcome(p.rel, run.OutcomeError)
		}
	}
	return nil
}

// filters are the -run arguments of the plan itself.
func (g *goRun) filters() []string {
	return slices.DeleteFunc(slices.Clone(g.plan.Args), func(f string) bool { return !strings.HasPrefix(f, "-run=") })
}

func (g *goRun) ended() bool { return g.ev.Timeout || g.ev.Limit != "" || g.ev.Signal != "" }

// over takes over what the sandbox says of a command that did not end itself.
func (g *goRun) over(res sandbox.Result) bool {
	g.seconds += res.Seconds
	g.ev.Level, g.ev.Exit, g.ev.Signal, g.ev.Limit, g.ev.Timeout = string(res.Level), res.Exit, res.Signal, res.Limit, res.Timeout
	return g.ended()
}

// pass is one execution of go test.
func (g *goRun) pass(ctx context.Context, args []string) error {
	g.rec.begin(g.packages, g.canary)
	res, err := printing(ctx, g.spec(false, args...), func(r io.Reader) { g.rec.read(r, g.opts.Log) })
	g.log.Write(g.rec.text.Bytes())
	g.log.Write(withoutLines(res.Output.Bytes(), g.canary))
	if err != nil {
		return err
	}
	g.over(res)
	g.rec.end(res.Exit, g.ended())
	return nil
}

// goPackage is what go list says about a package.
type goPackage struct {
	ImportPath, Dir, Name     string
	TestGoFiles, XTestGoFiles []string
	Error                     *struct{ Err string }
	rel                       string
	tests                     []string
	hasMain                   bool
}

// list finds the packages and, by their syntax alone, their tests.
func (g *goRun) list(ctx context.Context) error {
	flags := slices.DeleteFunc(slices.Clone(g.plan.Args), func(f string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(f, "-"), "=")
		return !slices.Contains([]string{"tags", "mod", "modfile", "race", "msan", "asan", "buildvcs"}, name)
	})
	args := slices.Concat([]string{"list", "-e", "-json=ImportPath,Dir,Name,TestGoFiles,XTestGoFiles,Error"}, flags, g.plan.Names)
	var listed []*goPackage
	var bad error
	res, err := printing(ctx, g.spec(true, args...), func(r io.Reader) {
		for d := json.NewDecoder(r); ; {
			p := new(goPackage)
			if err := d.Decode(p); err != nil {
				bad = err
				return
			}
			listed = append(listed, p)
		}
	})
	if err != nil {
		return err
	}
	out := res.Output.Bytes()
	g.log.Write(out)
	if g.over(res) {
		return nil
	}
	if res.Exit != 0 || !errors.Is(bad, io.EOF) || len(listed) == 0 {
		g.ev.Infrastructure = "go cannot list the packages: " + firstLine(out)
		return nil
	}
	for _, p := range listed {
		rel, err := filepath.Rel(g.root, p.Dir)
		if err != nil || p.Dir == "" || !filepath.IsLocal(rel) {
			if p.Error != nil {
				g.ev.Infrastructure = "go cannot list the packages: " + firstLine([]byte(p.Error.Err))
			}
			continue
		}
		p.rel = filepath.ToSlash(rel)
		p.findTests()
		g.packages[p.ImportPath] = p
	}
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(sandbox.Printable(out)), "\n")
	return line[:min(len(line), 300)]
}

// plant writes one test that must fail for each package that has tests, and
// the overlay that shows it to the compiler.
func (g *goRun) plant() (string, error) {
	overlay := map[string]string{}
	for i, p := range g.sorted() {
		name := p.Name
		if len(p.TestGoFiles) == 0 {
			name += "_test"
		}
		file := filepath.Join(g.temp, fmt.Sprintf("planted%d.go", i))
		text := fmt.Sprintf("package %s\n\nimport nexustesting \"testing\"\n\nfunc %s(t *nexustesting.T) { t.Error(\"planted\") }\n", name, g.canary)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay[filepath.Join(p.Dir, "zz_"+strings.ToLower(g.canary)+"_test.go")] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file := filepath.Join(g.temp, "overlay.json")
	return file, os.WriteFile(file, data, 0o600)
}

// sorted lists the packages that have tests.
func (g *goRun) sorted() []*goPackage {
	var out []*goPackage
	for _, path := range sortedKeys(g.packages) {
		if p := g.packages[path]; len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// finish turns the record into evidence. The planted tests make every exit
// status 1; what is reported is the status that the project's own tests have.
func (g *goRun) finish() {
	e := &g.ev
	e.Runner, e.Tree, e.Seconds = g.plan.Runner, g.opts.Tree, g.seconds
	e.Outcomes, e.Tampered = g.rec.outcomes, g.rec.tampered
	canaries := 0
	for _, p := range g.sorted() {
		if g.rec.built(p) {
			canaries++
			for _, name := range p.tests {
				if _, reported := e.Outcomes[p.id(name)]; reported || !g.rec.filtered {
					e.Collected = append(e.Collected, p.id(name))
				}
			}
		} else {
			e.Outcomes[p.rel] = run.OutcomeError
		}
	}
	e.Canary = canaries == 0 && e.Infrastructure == "" && g.rec.passes > 0 || canaries > 0 && g.rec.planted >= canaries
	e.Completed = !g.ended() && g.rec.passes > 0 && !g.rec.broken
	if e.Completed && e.Exit == 1 || e.Exit == 0 {
		e.Exit = 0
		if slices.ContainsFunc(sortedKeys(e.Outcomes), func(id string) bool { return isRed(e.Outcomes[id]) }) {
			e.Exit = 1
		}
	}
	if g.rec.filtered {
		e.Lacks = append(e.Lacks, "a -run or -skip filter hides which tests there are: those that the base reported are expected")
	}
	e.Declared = skipped(*e)
	e.Tail = tail(g.log.Bytes())
}

func isRed(o run.Outcome) bool { return o == run.OutcomeFailed || o == run.OutcomeError }

var exampleOutput = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)
