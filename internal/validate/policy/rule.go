package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Severity is how much a finding weighs.
type Severity string

// The severities, lightest first. Off takes a rule out of the set.
const (
	Off      Severity = "off"
	Info     Severity = "info"
	Minor    Severity = "minor"
	Major    Severity = "major"
	Critical Severity = "critical"
)

// Blocks reports whether a finding of this weight needs a person: anything
// that is not known to be lighter does.
func (s Severity) Blocks() bool { return s != Info && s != Minor && s != Off }

// The kinds of change that Rule.Change names.
const (
	Created    = "created"
	Deleted    = "deleted"
	Mode       = "mode"
	Executable = "executable"
)

// Rule finds one kind of thing in a change. Exactly one of Added, Removed,
// Change and Most says what.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message,omitempty"`
	// Paths are the globs of the files that it looks at, default all; Except
	// those of the files that it leaves out. A glob without a slash is held
	// against the base name; ** stands for any number of folders.
	Paths  []string `json:"paths,omitempty"`
	Except []string `json:"except,omitempty"`
	// Added and Removed are RE2 expressions for one line.
	Added   string `json:"added,omitempty"`
	Removed string `json:"removed,omitempty"`
	// Change is one of the kinds of change.
	Change string `json:"change,omitempty"`
	Most   *Most  `json:"most,omitempty"`

	paths, except []*regexp.Regexp
	added, gone   *pattern
}

// Most bounds a whole change; what is 0 has no bound.
type Most struct {
	Files int   `json:"files,omitempty"`
	Bytes int64 `json:"bytes,omitempty"`
}

// maxProgram bounds the length of an expression, so that a set is quick.
const maxProgram = 2000

// compile makes a rule ready, or says what is wrong with it.
func (r *Rule) compile() error {
	var err error
	expr := func(text string) *pattern {
		if text == "" {
			return nil
		}
		if len(text) > maxProgram {
			err = errors.Join(err, fmt.Errorf("an expression has %d characters, at most %d may be", len(text), maxProgram))
			return nil
		}
		p, problem := compile(text)
		err = errors.Join(err, problem)
		return p
	}
	r.added, r.gone = expr(r.Added), expr(r.Removed)
	globs := func(list []string) (out []*regexp.Regexp) {
		for _, g := range list {
			re, problem := regexp.Compile(glob(g))
			err = errors.Join(err, problem)
			out = append(out, re)
		}
		return out
	}
	r.paths, r.except = globs(r.Paths), globs(r.Except)
	if err != nil {
		return fmt.Errorf("rule %s: %w", r.ID, err)
	}
	return nil
}

// glob writes a glob as an expression for a whole path.
func glob(g string) string {
	var b strings.Builder
	b.WriteString("^")
	if !strings.Contains(g, "/") {
		b.WriteString("(?:.*/)?")
	}
	for i := 0; i < len(g); i++ {
		switch {
		case strings.HasPrefix(g[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(g[i:], "**"):
			b.WriteString(".*")
			i++
		case g[i] == '*':
			b.WriteString("[^/]*")
		case g[i] == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(g[i : i+1]))
		}
	}
	b.WriteString("$")
	return b.String()
}

// looksAt reports whether the rule is about the file.
func (r *Rule) looksAt(path string) bool {
	hit := func(re *regexp.Regexp) bool { return re.MatchString(path) }
	return (len(r.paths) == 0 || slices.ContainsFunc(r.paths, hit)) && !slices.ContainsFunc(r.except, hit)
}

// finding is what the rule says about a place.
func (r *Rule) finding(path string, line int, detail string) Finding {
	msg := r.Message
	if msg == "" {
		msg = "rule " + r.ID
	}
	if detail != "" {
		msg += " (" + detail + ")"
	}
	return Finding{Rule: r.ID, Severity: r.Severity, Path: path, Line: line, Message: msg}
}
