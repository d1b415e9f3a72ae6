package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// tier is how much a match may differ from the file.
type tier int

const (
	tierRaw   tier = iota // the file's bytes, CR included
	tierText              // up to the line ends
	tierTrim              // up to white space at the end of a line
	tierSpace             // up to white space
)

func (t tier) String() string {
	switch t {
	case tierRaw, tierText:
		return ""
	case tierTrim:
		return "white space at the end of lines ignored"
	case tierSpace:
	}
	return "white space ignored, the file's indentation kept"
}

// locate finds the only place of a hunk and makes its edits. The note names
// the tolerance that was used. The hunk is the nth of all that are the same.
func locate(path string, s *source, h *Hunk, nth, all int) ([]edit, string, *Error) {
	if h.Literal {
		edits, err := locateText(path, s, h, nth, all)
		if err != nil && err.Reason != ReasonNoMatch {
			return nil, "", err
		}
		if err == nil {
			return edits, "", nil
		}
	}
	forms := variants(h)
	for t := tierRaw; t <= tierSpace; t++ {
		for _, v := range forms {
			found := s.find(v.hunk.old(), t, h.AtEOF)
			if len(found) == 0 {
				continue
			}
			found, made := nthOf(found, nth, all)
			if made {
				return nil, "", nil
			}
			return settle(path, s, v, t, found)
		}
	}
	for _, v := range forms {
		found, full := s.bridge(path, v.hunk)
		switch {
		case len(found) > 1:
			return nil, "", ambiguous(path, s, v.hunk, found)
		case len(found) == 1:
			return s.spans(full[0], placement{at: found[0]}), joinNotes(v.note, gapNote), nil
		}
	}
	return nil, "", missed(path, s, h)
}

// nthOf picks the place of the nth of several equal hunks. made says that the
// one place there is has had its edit already.
func nthOf(found []int, nth, all int) (place []int, made bool) {
	switch {
	case len(found) == all:
		return found[nth : nth+1], false
	case len(found) == 1 && nth > 0:
		return nil, true
	}
	return found, false
}

// old is the hunk's old side.
func (h *Hunk) old() [][]byte {
	out := make([][]byte, 0, len(h.Lines))
	for _, l := range h.Lines {
		if l.Kind != '+' {
			out = append(out, l.Text)
		}
	}
	return out
}

// hasCR says whether the hunk shows line ends of the file.
func (h *Hunk) hasCR() bool {
	for _, l := range h.Lines {
		if bytes.HasSuffix(l.Text, []byte("\r")) {
			return true
		}
	}
	return false
}

// variant is one reading of a hunk.
type variant struct {
	hunk *Hunk
	note string
}

// find lists the indexes at which want matches whole lines.
func (s *source) find(want [][]byte, t tier, atEOF bool) []int {
	n := len(want)
	if n == 0 {
		if atEOF || s.size() == 0 {
			return []int{s.size()}
		}
		return nil
	}
	key, get := s.keys(want, t)
	pivot := rarest(key)
	var out []int
	for i := s.next(key[pivot], pivot, t, get); i >= 0 && i+n-pivot <= s.size(); i = s.next(key[pivot], i+1, t, get) {
		at := i - pivot
		k := 0
		for k < n && bytes.Equal(get(at+k), key[k]) {
			k++
		}
		if k == n && (!atEOF || at+n == s.size()) {
			out = append(out, at)
		}
	}
	return out
}

// next is the first line from i on that equals key, -1 when there is none. The
// exact tiers have no forms to ask for, so they compare in a tight loop.
func (s *source) next(key []byte, i int, t tier, get func(int) []byte) int {
	if t <= tierText {
		return s.nextExact(key, i, t == tierRaw)
	}
	for ; i < s.size(); i++ {
		if bytes.Equal(get(i), key) {
			return i
		}
	}
	return -1
}

// nextExact compares lengths first: most lines differ in it.
func (s *source) nextExact(key []byte, i int, raw bool) int {
	n := len(key)
	for last := s.size(); i < last; i++ {
		at := s.starts[i]
		if more := s.starts[i+1] - at - n; more < 0 || more > 2 {
			continue
		}
		if bytes.Equal(s.data[at:at+n], key) && isEnd(s.data[at+n:s.starts[i+1]], raw) {
			return i
		}
	}
	return -1
}

// isEnd says whether b is a line end, or the end of the file; raw takes the CR
// of a CRLF for text.
func isEnd(b []byte, raw bool) bool {
	switch len(b) {
	case 0:
		return true
	case 1:
		return b[0] == '\n'
	}
	return !raw && string(b) == "\r\n"
}

