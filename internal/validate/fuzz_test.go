package validate

import (
	"encoding/json"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// single is a base of one file.
type single struct {
	path string
	data []byte
}

func (s single) Read(p string) ([]byte, bool)   { return s.data, p == s.path }
func (s single) Paths() []string                { return []string{s.path} }
func (single) Mode(string) uint32               { return 0o644 }
func (single) Resolve(p string) (string, error) { return p, nil }

// names has a file of every language and of every name that a gate looks into.
var names = []string{
	"a.js", "a.tsx", "a.json", "a.jsonc", "tsconfig.json", "a.yaml", "a.toml", "a.go", "a.css", "a.md", "a.rb",
	"pyproject.toml", "setup.cfg", "package.json", "go.mod",
}

// FuzzGates: any change of any file of the languages that this process parses
// itself comes to a verdict, and an accepted one holds what it says.
func FuzzGates(f *testing.F) {
	for i, s := range []string{
		"a(b[c{d}])", "{\"a\": 1}", "{\"a\": [1, // x\n2,]}", "{}", "a: &x [1, *x]\n", "[a]\nb = 1\n", "package a\n\nfunc f() {}\n",
		"# ... rest of the code ...\n", "Here is the fix\n", "a = 1\n...\n", "[tool.pytest]\nx = 1\n", "[tool:pytest]\na = 1\n", "{\"jest\": {}}",
	} {
		f.Add(byte(i), []byte(s), []byte(s+"\nx"))
	}
	v, err := New(Config{Python: "/nonexistent"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, n byte, old, after []byte) {
		name := names[int(n)%len(names)]
		answer, err := json.Marshal(map[string]string{"path": name, "content": string(after)})
		require.NoError(t, err)
		got := v.Check(t.Context(), Input{Answer: answer, Finish: "stop", Base: single{name, old}, Targets: []string{name}})
		if !got.Accepted {
			require.NotEmpty(t, got.Gate)
			require.NotEmpty(t, got.Reason)
			require.NotEmpty(t, got.Status)
			require.LessOrEqual(t, len(got.Feedback), maxFeedback+16)
			return
		}
		for _, c := range got.Candidate.Changes {
			require.Equal(t, c.New, sum(got.Contents[c.New]))
		}
	})
}

// FuzzPaths: what is protected stays so however the path is written.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"tests/a.py", "./x/../tests/a.py", ".GIT/config", "a/conftest.py", "a\x00b", "..", "/etc/x", "a//b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		c := &check{in: Input{Base: single{"a.py", nil}}}
		if c.admit(p) != nil {
			return
		}
		require.False(t, path.IsAbs(p))
		require.NoError(t, patch.CheckPath(p))
		_, clean := c.protected(path.Clean(p))
		_, raw := c.protected(p)
		require.Equal(t, clean, raw, p)
	})
}

// FuzzReport: whatever an interpreter answers, it is judged or refused.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"id":1,"ok":true,"statements":0}`))
	f.Add([]byte(`{"id":1,"bare":[-1,99],"lost":[[]],"lost_names":[["a",1,true],[null]],"functions":[{"kept":1,"deleted":9,"old_span":[-1,99]}],"watched":["x"]}`))
	f.Add([]byte(`{"id":1,"error":{"type":"E","msg":"m","line":-5,"text":"t"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReport(line, 1)
		if err != nil {
			return
		}
		text := []byte("def f():\n    # a\n    return 1\n")
		fl := &file{Edit: patch.Edit{Path: "a.py", Op: patch.OpModify, Old: text, New: text}, lines: textLines(text), olds: textLines(text), python: r}
		fl.syntax = syntaxResult{checked: true, err: r.Error, old: r.OldError}
		c := &check{files: []*file{fl}, in: Input{Base: single{"a.py", text}}}
		if no := c.run(judging[:5]); no != nil {
			require.NotEmpty(t, no.gate)
		}
	})
}

// TestTimeLimitOfAParser: a parser that is slow, or panics, ends in a refusal.
func TestTimeLimitOfAParser(t *testing.T) {
	t.Parallel()
	s := judge(func([]byte) *syntaxError { panic("no") }, "a.yaml", nil, nil)
	require.Equal(t, "pathological", s.reason)
	release, gone := make(chan struct{}), make(chan struct{})
	_, ok := within(t.Context(), time.Millisecond, parsing, func() syntaxResult {
		defer close(gone)
		<-release
		return syntaxResult{}
	})
	require.False(t, ok)
	close(release)
	<-gone
	s, ok = within(t.Context(), time.Minute, parsing, func() syntaxResult { return syntaxResult{checked: true} })
	require.True(t, ok)
	require.True(t, s.checked)
}
