package patch

import (
	"bytes"
	"strconv"
)

// variants lists the readings of a hunk, the plainest first: as it stands,
// with the leading space of context lines taken as part of the text (a model
// forgot the format's own space), and without copied line numbers.
func variants(h *Hunk) []variant {
	if h.Literal {
		h = linesOfText(h)
	}
	out := []variant{{hunk: h}}
	if b := unmarked(h); b != nil {
		out = append(out, variant{b, "context lines lacked their leading space"})
	}
	if n := unnumbered(h); n != nil {
		out = append(out, variant{n, "line numbers copied into the edit were dropped"})
	}
	return out
}

// linesOfText reads a search and replace pair as whole lines.
func linesOfText(h *Hunk) *Hunk {
	v := *h
	v.Lines = diffHunk(splitText(h.Search), splitText(h.Replace)).Lines
	return &v
}

// unmarked gives context lines their first space back where a bare line shows
// that the model left the marks out.
func unmarked(h *Hunk) *Hunk {
	bare := false
	for _, l := range h.Lines {
		bare = bare || l.Bare
	}
	if !bare {
		return nil
	}
	v := *h
	v.Lines = make([]Line, len(h.Lines))
	for i, l := range h.Lines {
		if l.Kind == ' ' && !l.Bare && len(l.Text) > 0 {
			l.Text = append([]byte{' '}, l.Text...)
		}
		v.Lines[i] = l
	}
	return &v
}

// unnumbered drops line numbers when every line carries one and those of the
// old side count up by one.
func unnumbered(h *Hunk) *Hunk {
	v := *h
	v.Lines = make([]Line, len(h.Lines))
	last := -1
	for i, l := range h.Lines {
		n, rest, ok := cutNumber(l.Text)
		if !ok {
			return nil
		}
		if l.Kind != '+' {
			if last >= 0 && n != last+1 {
				return nil
			}
			last = n
		}
		l.Text = rest
		v.Lines[i] = l
	}
	if last < 0 {
		return nil
	}
	return &v
}

// cutNumber splits "   12\ttext", "12|text" and "12: text".
func cutNumber(b []byte) (n int, rest []byte, ok bool) {
	t := bytes.TrimLeft(b, " ")
	end := 0
	for end < len(t) && t[end] >= '0' && t[end] <= '9' {
		end++
	}
	if end == 0 || end > 7 || end == len(t) {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(t[:end]))
	if err != nil {
		return 0, nil, false
	}
	rest = t[end:]
	switch {
	case rest[0] == '\t' || rest[0] == '|':
		return n, rest[1:], true
	case bytes.HasPrefix(rest, []byte("→")):
		return n, rest[len("→"):], true
	case bytes.HasPrefix(rest, []byte(": ")):
		return n, rest[2:], true
	case len(rest) == 1 && rest[0] == ':':
		return n, nil, true
	}
	return 0, nil, false
}

// locateText finds the only exact occurrence of a search text, inside a line
// or over several.
func locateText(path string, s *source, h *Hunk, nth, all int) ([]edit, *Error) {
	if len(h.Search) == 0 {
		if blank(s.data) {
			return []edit{{from: 0, to: len(s.data), text: h.Replace}}, nil
		}
		return nil, refuse(GatePlace, ReasonNoContext, path,
			"the search text is empty and %s is not; quote the lines to change", path)
	}
	var found []int
	for at := 0; ; {
		i := bytes.Index(s.data[at:], h.Search)
		if i < 0 {
			break
		}
		found = append(found, at+i)
		at += i + 1
	}
	found, made := nthOf(found, nth, all)
	switch len(found) {
	case 0:
		if made {
			return nil, nil
		}
		return nil, refuse(GatePlace, ReasonNoMatch, path, "the search text is not in %s", path)
	case 1:
		text := h.Replace
		if s.crlfAt(found[0]) && !bytes.Contains(text, []byte("\r\n")) && !bytes.Contains(h.Search, []byte("\n")) {
			text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
		}
		return []edit{trimEdit(s.data, edit{found[0], found[0] + len(h.Search), text})}, nil
	}
	at, line, from := make([]int, len(found)), 0, 0
	for i, f := range found {
		line += bytes.Count(s.data[from:f], []byte("\n"))
		at[i], from = line, f
	}
	return nil, ambiguous(path, s, &Hunk{}, at)
}

// trimEdit leaves equal bytes at both ends out of an edit.
func trimEdit(data []byte, e edit) edit {
	for e.from < e.to && len(e.text) > 0 && data[e.from] == e.text[0] {
		e.from, e.text = e.from+1, e.text[1:]
	}
	for e.from < e.to && len(e.text) > 0 && data[e.to-1] == e.text[len(e.text)-1] {
		e.to, e.text = e.to-1, e.text[:len(e.text)-1]
	}
	return e
}

func (s *source) crlfAt(offset int) bool {
	i := bytes.IndexByte(s.data[offset:], '\n')
	if i < 0 {
		return bytes.Equal(s.usualEOL(), []byte("\r\n"))
	}
	return offset+i > 0 && s.data[offset+i-1] == '\r'
}
