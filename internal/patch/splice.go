package patch

import (
	"bytes"
	"slices"
	"sort"
)

// edit replaces data[from:to] by text.
type edit struct {
	from, to int
	text     []byte
}

// splice applies non-overlapping edits and proves that every byte outside them
// is unchanged.
func splice(path string, data []byte, edits []edit) ([]byte, *Error) {
	edits = append([]edit(nil), edits...)
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].from < edits[j].from })
	size := len(data)
	edits = slices.CompactFunc(edits, sameEdit)
	for i, e := range edits {
		if i > 0 && e.from < edits[i-1].to {
			return nil, refuse(GatePlace, ReasonOverlap, path, "two edits change the same lines of %s", path)
		}
		size += len(e.text) - (e.to - e.from)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(out, data[at:e.from]...)
		out = append(out, e.text...)
		at = e.to
	}
	out = append(out, data[at:]...)
	if !untouched(data, out, edits) {
		return nil, refuse(GatePlace, ReasonPostcondition, path, "an edit of %s would have changed other bytes", path)
	}
	return out, nil
}

// sameEdit says that two hunks make the same change of the same lines: the
// answer says it twice, and it is made once. Insertions are kept apart.
func sameEdit(a, b edit) bool {
	return a.from == b.from && a.to == b.to && a.from < a.to && bytes.Equal(a.text, b.text)
}

// untouched walks old and new in step over everything that no edit covers.
func untouched(old, after []byte, edits []edit) bool {
	i, j := 0, 0
	for _, e := range edits {
		n := e.from - i
		if n < 0 || j+n > len(after) || !bytes.Equal(old[i:e.from], after[j:j+n]) {
			return false
		}
		i, j = e.to, j+n+len(e.text)
	}
	return j <= len(after) && bytes.Equal(old[i:], after[j:])
}

// placement is where and how a hunk matched.
type placement struct {
	// at is the index of the first old line.
	at int
	// literal says that the hunk's lines hold the file's own CRs, so that the
	// new lines' line ends are meant as they are.
	literal bool
}

// spans turns a placed hunk into edits of the lines that really change; every
// context line keeps its bytes.
func (s *source) spans(h *Hunk, p placement) []edit {
	var out []edit
	at := p.at
	for i := 0; i < len(h.Lines); {
		if h.Lines[i].Kind == ' ' {
			i, at = i+1, at+1
			continue
		}
		var adds []Line
		first := at
		for ; i < len(h.Lines) && h.Lines[i].Kind != ' '; i++ {
			if h.Lines[i].Kind == '-' {
				at++
			} else {
				adds = append(adds, h.Lines[i])
			}
		}
		out = append(out, s.replace(h, p, first, at, adds))
	}
	return out
}

// replace makes the edit that puts adds in the place of lines [first, last).
func (s *source) replace(h *Hunk, p placement, first, last int, adds []Line) edit {
	e := edit{from: s.offset(first), to: s.offset(last)}
	atEnd := last == s.size()
	if atEnd && first == last && first > 0 && len(s.eol(first-1)) == 0 && len(adds) > 0 {
		e.text = append(e.text, s.usualEOL()...)
	}
	for k, l := range adds {
		text := l.Text
		eol := s.lineEnd(first, last, k)
		if p.literal {
			text, eol = literalEnd(text)
		}
		if atEnd && k == len(adds)-1 {
			eol = s.finalEnd(h, eol)
		}
		e.text = append(append(e.text, text...), eol...)
	}
	return e
}

// lineEnd is the line end of the k-th new line: that of the line it replaces,
// else of the line above, else of the one below.
func (s *source) lineEnd(first, last, k int) []byte {
	var eol []byte
	switch {
	case last > first:
		eol = s.eol(min(first+k, last-1))
	case first > 0:
		eol = s.eol(first - 1)
	case first < s.size():
		eol = s.eol(first)
	}
	if len(eol) > 0 {
		return eol
	}
	if first > 0 && len(s.eol(first-1)) > 0 {
		return s.eol(first - 1)
	}
	return s.usualEOL()
}

func literalEnd(text []byte) (line, eol []byte) {
	if bytes.HasSuffix(text, []byte("\r")) {
		return text[:len(text)-1], []byte("\r\n")
	}
	return text, []byte("\n")
}

// finalEnd decides about the line end of the file's last line: the hunk's
// markers when it has some, else the file stays as it was.
func (s *source) finalEnd(h *Hunk, eol []byte) []byte {
	oldMarked, newMarked := false, false
	for _, l := range h.Lines {
		oldMarked = oldMarked || (l.NoEOL && l.Kind != '+')
		newMarked = newMarked || (l.NoEOL && l.Kind != '-')
	}
	switch {
	case newMarked:
		return nil
	case oldMarked:
		return eol
	case s.size() > 0 && len(s.eol(s.size()-1)) == 0:
		return nil
	}
	return eol
}
