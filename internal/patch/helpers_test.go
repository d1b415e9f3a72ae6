package patch_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// tree is a project in memory.
type tree map[string]string

func (t tree) read(path string) ([]byte, bool) {
	s, ok := t[path]
	return []byte(s), ok
}

func (t tree) paths() []string {
	out := make([]string, 0, len(t))
	for p := range t {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

// apply decodes and places a text and returns the tree after it.
func (t tree) apply(text string, o patch.Options) (tree, patch.Draft, error) {
	if o.Finish == "" {
		o.Finish = patch.FinishStop
	}
	if o.Paths == nil {
		o.Paths = t.paths()
	}
	d, err := patch.Decode([]byte(text), o)
	if err != nil {
		return nil, d, err
	}
	edits, err := patch.Place(d, t.read)
	if err != nil {
		return nil, d, err
	}
	out := tree{}
	for k, v := range t {
		out[k] = v
	}
	for _, e := range edits {
		if e.Op == patch.OpDelete {
			delete(out, e.Path)
			continue
		}
		out[e.Path] = string(e.New)
	}
	return out, d, nil
}

func requireReason(t *testing.T, err error, reasons ...string) {
	t.Helper()
	var e *patch.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, reasons, e.Reason, e.Error())
	require.NotEmpty(t, e.Feedback)
}

// bugCase is one line of the collection of bug reports.
type bugCase struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Input struct {
		Files       map[string]string `json:"files"`
		FilesHex    map[string]string `json:"files_hex"`
		Target      string            `json:"target"`
		PlanTargets []string          `json:"plan_targets"`
		Output      string            `json:"model_output"`
		Outputs     []string          `json:"model_outputs"`
		Finish      string            `json:"finish_reason"`
		Edit        json.RawMessage   `json:"edit"`
	} `json:"input"`
}

// loadCases reads the collection, which lies beside the repository.
func loadCases(t *testing.T) map[string]bugCase {
	t.Helper()
	f, err := os.Open("../../../shared/cases/cases.jsonl")
	if os.IsNotExist(err) {
		t.Skip("the collection of bug reports is not beside the repository")
	}
	require.NoError(t, err)
	defer f.Close()
	out := map[string]bugCase{}
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var c bugCase
			if json.Unmarshal(line, &c) == nil {
				out[c.ID] = c
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
	for k, v := range c.Input.FilesHex {
		b, err := hex.DecodeString(v)
		require.NoError(t, err)
		out[k] = string(b)
	}
	return out
}

func (c bugCase) options() patch.Options {
	o := patch.Options{Finish: c.Input.Finish, Targets: c.Input.PlanTargets}
	if c.Input.Target != "" {
		o.Targets = []string{c.Input.Target}
	}
	return o
}

// text is the model's output; a case with an edit is written as structured
// edit of its only file.
func (c bugCase) text(t *testing.T, files tree) string {
	t.Helper()
	if len(c.Input.Edit) == 0 {
		return c.Input.Output
	}
	var edit map[string]string
	require.NoError(t, json.Unmarshal(c.Input.Edit, &edit))
	edit["path"] = files.paths()[0]
	b, err := json.Marshal(map[string]any{"edits": []any{edit}})
	require.NoError(t, err)
	return string(b)
}
