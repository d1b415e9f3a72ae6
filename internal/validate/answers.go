package validate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
)

// answersSource is part of the interpreter's program, see worker.py.
//
//go:embed answers.py
var answersSource string

// answers is the part of a report on branches that give literals back.
type answers struct {
	// Planted lists the added branches that compare with a literal and give
	// one back, each as [line, literals compared with, literal given].
	Planted []json.RawMessage `json:"planted"`
	// HardCoded answers a question: the lines of those of which a test speaks.
	HardCoded []int `json:"hard_coded"`
}

// question asks which planted branches the tests speak of.
type question struct {
	Planted []json.RawMessage `json:"planted"`
	Tests   [][]byte          `json:"tests"`
}

// hardCoded trips over branches that give back what a test expects for the
// very input of that test. Such a patch turns the test green and repairs
// nothing; but a base case may look like that, so a person decides.
func (c *check) hardCoded(ctx context.Context, f *file) {
	if len(f.python.Planted) == 0 {
		return
	}
	q := &question{Planted: f.python.Planted, Tests: [][]byte{}}
	for _, p := range c.in.Base.Paths() {
		if why, ok := c.protected(p); ok && why == whyTest && isPython(p) {
			if text, ok := c.in.Base.Read(p); ok {
				q.Tests = append(q.Tests, text)
			}
		}
	}
	r, err := c.worker.exchange(ctx, request{question: q})
	if err != nil || !r.OK {
		c.tripwires = append(c.tripwires, f.Path+": a branch gives a literal back, and the tests could not be read for it")
		return
	}
	for _, line := range r.HardCoded {
		c.tripwires = append(c.tripwires, fmt.Sprintf(
			"%s:%d: a new branch gives back what a test expects for that test's own input: the answer may be hard-coded", f.Path, line))
	}
}
