package patch

import (
	"bytes"
	"slices"
)

// reindent gives the new lines of a hunk the file's indentation at a match that
// ignored white space. It reports false when the file's indentation and the
// hunk's do not relate in one clear way.
func (s *source) reindent(h *Hunk, at int) (*Hunk, bool) {
	if cut, indent, ok := s.lostIndent(h, at); ok {
		return h.restore(cut, indent)
	}
	old := h.old()
	rule, inside := newIndentRule(), continued(old)
	for i, text := range old {
		if !inside[i] && !blank(text) && !rule.learn(indentOf(text), indentOf(s.text(at+i))) {
			return nil, false
		}
	}
	fresh, _ := h.newSide()
	inside = continued(fresh)
	var from, to []byte // of the line that a continued line belongs to
	return h.mapNew(func(n int, text []byte) ([]byte, bool) {
		out, ok := rule.apply(text)
		switch {
		case ok && !inside[n]:
			from, to = indentOf(text), indentOf(out)
		case !ok && inside[n] && from != nil:
			return join(string(to), bytes.TrimPrefix(text, from)), true
		}
		return out, ok
	})
}

// mapNew rewrites the new lines that are not blank, counted from 0 together
// with the lines that stay.
func (h *Hunk) mapNew(rewrite func(n int, text []byte) ([]byte, bool)) (*Hunk, bool) {
	v, n := *h, 0
	v.Lines = slices.Clone(h.Lines)
	for i, l := range v.Lines {
		if l.Kind == '-' || blank(l.Text) {
			continue
		}
		if l.Kind == '+' {
			text, ok := rewrite(n, l.Text)
			if !ok {
				return nil, false
			}
			v.Lines[i].Text = text
		}
		n++
	}
	return &v, true
}

// lostIndent says whether the quoted lines are the file's but for the
// indentation of the very first, which was cut off with the text before it:
// cut is what is left of it, indent what the file has.
func (s *source) lostIndent(h *Hunk, at int) (cut, indent []byte, ok bool) {
	first := true
	for i, text := range h.old() {
		have, want := indentOf(text), indentOf(s.text(at+i))
		switch {
		case blank(text):
		case first:
			cut, indent, first = have, want, false
			ok = len(cut) < len(indent) && bytes.HasSuffix(indent, cut)
		case !bytes.Equal(have, want):
			return nil, nil, false
		}
	}
	return cut, indent, ok
}

// restore indents the new lines of a hunk that lost its first indentation.
// Either they lost it alike, in the first line alone, or they are indented as
// seen from the first line. The second line tells: after a line that opens a
// block it is deeper than that, after any other it is as deep. Where lines of
// the old text stay below, those of the file's depth are as they should be.
// A reading that makes no blocks gives way to the one as seen from the first
// line when that does.
func (h *Hunk) restore(cut, indent []byte) (*Hunk, bool) {
	near, ok := h.restoreAlike(cut, indent)
	if ok && near.nests(indent) {
		return near, true
	}
	seen, all := h.unstay().mapNew(func(_ int, text []byte) ([]byte, bool) {
		return join(string(indent), text[min(len(cut), len(text)):]), bytes.HasPrefix(text, cut)
	})
	if all && seen.nests(indent) {
		return seen, true
	}
	return near, ok
}

func (h *Hunk) restoreAlike(cut, indent []byte) (*Hunk, bool) {
	fresh, stays := h.newSide()
	alike := len(fresh) > 1 && len(indentOf(fresh[1])) > len(cut)
	if alike && opensBlock(fresh[0]) {
		alike = stays || len(indentOf(fresh[1])) > len(indent)
	}
	return h.mapNew(func(n int, text []byte) ([]byte, bool) {
		in := indentOf(text)
		switch {
		case n == 0 && bytes.Equal(in, indent), n > 0 && alike, stays && len(in) >= len(indent):
			return text, true
		}
		return join(string(indent), text[min(len(cut), len(in)):]), bytes.HasPrefix(in, cut)
	})
}

