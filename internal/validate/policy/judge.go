package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"nexuscore.dev/nexus/internal/patch"
)

// Change is one changed file. Old is nil for a new one, New for a deleted one.
type Change struct {
	Path             string
	Old, New         []byte
	OldMode, NewMode uint32
}

// Finding is a place that a rule speaks of.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path,omitempty"`
	// Line is the line of the new file, or of the old one for what is gone;
	// 0 for the file or the change as a whole.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// String reads as path:line: message [rule, severity].
func (f Finding) String() string {
	where := ""
	if f.Path != "" {
		where = f.Path + ": "
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d: ", f.Path, f.Line)
		}
	}
	return fmt.Sprintf("%s%s [%s, %s]", where, f.Message, f.Rule, f.Severity)
}

// ErrSlow says that the rules did not come to an end in time.
var ErrSlow = errors.New("policy: the rules took too long")

// MaxTime is how long a set may take for one change. The default rules take
// about a second for the largest that they let pass, a line of 1 MiB.
const MaxTime = 30 * time.Second

// Judge lists what the rules find in a change, each rule once for each file; a
// change beyond the bounds of a rule that blocks is not read line by line.
// It fails with ErrSlow when ctx, or MaxTime, ends first, and for a set
// without rules; what was found until then comes with the error.
func (s *Set) Judge(ctx context.Context, changes []Change) ([]Finding, error) {
	if s == nil || len(s.rules) == 0 {
		return nil, errors.New("policy: the set holds no rule")
	}
	limited, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	var out []Finding
	for i := range s.rules {
		if r := &s.rules[i]; r.Most != nil {
			out = append(out, r.bounds(changes)...)
		}
	}
	if len(Blocking(out)) > 0 {
		return out, nil // too much to read, and a person's to judge already
	}
	for _, c := range changes {
		d := differ(c)
		for i := range s.rules {
			f, err := s.rules[i].judge(limited, c, d)
			if err != nil {
				return out, errors.Join(ErrSlow, ctx.Err())
			}
			out = append(out, f...)
		}
	}
	return out, nil
}

// Blocking are the findings that need a person.
func Blocking(list []Finding) []Finding { return pick(list, true) }

// Notes are the findings that stand in no way.
func Notes(list []Finding) []Finding { return pick(list, false) }

func pick(list []Finding, blocks bool) []Finding {
	var out []Finding
	for _, f := range list {
		if f.Severity.Blocks() == blocks {
			out = append(out, f)
		}
	}
	return out
}

func (r *Rule) bounds(changes []Change) []Finding {
	files, size := 0, int64(0)
	for _, c := range changes {
		if r.looksAt(c.Path) {
			files++
			size += int64(len(c.New))
		}
	}
	var out []Finding
	if r.Most.Files > 0 && files > r.Most.Files {
		out = append(out, r.finding("", 0, fmt.Sprintf("%d files, at most %d", files, r.Most.Files)))
	}
	if r.Most.Bytes > 0 && size > r.Most.Bytes {
		out = append(out, r.finding("", 0, fmt.Sprintf("%d bytes, at most %d", size, r.Most.Bytes)))
	}
	return out
}

// line is a numbered line of one side.
type line struct {
	n    int
	text []byte
}

// diff holds the lines that only one side has, wherever they stand.
type diff struct{ added, gone []line }

func differ(c Change) diff {
	olds, news := cut(c.Old), cut(c.New)
	var d diff
	known := map[string]int{}
	for _, s := range patch.LineDiff(olds, news) {
		for i := s.OldFrom; i < s.OldTo; i++ {
			known[string(olds[i])]++
			d.gone = append(d.gone, line{i + 1, olds[i]})
		}
		for i := s.NewFrom; i < s.NewTo; i++ {
			d.added = append(d.added, line{i + 1, news[i]})
		}
	}
	// What only moved is neither new nor gone.
	moved := map[string]int{}
	d.added = without(d.added, known, moved)
	d.gone = without(d.gone, moved, map[string]int{})
	return d
}

// without drops the lines that known counts, and counts them in dropped.
func without(lines []line, known, dropped map[string]int) []line {
	var out []line
	for _, l := range lines {
		if known[string(l.text)] > 0 {
			known[string(l.text)]--
			dropped[string(l.text)]++
			continue
		}
		out = append(out, l)
	}
	return out
}

func cut(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	for i, l := range lines {
		lines[i] = bytes.TrimSuffix(l, []byte("\r"))
	}
	return lines
}

// judge looks at one file; it stops between two lines when ctx is done.
func (r *Rule) judge(ctx context.Context, c Change, d diff) ([]Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.Most != nil || !r.looksAt(c.Path) {
		return nil, nil
	}
	if r.Change != "" && c.is(r.Change) {
		return []Finding{r.finding(c.Path, 0, c.modes(r.Change))}, nil
	}
	for _, l := range d.added {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.added != nil && r.added.match(l.text) {
			return []Finding{r.finding(c.Path, l.n, "")}, nil
		}
	}
	for _, l := range d.gone {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.gone != nil && r.gone.match(l.text) {
			return []Finding{r.finding(c.Path, l.n, "")}, nil
		}
	}
	return nil, nil
}

// is reports whether the change is of a kind.
func (c Change) is(kind string) bool {
	had, has := c.Old != nil, c.New != nil
	switch kind {
	case Created:
		return !had && has
	case Deleted:
		return had && !has
	case Mode:
		return had && has && c.OldMode != c.NewMode
	case Executable:
		return !had && has && c.NewMode&0o111 != 0
	}
	return false
}

func (c Change) modes(kind string) string {
	switch kind {
	case Mode:
		return fmt.Sprintf("from %o to %o", c.OldMode, c.NewMode)
	case Executable:
		return fmt.Sprintf("mode %o", c.NewMode)
	}
	return ""
}
