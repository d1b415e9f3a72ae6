package failure

import (
	"fmt"
	"reflect"
	"strings"
)

// Signal is an error that arrives as text: from another process, another
// language, or the command line.
type Signal struct {
	// Type is the name of the error's type, qualified or not.
	Type    string
	Message string
	// Status is an HTTP status, 0 where there was none.
	Status int
	Origin Origin
}

// Explanation says how a category was reached.
type Explanation struct {
	Category Category
	// Reason names the signal that decided, for the log.
	Reason string
	// Matches lists every category that a signal spoke for, by priority.
	// More than one deserves a warning.
	Matches []Category
	// Structured is true when no words had to be read.
	Structured bool
	// Unknown is true when nothing matched: the burst of such errors is
	// what a person should see.
	Unknown bool
}

// verdict is an Explanation that costs no memory.
type verdict struct {
	category Category
	by       string
	also     set
}

// Reasons of a verdict. "by words" and "nothing matched" are the unstructured
// ones.
const (
	byOwn      = "stated by an inner failure"
	byCancel   = "a cancelled context is a stop"
	bySecurity = "type name"
	byOrigin   = "origin"
	byStatus   = "HTTP status"
	byType     = "error type"
	byName     = "type name"
	byWords    = "words of the message"
	byNothing  = "nothing matched"
)

// Classify answers the category of any error: structured signals first (an
// inner *Error, a stop, a type that stands for one category, HTTP status, Go
// error type), whole words second, else Unexpected. The innermost cause
// wins. It never panics; nil is Unexpected.
func Classify(err error) (c Category) {
	defer func() {
		if recover() != nil {
			c = Unexpected
		}
	}()
	s := gather(err)
	return s.decide(err, "").category
}

// Explain is Classify with the reason.
func Explain(err error) Explanation { return explain(err, gather(err), "") }

func explain(err error, s signals, origin Origin) (e Explanation) {
	defer func() {
		if p := recover(); p != nil {
			e = Explanation{Category: Unexpected, Reason: fmt.Sprintf("the error could not be read: %v", p), Unknown: true}
		}
	}()
	if err == nil {
		return Explanation{Category: Unexpected, Reason: errNil.Error(), Unknown: true}
	}
	return s.decide(err, origin).explain(Signal{Type: typeName(err), Status: s.status, Origin: origin})
}

// ExplainSignal classifies an error that is known by its text alone.
func ExplainSignal(sig Signal) Explanation {
	v := decideSignal(sig)
	return v.explain(sig)
}

func (v verdict) explain(sig Signal) Explanation {
	reason := v.by
	switch v.by {
	case byStatus:
		reason = fmt.Sprintf("%s %d", v.by, sig.Status)
	case byOrigin:
		reason = fmt.Sprintf("%s %s", v.by, sig.Origin)
	case byType, byName:
		reason = fmt.Sprintf("%s %s", v.by, sig.Type)
	}
	return Explanation{
		Category: v.category, Reason: reason, Matches: (v.also | bit(v.category)).list(),
		Structured: v.by != byWords && v.by != byNothing, Unknown: v.by == byNothing,
	}
}

// decideSignal is the order of precedence for what is known by text.
func decideSignal(sig Signal) verdict {
	if v, ok := decideNamed(matchType(sig.Type), sig.Status, sig.Origin); ok {
		return v
	}
	if v, ok := decideWords(sig.Message, sig.Origin); ok {
		return v
	}
	return verdict{category: Unexpected, by: byNothing}
}

// decideNamed reads the structured signals: names is the set of categories
// that the error's type stands for.
func decideNamed(names set, status int, origin Origin) (verdict, bool) {
	if !origin.allows(InvalidOutput) {
		names &^= bit(InvalidOutput)
	}
	for _, c := range [...]Category{Security, Sandbox, PatchApply} {
		if names&bit(c) != 0 {
			return verdict{c, byName, names}, true
		}
	}
	if c, ok := origin.decides(); ok {
		return verdict{c, byOrigin, names}, true
	}
	if c, ok := OfStatus(status); ok {
		return verdict{c, byStatus, names}, true
	}
	if names != 0 {
		return verdict{names.first(), byName, names}, true
	}
	return verdict{}, false
}

func decideWords(message string, origin Origin) (verdict, bool) {
	found := matchMessage(message)
	if !origin.allows(InvalidOutput) {
		found &^= bit(InvalidOutput)
	}
	if found == 0 {
		return verdict{}, false
	}
	return verdict{found.first(), byWords, found}, true
}

// decide is the order of precedence for a Go error.
func (s *signals) decide(err error, origin Origin) verdict {
	switch {
	case err == nil:
		return verdict{category: Unexpected, by: byNothing}
	case s.own != nil:
		return verdict{category: s.own.Category.known().category, by: byOwn}
	case s.canceled:
		return verdict{category: Unexpected, by: byCancel}
	}
	if c, ok := origin.decides(); ok {
		return verdict{category: c, by: byOrigin, also: bit(s.typed)}
	}
	if c, ok := OfStatus(s.status); ok {
		return verdict{category: c, by: byStatus, also: bit(s.typed)}
	}
	if s.typed != "" && origin.allows(s.typed) {
		return verdict{category: s.typed, by: byType}
	}
	v, ok := decideText(err, origin, 0)
	if !ok {
		return verdict{category: Unexpected, by: byNothing}
	}
	return v
}

// decideText reads type names and messages from the innermost error outwards.
func decideText(err error, origin Origin, depth int) (verdict, bool) {
	text := err.Error()
	if depth < maxDepth {
		for _, inner := range causes(err) {
			if inner == nil {
				continue
			}
			if v, ok := decideText(inner, origin, depth+1); ok {
				return v, true
			}
			// What the cause says was read just now.
			text = strings.TrimSuffix(text, inner.Error())
		}
	}
	if v, ok := decideNamed(matchType(typeName(err)), 0, origin); ok {
		return v, true
	}
	return decideWords(text, origin)
}

// typeName is the qualified name of the error's type.
func typeName(err error) string { return reflect.TypeOf(err).String() }
