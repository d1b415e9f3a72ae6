package validate

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"

	"nexuscore.dev/nexus/internal/patch"
)

// noProse refuses files into which a model wrote sentences instead of code.
func (c *check) noProse() *refusal {
	for _, f := range c.files {
		if f.Op == patch.OpDelete || isText(f.Path) {
			continue
		}
		if r := f.prose(); r != nil {
			return r
		}
	}
	return nil
}

func (f *file) prose() *refusal {
	if f.python != nil {
		if r := f.wordyPython(); r != nil {
			return r
		}
	}
	if f.syntax.checked && f.syntax.err == nil {
		return nil
	}
	fresh := f.fresh()
	if f.syntax.err != nil {
		if n, line, ok := f.sentenceNear(fresh, f.syntax.err.Line); ok {
			return refuse(GateProse, "sentence", "%s:%d is prose, not code: %q; answer with code only", f.Path, n, line)
		}
		return nil
	}
	// Without a parser only the ends of a whole body are suspicious: that is
	// where a model talks to its reader.
	for _, n := range ends(f.lines) {
		if fresh[n] && (chatty.Match(f.lines[n]) || isSentence(f.lines[n]) && bodyOnly(f)) {
			return refuse(GateProse, "sentence", "%s:%d is prose, not code: %q; answer with code only",
				f.Path, n+1, clip(f.lines[n]))
		}
	}
	if n := f.spoken(fresh); n >= 0 {
		return refuse(GateProse, "sentence", "%s:%d is prose, not code: %q; answer with code only",
			f.Path, n+1, clip(f.lines[n]))
	}
	return nil
}

// wordyPython refuses modules without a statement and new statements that are
// mere words: "Done", "not fixed", a sentence in Japanese.
func (f *file) wordyPython() *refusal {
	if f.python.Statements == 0 && f.python.Error == nil && f.Op == patch.OpModify && hasStatements(f.olds) {
		return refuse(GateProse, "empty_module", "%s would hold no statement at all; answer with the complete code", f.Path)
	}
	if len(f.python.Bare) > 0 {
		n := f.python.Bare[0]
		return refuse(GateProse, "bare_words", "%s:%d is not code that does anything: %q; answer with code only",
			f.Path, n, clip(lineAt(f.lines, n)))
	}
	return nil
}

// hasStatements says whether a Python text has a line that is neither blank
// nor a comment.
func hasStatements(lines [][]byte) bool {
	for _, l := range lines {
		if t := bytes.TrimSpace(l); len(t) > 0 && t[0] != '#' {
			return true
		}
	}
	return false
}

func lineAt(lines [][]byte, n int) []byte {
	if n < 1 || n > len(lines) {
		return nil
	}
	return lines[n-1]
}

// fresh marks the lines that the base does not have in the same place.
func (f *file) fresh() map[int]bool {
	out := map[int]bool{}
	for _, s := range f.spans {
		for i := s.NewFrom; i < s.NewTo; i++ {
			out[i] = true
		}
	}
	return out
}

// sentenceNear looks for a new sentence at the place of a syntax error, else
// at both ends of the file.
func (f *file) sentenceNear(fresh map[int]bool, line int) (int, string, bool) {
	near := []int{line - 1, line - 2, line}
	for _, n := range append(near, ends(f.lines)...) {
		if n >= 0 && n < len(f.lines) && fresh[n] && isSentence(f.lines[n]) {
			return n + 1, clip(f.lines[n]), true
		}
	}
	return 0, "", false
}

