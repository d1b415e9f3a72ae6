package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
)

// Trial asks what the tests of a base folder prove about a candidate folder,
// without a run, a bus or the gates. Neither folder is written. Tests, runner
// and configuration are the base's; what the candidate has of those is not
// looked at.
type Trial struct {
	Base, Candidate string
	// Test is the test command; empty means found from the base's files.
	Test string
	// Timeout bounds one execution of the suite, TestTimeout one test. Zero
	// means 10 minutes and 1 minute.
	Timeout, TestTimeout time.Duration
	// Level and Network are the sandbox's; empty means the best level, none.
	Level   sandbox.Level
	Network sandbox.Network
	// Log, when set, receives what the tests print.
	Log io.Writer
}

// Trialled is what came of a Trial.
type Trialled struct {
	Verdict run.Verdict
	Plan    testrun.Plan
	// Ignored lists the candidate's own versions of tests, runner and
	// configuration, in the place of which the base's were used.
	Ignored []string
	// BaseTail is the end of what the tests printed on the base, Output all
	// that they printed on the candidate.
	BaseTail string
	Output   []byte
	Seconds  float64
}

// trial is the state of one Run.
type trial struct {
	Trial
	temp       string
	plan       testrun.Plan
	base, cand folder
	out        Trialled
}

// anySize are limits that no folder reaches by being large.
var anySize = rollback.Limits{Files: 10_000_000, Bytes: 1 << 50, FileBytes: 1 << 40, Depth: 2000}

// Run executes the suite on the base, twice when that is quick, then on the
// candidate, and judges. Errors are the caller's (a folder that cannot be read,
// a command that cannot be understood); everything else is a verdict.
func (t Trial) Run(ctx context.Context) (out Trialled, err error) {
	started := time.Now()
	r := &trial{Trial: t}
	if r.temp, err = sandbox.MakeTemp(""); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTemp(r.temp)) }()
	for _, f := range []struct {
		at  *folder
		dir string
	}{{&r.base, t.Base}, {&r.cand, t.Candidate}} {
		if *f.at, err = openFolder(ctx, f.dir); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, f.at.root.Close()) }()
	}
	v, err := r.verdict(ctx)
	r.out.Verdict, r.out.Plan, r.out.Seconds = v, r.plan, time.Since(started).Seconds()
	return r.out, err
}

func (r *trial) verdict(ctx context.Context) (v run.Verdict, err error) {
	r.plan, err = testrun.Find(ctx, r.Base, r.Test)
	if errors.Is(err, testrun.ErrCommandNotFound) || errors.Is(err, testrun.ErrTestCommand) || ctx.Err() != nil {
		return v, err
	}
	if err != nil {
		return run.Verdict{Kind: run.VerdictInfrastructure, Reason: err.Error(), Level: string(r.Level)}, nil
	}
	baseline, err := r.baseline(ctx)
	if err != nil {
		return notExecuted(ctx, err)
	}
	v, err = r.judge(ctx, baseline)
	if err != nil {
		return notExecuted(ctx, err)
	}
	return v, nil
}

// judge runs the base's tests on the candidate and says what they prove.
func (r *trial) judge(ctx context.Context, baseline run.Evidence) (v run.Verdict, err error) {
	own := r.own(baseline)
	tree, ignored := compose(r.base.m, r.cand.m, own)
	r.out.Ignored = ignored
	got, out, err := r.execute(ctx, tree, own)
	if err != nil {
		return v, err
	}
	r.out.Output = out
	if v = run.Judge(baseline, got); v.Kind != run.VerdictPassed {
		return v, nil
	}
	why, err := r.suspicions(ctx, tree)
	if len(why) > 0 {
		v.Kind, v.Reason = run.VerdictUntrusted, "only a person may approve this: "+strings.Join(why, "; ")
	}
	return v, err
}

// notExecuted makes a verdict of what could not be executed at all.
func notExecuted(ctx context.Context, err error) (run.Verdict, error) {
	if ctx.Err() != nil {
		return run.Verdict{}, ctx.Err()
	}
	return run.Verdict{Kind: run.VerdictInfrastructure, Reason: err.Error()}, nil
}

func (r *trial) baseline(ctx context.Context) (run.Evidence, error) {
	named := func(p string) bool { return validate.IsTest(p) }
	first, _, err := r.execute(ctx, r.base.m, named)
	r.out.BaseTail = first.Tail
	if err != nil || first.Weak || !first.Completed || first.Seconds >= againBelow.Seconds() {
		return first, err
	}
	second, _, err := r.execute(ctx, r.base.m, named)
	if err != nil {
		return first, err
	}
	first.Flaky = run.FlakyIDs(first, second)
	return first, nil
}

// execute stages a tree anew and runs the suite in it.
func (r *trial) execute(ctx context.Context, m rollback.Manifest, own func(string) bool) (run.Evidence, []byte, error) {
	dir := filepath.Join(r.temp, filepath.Base(r.base.dir))
	if err := rollback.Materialise(ctx, m, dir, twoFolders{r.base, r.cand}); err != nil {
		return run.Evidence{}, nil, err
	}
	opts := testrun.Options{
		Tree: m.Hash(), Timeout: r.Timeout, TestTimeout: r.TestTimeout, Level: r.Level, Network: r.Network, Log: r.Log,
		Hidden: []string{r.cand.dir},
	}
	if opts.Timeout == 0 {
		opts.Timeout = suiteTimeout
	}
	if opts.TestTimeout == 0 {
		opts.TestTimeout = testTimeout
	}
	for _, e := range m.Entries {
		if e.Type == rollback.TypeFile && own(e.Path) {
			opts.Protected = append(opts.Protected, e.Path)
		}
	}
	ev, out, err := testrun.Run(ctx, r.plan, dir, opts)
	return ev, out, errors.Join(err, sandbox.RemoveTemp(dir))
}

