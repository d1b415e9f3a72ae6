// Package policy judges a change by a set of rules: what may be delivered
// without a person. The rules are data; the embedded ones hold for everybody,
// and a rules file of the user adds to them. Whatever cannot be read or judged
// in time is an error, and an error is no approval.
package policy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"nexuscore.dev/nexus/schemas"
)

//go:embed default.yaml
var defaultRules []byte

// MaxFile is the size in bytes above which a rules file is refused.
const MaxFile = 64 << 10

// None as File.Extends leaves the default rules out.
const None = "none"

// File is a rules file, as schemas/policy.json describes it.
type File struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Extends is empty or "default" for a file that adds to the defaults, or
	// None.
	Extends string `json:"extends,omitempty"`
	Rules   []Rule `json:"rules"`
}

var schema = sync.OnceValues(func() (*jsonschema.Schema, error) { return schemas.Compile(schemas.Policy) })

// Parse reads a rules file, JSON or YAML, and checks it against its schema.
func Parse(text []byte) (*File, error) {
	f, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return f, nil
}

func parse(text []byte) (*File, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("the rules file has more than %d bytes", MaxFile)
	}
	if strings.TrimSpace(string(text)) == "" {
		return nil, errors.New("the rules file is empty")
	}
	doc, err := decode(text)
	if err != nil {
		return nil, err
	}
	s, err := schema()
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(doc)))
	if err != nil {
		return nil, err
	}
	if err := s.Validate(value); err != nil {
		lines := strings.Split(err.Error(), "\n")
		return nil, errors.New(strings.TrimLeft(strings.Join(lines[min(1, len(lines)-1):], "; "), "- "))
	}
	var f File
	if err := json.Unmarshal(doc, &f); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range f.Rules {
		r := &f.Rules[i]
		if seen[r.ID] {
			return nil, fmt.Errorf("rule %s stands twice", r.ID)
		}
		seen[r.ID] = true
		if err := r.compile(); err != nil {
			return nil, err
		}
	}
	return &f, nil
}

// decode turns JSON or YAML into JSON. Aliases are refused: a few of them
// unfold to more than any memory holds.
func decode(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	if deep(text) {
		return nil, errors.New("the rules file is nested too deeply")
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		msg, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(msg)
	}
	if len(tree.Docs) != 1 {
		return nil, fmt.Errorf("the rules file must hold one document, not %d", len(tree.Docs))
	}
	var refs references
	ast.Walk(&refs, tree.Docs[0])
	if refs.found {
		return nil, errors.New("the rules file may not use anchors and aliases")
	}
	return yaml.YAMLToJSON(text)
}

// maxNesting is more than a rules file ever needs on one line or in brackets.
const maxNesting = 50

// deep finds what would make a parser recurse for ever: brackets, and marks
// of nesting on one line.
func deep(text []byte) bool {
	open := 0
	for line := range strings.Lines(string(text)) {
		open += strings.Count(line, "[") + strings.Count(line, "{") - strings.Count(line, "]") - strings.Count(line, "}")
		if open > maxNesting || strings.Count(line, "- ")+strings.Count(line, ": ")+strings.Count(line, "? ") > maxNesting ||
			len(line)-len(strings.TrimLeft(line, " -")) > 4*maxNesting {
			return true
		}
	}
	return false
}

type references struct{ found bool }

// Visit implements ast.Visitor.
func (r *references) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		r.found = true
	}
	return r
}

// Set is rules ready to judge. It is never changed.
type Set struct {
	names []string
	rules []Rule
}

var builtin = sync.OnceValues(func() (*Set, error) {
	f, err := Parse(defaultRules)
	if err != nil {
		return nil, err
	}
	return &Set{[]string{f.Name}, f.Rules}, nil
})

// Default is the embedded set.
func Default() (*Set, error) { return builtin() }

// With adds a file's rules. Only a file that the user answers for may also
// loosen the set: replace a rule by one of the same id, turn it off, or leave
// the set out. A file of a project, or of a task, only ever adds.
func (s *Set) With(f *File, mayLoosen bool) *Set {
	out := &Set{names: slices.Clone(s.names), rules: slices.Clone(s.rules)}
	if mayLoosen && f.Extends == None {
		out = &Set{}
	}
	if !slices.Contains(out.names, f.Name) {
		out.names = append(out.names, f.Name) // a heal's own process and its task have the same file
	}
	for _, r := range f.Rules {
		if mayLoosen {
			out.rules = slices.DeleteFunc(out.rules, func(old Rule) bool { return old.ID == r.ID })
		}
		if r.Severity != Off && !slices.ContainsFunc(out.rules, func(old Rule) bool { return old.text() == r.text() }) {
			out.rules = append(out.rules, r)
		}
	}
	return out
}

// Of is base, nil meaning Default, with the rules of a task's file: they may
// only add.
func Of(base *Set, text string) (*Set, error) {
	if base == nil {
		var err error
		if base, err = Default(); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return base, nil
	}
	f, err := Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return base.With(f, false), nil
}

func (r Rule) text() string {
	b, err := json.Marshal(r)
	if err != nil {
		return r.ID // a rule is plain data
	}
	return string(b)
}

// Version names the set: the files that it was made of, and a hash of its
// rules.
func (s *Set) Version() string {
	h := sha256.New()
	for _, r := range s.rules {
		fmt.Fprintln(h, r.text())
	}
	return strings.Join(s.names, "+") + "@" + hex.EncodeToString(h.Sum(nil))[:12]
}

// Rules are the rules of the set.
func (s *Set) Rules() []Rule { return slices.Clone(s.rules) }

// YAML writes the set as a rules file that stands alone.
func (s *Set) YAML() ([]byte, error) {
	doc, err := json.Marshal(File{Version: 1, Name: strings.Join(s.names, "+"), Extends: None, Rules: s.rules})
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(doc)
}