// newSide lists the lines of the new side that are not blank. stays says that
// it has lines of the old side other than the first of that.
func (h *Hunk) newSide() (fresh [][]byte, stays bool) {
	old := 0
	for _, l := range h.Lines {
		if blank(l.Text) {
			continue
		}
		stays = stays || (l.Kind == ' ' && old > 0)
		if l.Kind != '+' {
			old++
		}
		if l.Kind != '-' {
			fresh = append(fresh, l.Text)
		}
	}
	return fresh, stays
}

// continued says of each line whether it stands inside brackets that a line
// above has opened. Its indentation is for the eye: it proves nothing.
func continued(lines [][]byte) []bool {
	out := make([]bool, len(lines))
	depth := 0
	for i, l := range lines {
		out[i] = depth > 0
		var quote byte
		for k := 0; k < len(l); k++ {
			switch c := l[k]; {
			case c == '\\':
				k++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '(' || c == '[':
				depth++
			case c == ')' || c == ']':
				depth = max(depth-1, 0)
			}
		}
	}
	return out
}

func opensBlock(line []byte) bool {
	line = trimRight(line)
	return len(line) > 0 && bytes.IndexByte([]byte(":{([,"), line[len(line)-1]) >= 0
}

// indentRule maps indentations of an answer to those of the file.
type indentRule struct {
	pairs map[string]string
	order []string
}

func newIndentRule() *indentRule { return &indentRule{pairs: map[string]string{}} }

// learn records one pair; it reports false when the same indentation would
// have to become two different ones.
func (r *indentRule) learn(from, to []byte) bool {
	if known, ok := r.pairs[string(from)]; ok {
		return known == string(to)
	}
	r.pairs[string(from)] = string(to)
	r.order = append(r.order, string(from))
	return true
}

// apply gives a line the file's indentation: a known pair, else the same
// shift as everywhere, else the same change of the unit (spaces for tabs).
func (r *indentRule) apply(text []byte) ([]byte, bool) {
	in := indentOf(text)
	rest := text[len(in):]
	if to, ok := r.pairs[string(in)]; ok {
		return join(to, rest), true
	}
	if to, ok := r.shift(in); ok {
		return join(to, rest), true
	}
	if to, ok := r.rescale(in); ok {
		return join(to, rest), true
	}
	return nil, false
}

func join(indent string, rest []byte) []byte { return append([]byte(indent), rest...) }

// shift applies when every pair adds, or removes, the same prefix.
func (r *indentRule) shift(in []byte) (string, bool) {
	added, removed := "", ""
	for i, from := range r.order {
		to := r.pairs[from]
		var add, cut string
		switch {
		case bytes.HasSuffix([]byte(to), []byte(from)):
			add = to[:len(to)-len(from)]
		case bytes.HasSuffix([]byte(from), []byte(to)):
			cut = from[:len(from)-len(to)]
		default:
			return "", false
		}
		if i > 0 && (add != added || cut != removed) {
			return "", false
		}
		added, removed = add, cut
	}
	if removed == "" {
		return added + string(in), len(r.order) > 0
	}
	if !bytes.HasPrefix(in, []byte(removed)) {
		return "", false
	}
	return string(in[len(removed):]), true
}

// rescale applies when the answer uses one unit of indentation throughout and
// the file another: n spaces for a tab, a tab for n spaces, or n for m spaces.
func (r *indentRule) rescale(in []byte) (string, bool) {
	for _, from := range r.order {
		to := r.pairs[from]
		if from == "" || to == "" {
			continue
		}
		for unit := 1; unit <= len(from); unit++ {
			if out, ok := r.tryUnit(in, from[:unit], to, len(from)/unit); ok {
				return out, true
			}
		}
	}
	return "", false
}

func (r *indentRule) tryUnit(in []byte, unit, to string, levels int) (string, bool) {
	if len(to)%levels != 0 {
		return "", false
	}
	target := to[:len(to)/levels]
	for from, want := range r.pairs {
		if got, ok := rewrite([]byte(from), unit, target); !ok || got != want {
			return "", false
		}
	}
	return rewrite(in, unit, target)
}

func rewrite(in []byte, unit, target string) (string, bool) {
	if len(in)%len(unit) != 0 {
		return "", false
	}
	out := ""
	for i := 0; i < len(in); i += len(unit) {
		if string(in[i:i+len(unit)]) != unit {
			return "", false
		}
		out += target
	}
	return out, true
}