// own says which paths are the base's in any case: tests by name or because
// their ids were collected, what configures runner and build, and the files
// that the test command names.
func (r *trial) own(baseline run.Evidence) func(string) bool {
	files := map[string]bool{}
	for _, id := range baseline.Collected {
		file, _, _ := strings.Cut(id, "::")
		files[file] = true
	}
	for _, word := range r.plan.Args {
		for field := range strings.FieldsSeq(word) {
			files[path.Clean(field)] = true
		}
	}
	_, vendored := r.base.m.Lookup("vendor/modules.txt")
	return func(p string) bool {
		return files[p] || validate.IsTest(p) || configures(p) || vendored && strings.HasPrefix(p, "vendor/")
	}
}

// configurations are files that say how code is built, found and tested.
var configurations = []string{
	"pyproject.toml", "setup.cfg", "setup.py", "pipfile", "package.json", "tsconfig.json", "go.mod", "go.sum", "go.work", "go.work.sum",
	"makefile", "gnumakefile", "justfile", "taskfile.yml", ".npmrc", ".babelrc", ".babelrc.json", ".swcrc", ".env", ".env.test",
}

func configures(p string) bool {
	base := strings.ToLower(path.Base(p))
	return slices.Contains(configurations, base) || strings.Contains(base, ".config.") || path.Ext(base) == ".mk"
}

// suspicions lists what makes a green suite a matter for people: new modules
// in the place of others, and new constructs that could deceive a runner.
func (r *trial) suspicions(ctx context.Context, tree rollback.Manifest) ([]string, error) {
	var added, why []string
	v, err := validate.New(r.interpreter())
	if err != nil {
		return nil, err
	}
	store := twoFolders{r.base, r.cand}
	for _, p := range tree.Differs(r.base.m) {
		now, there := tree.Lookup(p)
		was, had := r.base.m.Lookup(p)
		if !there || now.Type != rollback.TypeFile {
			if there && now.Type == rollback.TypeLink {
				why = append(why, p+": new link to "+now.Target)
			}
			continue
		}
		var old, after []byte
		if had && was.Type == rollback.TypeFile {
			if old, err = rollback.Read(ctx, store, was.SHA256); err != nil {
				return nil, errors.Join(err, v.Close())
			}
		} else {
			added = append(added, p)
		}
		if after, err = rollback.Read(ctx, store, now.SHA256); err != nil {
			return nil, errors.Join(err, v.Close())
		}
		uses, err := v.Watch(ctx, p, old, after)
		if err != nil {
			uses = []string{err.Error()}
		}
		why = append(why, uses...)
	}
	shadows, err := r.plan.Shadowed(ctx, added)
	return append(why, shadows...), errors.Join(err, v.Close())
}

// interpreter judges Python by the interpreter that runs the tests.
func (r *trial) interpreter() validate.Config {
	if r.plan.Python == nil {
		return validate.Config{}
	}
	return validate.Config{Python: r.plan.Python.Path, ReadOnly: r.plan.Python.ReadOnly}
}

// compose puts the base's own files into the candidate's tree. The second
// result lists what the candidate had, changed or lacked of them.
func compose(base, cand rollback.Manifest, own func(string) bool) (rollback.Manifest, []string) {
	entries := map[string]rollback.Entry{}
	for _, e := range cand.Entries {
		if e.Type == rollback.TypeDir || !own(e.Path) {
			entries[e.Path] = e
		}
	}
	for _, e := range base.Entries {
		if e.Type == rollback.TypeDir || !own(e.Path) {
			continue
		}
		entries[e.Path] = e
		for d := path.Dir(e.Path); d != "."; d = path.Dir(d) {
			if dir, ok := base.Lookup(d); ok {
				entries[d] = dir
			}
		}
	}
	out := rollback.Manifest{Ignore: base.Ignore}
	for p, e := range entries {
		above, ok := entries[path.Dir(p)]
		if path.Dir(p) == "." || ok && above.Type == rollback.TypeDir {
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortFunc(out.Entries, func(a, b rollback.Entry) int { return strings.Compare(a.Path, b.Path) })
	return out, slices.DeleteFunc(out.Differs(cand), func(p string) bool { return !own(p) })
}

// folder is a tree on the disk whose contents are found by their hash.
type folder struct {
	dir   string
	root  *os.Root
	m     rollback.Manifest
	bySHA map[string]string
}

func openFolder(ctx context.Context, dir string) (f folder, err error) {
	if f.dir, err = filepath.Abs(dir); err != nil {
		return f, err
	}
	if f.dir, err = filepath.EvalSymlinks(f.dir); err != nil {
		return f, err
	}
	if f.m, err = rollback.Scan(ctx, f.dir, anySize); err != nil {
		return f, fmt.Errorf("%s: %w", dir, err)
	}
	f.bySHA = map[string]string{}
	for _, e := range f.m.Entries {
		f.bySHA[e.SHA256] = e.Path
	}
	f.root, err = os.OpenRoot(f.dir)
	return f, err
}

// twoFolders serves the contents of two folders. It stores nothing.
type twoFolders [2]folder

// Get implements rollback.Blobs.
func (s twoFolders) Get(_ context.Context, sha string) ([]byte, error) {
	for _, f := range s {
		if p, ok := f.bySHA[sha]; ok {
			return f.root.ReadFile(p)
		}
	}
	return nil, fmt.Errorf("no file has the content %s", sha)
}

// Put implements rollback.Blobs; nothing is ever put.
func (twoFolders) Put(context.Context, []byte) (run.Ref, error) {
	return run.Ref{}, errors.New("the folders of a trial are not written")
}
