package patch

import "bytes"

// reindent finds how the file's indentation relates to the hunk's at a match
// that ignored white space, and returns the rule for its new lines. It reports
// false when the two do not relate in one clear way.
func (s *source) reindent(h *Hunk, at int) (func([]byte) ([]byte, bool), bool) {
	rule := newIndentRule()
	i := at
	for _, l := range h.Lines {
		if l.Kind == '+' {
			continue
		}
		if !blank(l.Text) && !rule.learn(indentOf(l.Text), indentOf(s.text(i))) {
			return nil, false
		}
		i++
	}
	for _, l := range h.Lines {
		if l.Kind != '+' || blank(l.Text) {
			continue
		}
		if _, ok := rule.apply(l.Text); !ok {
			return nil, false
		}
	}
	return rule.apply, true
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
