package patch

import (
	"bytes"
	"fmt"
	"strings"
)

// The amount of a file that a refusal quotes.
const (
	quoteLines = 12
	quoteWidth = 160
)

// quote shows lines [from, to) with their numbers, as data for a model.
func (s *source) quote(from, to int) string {
	from, to = max(from, 0), min(to, s.size())
	to = min(to, from+quoteLines)
	var b strings.Builder
	for i := from; i < to; i++ {
		text := s.text(i)
		if len(text) > quoteWidth {
			text = append(bytes.Clone(text[:quoteWidth]), "…"...)
		}
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, strings.ToValidUTF8(string(text), "\ufffd"))
	}
	return b.String()
}

// missed explains a hunk that is not in the file, with the real lines that
// come nearest to it.
func missed(path string, s *source, h *Hunk) *Error {
	want := h.old()
	if h.Literal {
		want = splitText(h.Search)
	}
	if allBlank(want) {
		return refuse(GatePlace, ReasonNoContext, path,
			"the edit of %s does not say where it belongs; quote the lines around it", path)
	}
	if s.size() == 0 {
		return refuse(GatePlace, ReasonNoMatch, path, "%s is empty, so the quoted lines are not in it", path)
	}
	at := s.nearest(want)
	return refuse(GatePlace, ReasonNoMatch, path,
		"the quoted lines are not in %s. The nearest real lines are:\n%s", path, s.quote(at-2, at+len(want)+3))
}

func allBlank(lines [][]byte) bool {
	for _, l := range lines {
		if !blank(l) {
			return false
		}
	}
	return true
}

// nearest is the line at which most of the wanted lines are found, judged by
// the words they share. It serves the explanation only, never a placement.
func (s *source) nearest(want [][]byte) int {
	const mostWanted = 8
	if len(want) > mostWanted {
		want = want[:mostWanted]
	}
	words := make([]map[string]bool, len(want))
	for i, w := range want {
		words[i] = wordsOf(w)
	}
	score := make([]int, s.size()+1)
	for i := range s.size() {
		have := wordsOf(s.text(i))
		for k := range want {
			if i >= k {
				score[i-k] += shared(words[k], have)
			}
		}
	}
	best := 0
	for i, n := range score {
		if n > score[best] {
			best = i
		}
	}
	return best
}

func wordsOf(b []byte) map[string]bool {
	out := map[string]bool{}
	for _, w := range bytes.FieldsFunc(b, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r < 0x80
	}) {
		out[string(w)] = true
	}
	return out
}

// shared weighs common words by their length, so that names count for more
// than keywords.
func shared(a, b map[string]bool) int {
	n := 0
	for w := range a {
		if b[w] {
			n += 1 + len(w)
		}
	}
	return n
}