// ends lists the first and the last line that is not blank.
func ends(lines [][]byte) []int {
	first, last := -1, -1
	for i, l := range lines {
		if !blank(l) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	switch {
	case first < 0:
		return nil
	case first == last:
		return []int{first}
	}
	return []int{first, last}
}

var chatty = regexp.MustCompile(`(?i)^\s*(?:here(?:'s| is| are)\b.*[:.]?$|sure[,!.]|certainly[,!.]|of course[,!.]|` +
	`i(?:'ve| have| will|'ll)\s+\w+|the (?:fix|following|updated|corrected|code)\b|this (?:fix|change|code|should)\b|` +
	`understood[,!.]|let me know\b|explanation:|note:)`)

// bodyOnly says whether the whole file is new text, so that its ends were
// written by the source and not kept from the base.
func bodyOnly(f *file) bool {
	return f.Op == patch.OpCreate || (len(f.spans) == 1 && f.spans[0].NewFrom == 0 && f.spans[0].NewTo == len(f.lines))
}

// plainCode matches statements that are mere words to the eye: an import, a
// loop, a call with texts in it. aside is what stands behind code.
var (
	plainCode = regexp.MustCompile(`^(?:from [\w.]+ import [\w, ]+$|(?:async )?for [\w, ]+ in [\w.]+(?:\(.*\))?:$|(?:\w+\.)*\w+\()`)
	aside     = regexp.MustCompile(`\s#\s.*$`)
)

// isSentence says whether a line reads as natural language: several words and
// hardly anything that code needs, or a run of text without spaces in a script
// that writes so.
func isSentence(line []byte) bool {
	s := strings.TrimSpace(string(line))
	if s == "" || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*") ||
		strings.HasPrefix(s, "*") || strings.HasPrefix(s, "<!--") || strings.HasPrefix(s, `"`) || strings.HasPrefix(s, "'") {
		return false
	}
	s = strings.TrimSpace(aside.ReplaceAllLiteralString(s, ""))
	if strings.ContainsAny(s, "={}[];<>|\\@$") || plainCode.MatchString(s) {
		return false
	}
	words, letters, wide := 0, 0, 0
	for w := range strings.FieldsSeq(s) {
		w = strings.Trim(w, "`'\".,:;!?()*_-")
		if w != "" && isWord(w) {
			words++
		}
	}
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			wide++
		case unicode.IsLetter(r) || r == ' ':
			letters++
		}
	}
	return wide >= 4 || (words >= 4 && letters*10 >= len([]rune(s))*8)
}

func isWord(w string) bool {
	for _, r := range w {
		if !unicode.IsLetter(r) && r != '\'' && r != '-' && r != '’' {
			return false
		}
	}
	return true
}

// isText says whether prose is what a file is made of.
func isText(p string) bool {
	switch extOf(p) {
	case ".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".tex", ".html", ".htm", ".svg", ".xml", ".csv", ".po":
		return true
	}
	return false
}

const clipWidth = 120

func clip(b []byte) string {
	s := strings.ToValidUTF8(string(bytes.TrimSpace(b)), "\ufffd")
	if r := []rune(s); len(r) > clipWidth {
		return string(r[:clipWidth]) + "…"
	}
	return s
}

var (
	conflictMark = regexp.MustCompile(`^(?:<{7}|>{7}|\|{7})(?: .*)?$`)
	divider      = regexp.MustCompile(`^={7}$`)
	fenceMark    = regexp.MustCompile("^(?:```|~~~)[\\w+-]*\\s*$")
)

// noMarkers refuses fences, conflict and edit markers that were not there.
func (c *check) noMarkers() *refusal {
	for _, f := range c.files {
		if f.Op == patch.OpDelete {
			continue
		}
		conflict, split := 0, 0
		for _, s := range f.spans {
			for i := s.NewFrom; i < s.NewTo; i++ {
				l := f.lines[i]
				switch {
				case conflictMark.Match(l):
					conflict = i + 1
				case divider.Match(l):
					split = i + 1
				case fenceMark.Match(l) && !isText(f.Path) && (!f.syntax.checked || f.syntax.err != nil):
					return refuse(GateMarker, "fence", "%s:%d is a left-over of a code fence", f.Path, i+1)
				}
			}
		}
		if conflict == 0 && split > 0 && !isText(f.Path) && !f.syntax.checked {
			conflict = split
		}
		if conflict > 0 {
			return refuse(GateMarker, "conflict", "%s:%d is a left-over conflict or edit marker", f.Path, conflict)
		}
	}
	return nil
}
