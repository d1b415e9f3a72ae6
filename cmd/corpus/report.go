package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate"
)

// The labels of an answer. The first two speak of all gates. An applicable edit
// fits the tree, so that no gate before those of its content may refuse it; an
// inapplicable one may be refused by any, but not accepted.
const (
	labelAccepted     = "accepted"
	labelRejected     = "rejected"
	labelApplicable   = "applicable"
	labelInapplicable = "inapplicable"
)

// outcome is what the gates said of one answer.
type outcome struct {
	id, label string
	verdict   validate.Verdict
	// unlike are the files that are not as wanted.
	unlike []string
	// panic is what the gates panicked with.
	panic string
}

// word is the outcome in one word, with the reason when it is a refusal.
func (o outcome) word() string {
	switch {
	case o.panic != "":
		return "PANIC " + o.panic
	case o.verdict.Accepted:
		return "accepted"
	}
	return o.verdict.Gate + "/" + o.verdict.Reason
}

// applies says whether the answer is a well-formed edit of its tree: whatever
// a later gate thinks of it, it was decoded, placed, has an effect, is no prose and parses.
func (o outcome) applies() bool {
	switch o.verdict.Gate {
	case validate.GateDecode, validate.GatePaths, validate.GatePlace, validate.GateProse, validate.GateSyntax:
		return false
	case validate.GateEmpty:
		return o.verdict.Reason != run.ReasonNoOp
	}
	return o.panic == ""
}

// differs compares the outcome with the label; an answer without one agrees,
// and a panic agrees with none.
func (o outcome) differs() bool {
	if o.panic != "" && o.label != "" {
		return true
	}
	switch o.label {
	case labelAccepted:
		return !o.verdict.Accepted
	case labelRejected, labelInapplicable:
		return o.verdict.Accepted
	case labelApplicable:
		return !o.applies()
	}
	return false
}

// report collects the outcomes.
type report struct{ outcomes []outcome }

func (r *report) add(o outcome) { r.outcomes = append(r.outcomes, o) }

func (r *report) panicked() bool {
	return slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.panic != "" })
}

// print writes the report; all adds a line for every answer.
func (r *report) print(w io.Writer, all bool) {
	accepted, labelled, agree := 0, 0, 0
	refused := map[string]int{}
	for _, o := range r.outcomes {
		switch {
		case o.verdict.Accepted:
			accepted++
		default:
			refused[o.word()]++
		}
		if o.label != "" {
			labelled++
			agree += one(!o.differs())
		}
		if all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", o.id, o.word(), o.label, strings.Join(o.verdict.Tolerances, " | "))
		}
	}
	fmt.Fprintf(w, "answers  %6d\naccepted %6d\nrejected %6d\n", len(r.outcomes), accepted, len(r.outcomes)-accepted)
	for _, k := range slices.SortedFunc(maps.Keys(refused), func(a, b string) int {
		return cmp.Or(refused[b]-refused[a], strings.Compare(a, b))
	}) {
		fmt.Fprintf(w, "%15d  %s\n", refused[k], k)
	}
	if labelled > 0 {
		fmt.Fprintf(w, "labels   %6d, agreement %d (%.2f %%)\n", labelled, agree, 100*float64(agree)/float64(labelled))
	}
	r.printDifferences(w)
}

// printDifferences lists every answer that is not as its label or its wanted
// files say.
func (r *report) printDifferences(w io.Writer) {
	for _, o := range r.outcomes {
		if o.panic != "" {
			fmt.Fprintf(w, "panic     %s: %s\n", o.id, o.panic)
		}
		if o.differs() {
			fmt.Fprintf(w, "differs   %s: %s, labelled %s\n", o.id, o.word(), o.label)
		}
		if len(o.unlike) > 0 {
			fmt.Fprintf(w, "otherwise %s: %s\n", o.id, strings.Join(o.unlike, ", "))
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
