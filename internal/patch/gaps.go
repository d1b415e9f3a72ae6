package patch

import (
	"bytes"
	"path"
	"strings"
)

// gapNote is the tolerance of a match that leaves lines out.
const gapNote = "blank and comment lines that the answer leaves out were kept"

// bridge finds the places at which a hunk's old side is in the file but for
// blank lines and whole-line comments that the answer leaves out. Each place is
// given as a hunk with those lines as context, so that they stay.
func (s *source) bridge(name string, h *Hunk) (found []int, full []*Hunk) {
	first, lines := -1, 0
	for i, l := range h.Lines {
		if l.Kind != '+' && !blank(l.Text) {
			if lines++; first < 0 {
				first = i
			}
		}
	}
	if lines < 2 || h.AtEOF {
		return nil, nil // one line alone has no gap
	}
	skip := commentMark(name)
	for at := range s.size() {
		if !equalLine(s.text(at), h.Lines[first].Text) {
			continue
		}
		if v := s.bridged(h, at, skip); v != nil {
			found, full = append(found, at), append(full, v)
		}
	}
	return found, full
}

// bridged writes the hunk with the file's lines from at on, nil when they do
// not agree.
func (s *source) bridged(h *Hunk, at int, skip string) *Hunk {
	v := *h
	v.Lines = nil
	started := false
	for _, l := range h.Lines {
		switch {
		case l.Kind == '+':
			v.Lines = append(v.Lines, l)
			continue
		case blank(l.Text):
			if started && at < s.size() && blank(s.text(at)) {
				v.Lines = append(v.Lines, Line{Kind: l.Kind, Text: s.text(at)})
				at++
			}
			continue
		}
		for started && at < s.size() && !equalLine(s.text(at), l.Text) && s.skippable(at, skip) {
			v.Lines = append(v.Lines, Line{Kind: ' ', Text: s.text(at)})
			at++
		}
		if at >= s.size() || !equalLine(s.text(at), l.Text) {
			return nil
		}
		l.Text, started = s.text(at), true
		v.Lines = append(v.Lines, l)
		at++
	}
	return &v
}

func (s *source) skippable(i int, mark string) bool {
	text := bytes.TrimSpace(s.text(i))
	return len(text) == 0 || (mark != "" && bytes.HasPrefix(text, []byte(mark)))
}

// equalLine compares up to white space, but for the indentation.
func equalLine(a, b []byte) bool {
	return bytes.Equal(fold(a), fold(b)) && bytes.Equal(indentOf(a), indentOf(b))
}

// commentMark starts a whole-line comment in the file's language, "" where it
// is not known.
func commentMark(name string) string {
	ext := path.Ext(name)
	switch {
	case ext == "":
		return ""
	case strings.Contains(" .py .pyi .sh .bash .rb .pl .r .yaml .yml .toml .tf .ex .exs ", " "+ext+" "):
		return "#"
	case strings.Contains(" .go .js .jsx .mjs .cjs .ts .tsx .mts .cts .java .c .h .cc .cpp .cxx .hpp .cs .kt .rs"+
		" .swift .scala .dart .php ", " "+ext+" "):
		return "//"
	case strings.Contains(" .sql .lua .hs ", " "+ext+" "):
		return "--"
	}
	return ""
}
