package validate

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// answersSource is part of the interpreter's program, see worker.py.
//
//go:embed answers.py
var answersSource string

// answers is the part of a report on literals that choose a result.
type answers struct {
	// Planted lists the places where new literals do so, each as [kind,
	// function, literals asked for, literals given, line].
	Planted []json.RawMessage `json:"planted"`
	// HardCoded answers a question: those of which a test speaks.
	HardCoded []hardCoded `json:"hard_coded"`
}

// hardCoded is one place where a test's own literal chooses the result.
type hardCoded struct {
	Line int    `json:"line"`
	Kind string `json:"kind"`
}

// question asks which planted literals the tests speak of.
type question struct {
	Planted []json.RawMessage `json:"planted"`
	Tests   [][]byte          `json:"tests"`
}

// answerKinds says what each kind of place is.
var answerKinds = map[string]string{
	"branch":   "a new branch gives back what a test expects for that test's own input",
	"equal":    "an input is newly compared with the very value that a test hands over",
	"table":    "a new table is looked up, and the tests know its entries",
	"constant": "a function newly gives back nothing but what a test expects",
}

// hardCoded trips over code that knows a test's own input or what the test
// expects for it. Such a patch turns the test green and repairs nothing; but a
// base case may look like that, so a person decides.
func (c *check) hardCoded(ctx context.Context, f *file) {
	if len(f.python.Planted) == 0 {
		return
	}
	r, err := c.worker.exchange(ctx, request{question: &question{Planted: f.python.Planted, Tests: c.testsOf(f)}})
	if err != nil || !r.OK {
		c.tripwires = append(c.tripwires, f.Path+": a literal chooses a result, and the tests could not be read for it")
		return
	}
	for _, at := range r.HardCoded {
		c.tripwires = append(c.tripwires, fmt.Sprintf("%s:%d: %s: the answer may be hard-coded", f.Path, at.Line, answerKinds[at.Kind]))
	}
}

// maxTests bounds in bytes the tests that are read for one file: parsing a
// megabyte of Python takes about a second.
const maxTests = 2 << 20

// testsOf are the Python tests that can have to do with a file: those that
// name its module, those nearest to it first. When none does, a test reaches
// it by way of other modules, and each may be the one.
func (c *check) testsOf(f *file) [][]byte {
	type test struct {
		path string
		text []byte
	}
	var all, naming []test
	module := []byte(moduleOf(f.Path))
	for _, p := range c.in.Base.Paths() {
		if why, ok := c.protected(p); !ok || why != whyTest || !isPython(p) {
			continue
		}
		if text, ok := c.in.Base.Read(p); ok {
			all = append(all, test{p, text})
			if bytes.Contains(text, module) {
				naming = append(naming, test{p, text})
			}
		}
	}
	if len(naming) > 0 {
		all = naming
	}
	slices.SortStableFunc(all, func(a, b test) int {
		return cmp.Compare(shared(b.path, f.Path), shared(a.path, f.Path))
	})
	texts, size := [][]byte{}, 0
	for _, t := range all {
		if size+len(t.text) > maxTests {
			c.tripwires = append(c.tripwires, f.Path+": a literal chooses a result, and "+t.path+" is too large to be read for it")
			continue
		}
		size += len(t.text)
		texts = append(texts, t.text)
	}
	return texts
}

// moduleOf is the last part of the name by which a file is imported.
func moduleOf(p string) string {
	if name := strings.TrimSuffix(path.Base(p), path.Ext(p)); name != "__init__" {
		return name
	}
	return strings.TrimPrefix(path.Base(path.Dir(p)), ".")
}

// shared counts the bytes with which two paths begin alike.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
