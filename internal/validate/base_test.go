package validate_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/validate"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	goleak.VerifyTestMain(m)
}

// tree is a project in memory.
type tree map[string]string

func (t tree) Read(path string) ([]byte, bool) {
	s, ok := t[path]
	return []byte(s), ok
}

func (t tree) Paths() []string {
	out := make([]string, 0, len(t))
	for p := range t {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

func (t tree) Mode(string) uint32 { return 0o644 }

// Resolve takes a content that begins with an arrow for a link.
func (t tree) Resolve(path string) (string, error) {
	target, ok := strings.CutPrefix(t[path], "-> ")
	switch {
	case !ok:
		return path, nil
	case strings.HasPrefix(target, "/"):
		return "", errors.New("a link leaves the project")
	}
	return target, nil
}

// after applies an accepted verdict.
func (t tree) after(v validate.Verdict) tree {
	out := tree{}
	for k, s := range t {
		out[k] = s
	}
	for _, c := range v.Candidate.Changes {
		if c.New == "" {
			delete(out, c.Path)
			continue
		}
		out[c.Path] = string(v.Contents[c.New])
	}
	return out
}

func newValidator(t testing.TB, cfg validate.Config) *validate.Validator {
	t.Helper()
	v, err := validate.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
}

// fenced writes a whole-file answer.
func fenced(path, body string) string { return "```text " + path + "\n" + body + "```\n" }

const (
	calc  = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
	fixed = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"
)

// bugCase is one line of the collection of bug reports.
type bugCase struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Expected string `json:"expected"`
	Input    struct {
		Files       map[string]string `json:"files"`
		FilesHex    map[string]string `json:"files_hex"`
		Links       map[string]string `json:"links"`
		EditPath    string            `json:"edit_path"`
		Target      string            `json:"target"`
		PlanTargets []string          `json:"plan_targets"`
		Task        string            `json:"task"`
		Output      string            `json:"model_output"`
		Outputs     []string          `json:"model_outputs"`
		Finish      string            `json:"finish_reason"`
		Edit        json.RawMessage   `json:"edit"`
		Candidate   json.RawMessage   `json:"candidate"`
		TestCode    string            `json:"test_code"`
		Env         map[string]string `json:"env"`
	} `json:"input"`
}

// loadCases reads the collection, which lies beside the repository.
func loadCases(t *testing.T) []bugCase {
	t.Helper()
	f, err := os.Open("../../../shared/cases/cases.jsonl")
	if os.IsNotExist(err) {
		t.Skip("the collection of bug reports is not beside the repository")
	}
	require.NoError(t, err)
	defer f.Close()
	var out []bugCase
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var c bugCase
			if json.Unmarshal(line, &c) == nil {
				out = append(out, c)
			}
		}
		if err != nil {
			return out
		}
	}
}

func (c bugCase) tree(t *testing.T) tree {
	t.Helper()
	out := tree{}
	for k, v := range c.Input.Files {
		out[k] = v
	}
	for k, v := range c.Input.Links {
		out[k] = "-> " + v
	}
	for k, v := range c.Input.FilesHex {
		b, err := hex.DecodeString(v)
		require.NoError(t, err)
		out[k] = string(b)
	}
	return out
}

func (c bugCase) input(base tree, answer string) validate.Input {
	in := validate.Input{
		Answer: []byte(answer), Finish: c.Input.Finish, Base: base, Targets: c.Input.PlanTargets, Task: c.Input.Task,
	}
	if in.Finish == "" {
		in.Finish = "stop"
	}
	if c.Input.Target != "" {
		in.Targets = []string{c.Input.Target}
	}
	for _, p := range base.Paths() {
		if len(p) > 6 && p[:6] == "tests/" {
			in.TestPaths = append(in.TestPaths, p)
		}
	}
	return in
}

// answers lists the texts of a case: a candidate is written as whole files, an
// edit as a structured edit of its only file.
func (c bugCase) answers(t *testing.T, base tree) []string {
	t.Helper()
	if len(c.Input.Edit) > 0 {
		var edit map[string]string
		require.NoError(t, json.Unmarshal(c.Input.Edit, &edit))
		edit["path"] = cmp.Or(c.Input.EditPath, base.Paths()[0])
		b, err := json.Marshal(map[string]any{"edits": []any{edit}})
		require.NoError(t, err)
		return []string{string(b)}
	}
	if len(c.Input.Candidate) > 0 {
		var files map[string]string
		if json.Unmarshal(c.Input.Candidate, &files) != nil {
			return nil
		}
		text := ""
		for p, body := range files {
			text += fenced(p, body)
		}
		return []string{text}
	}
	if c.Input.Output != "" {
		return []string{c.Input.Output}
	}
	return c.Input.Outputs
}