// keys gives both sides of a comparison in the form that the tier compares.
func (s *source) keys(want [][]byte, t tier) ([][]byte, func(int) []byte) {
	key := make([][]byte, len(want))
	for i, w := range want {
		switch t {
		case tierRaw:
			key[i] = w
		case tierText:
			key[i] = bytes.TrimSuffix(w, []byte("\r"))
		case tierTrim:
			key[i] = trimRight(w)
		case tierSpace:
			key[i] = fold(w)
		}
	}
	switch t {
	case tierRaw:
		return key, s.raw
	case tierText:
		return key, s.text
	case tierTrim:
		forms := s.trims()
		return key, func(i int) []byte { return forms[i] }
	case tierSpace:
	}
	forms := s.folds()
	return key, func(i int) []byte { return forms[i] }
}

// rarest picks the line that is likely to occur least: the longest.
func rarest(lines [][]byte) int {
	best := 0
	for i, l := range lines {
		if len(l) > len(lines[best]) {
			best = i
		}
	}
	return best
}

// settle chooses among the matches of one tier: the only one, the only one
// below the hunk's anchors, or the one at the exact line that a right header
// states. Everything else is ambiguous.
func settle(path string, s *source, v variant, t tier, found []int) ([]edit, string, *Error) {
	h := v.hunk
	note := joinNotes(v.note, t.String())
	if from, to, ok := s.below(h.Anchors); ok {
		inside := slices.DeleteFunc(slices.Clone(found), func(i int) bool { return i < from || i >= to })
		switch {
		case len(inside) > 0 && len(found) > 1:
			found = inside
			note = joinNotes(note, "placed by its heading")
		case len(inside) > 0:
		case h.Start == 0 && found[len(found)-1]+len(h.old()) <= from:
			return nil, "", refuse(GatePlace, ReasonNoMatch, path,
				"the quoted lines are not below %q in %s but above it, at line %d; quote the lines of the place you mean",
				bytes.TrimSpace(h.Anchors[len(h.Anchors)-1]), path, found[0]+1)
		default:
			note = joinNotes(note, "the lines are not below the stated heading")
		}
	}
	if len(found) > 1 && h.Counted && h.Start > 0 && t <= tierText {
		for _, at := range found {
			if at == h.Start-1 {
				note = joinNotes(note, fmt.Sprintf("the lines occur %d times, placed by the stated line number", len(found)))
				found = []int{at}
				break
			}
		}
	}
	if len(found) > 1 {
		return nil, "", ambiguous(path, s, h, found)
	}
	p := placement{at: found[0], literal: t == tierRaw && !h.Literal && h.hasCR()}
	if t == tierSpace {
		placed, ok := s.reindent(h, found[0])
		if !ok {
			return nil, "", refuse(GatePlace, ReasonIndentation, path,
				"the lines at %d of %s have another indentation than the answer quotes; quote them exactly:\n%s",
				found[0]+1, path, s.quote(found[0], found[0]+len(h.old())))
		}
		h = placed
	}
	return s.spans(h, p), note, nil
}

func joinNotes(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}

// below is the block that the last anchor opens. An anchor that is not unique
// says nothing.
func (s *source) below(anchors [][]byte) (from, to int, ok bool) {
	from, to = 0, s.size()
	for _, a := range anchors {
		key := fold(a)
		at, n := -1, 0
		for i := from; i < to; i++ {
			if bytes.Equal(s.folds()[i], key) {
				at, n = i, n+1
			}
		}
		if n != 1 {
			return 0, 0, false
		}
		from, to = at, s.blockEnd(at, to)
	}
	return from, to, len(anchors) > 0
}

// blockEnd is the first line after at that is not indented deeper.
func (s *source) blockEnd(at, limit int) int {
	depth := len(indentOf(s.text(at)))
	for i := at + 1; i < limit; i++ {
		if text := s.text(i); !blank(text) && len(indentOf(text)) <= depth {
			return i
		}
	}
	return limit
}

func ambiguous(path string, s *source, h *Hunk, found []int) *Error {
	const most = 10
	numbers := make([]string, 0, most)
	var quoted strings.Builder
	n := max(len(h.old()), 1)
	for i, at := range found {
		if i == most {
			numbers = append(numbers, "…")
			break
		}
		numbers = append(numbers, fmt.Sprint(at+1))
		if i < 3 {
			fmt.Fprintf(&quoted, "\n%s", s.quote(at-1, at+n+1))
		}
	}
	return refuse(GatePlace, ReasonAmbiguous, path,
		"the quoted lines occur %d times in %s (lines %s); quote more of the lines around the one you mean:%s",
		len(found), path, strings.Join(numbers, ", "), quoted.String())
}
