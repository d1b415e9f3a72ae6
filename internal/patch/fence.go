package patch

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// fence is one fenced block of Markdown. start and end are the indexes of its
// opening and closing line; end is one past the last line when it is open.
type fence struct {
	start, end int
	info       string
	body       [][]byte
	closed     bool
	// inline blocks open and close on one line: ```main.py```.
	inline bool
}

// fenceMark is the opening or closing line of a fence.
type fenceMark struct {
	char   byte
	size   int
	indent int
	info   string
}

func parseMark(line []byte) (fenceMark, bool) {
	line = bytes.TrimRight(line, " \t\r")
	in := indentOf(line)
	rest := line[len(in):]
	if len(rest) < 3 || (rest[0] != '`' && rest[0] != '~') {
		return fenceMark{}, false
	}
	n := 0
	for n < len(rest) && rest[n] == rest[0] {
		n++
	}
	info := strings.TrimSpace(string(rest[n:]))
	if n < 3 || (rest[0] == '`' && strings.Contains(info, "`")) {
		return fenceMark{}, false
	}
	return fenceMark{char: rest[0], size: n, indent: len(in), info: info}, true
}

// findFences lists the fenced blocks. A closing line has the indentation of
// its opening line when any such line follows, so that an indented fence in a
// docstring belongs to the body; an opening line inside a block nests.
func findFences(lines [][]byte, marks []lineMark) []fence {
	var out []fence
	for i := 0; i < len(lines); i++ {
		if name, ok := inlineFence(lines[i]); ok {
			out = append(out, fence{start: i, end: i, closed: true, inline: true, body: [][]byte{name}})
			continue
		}
		open, ok := parseMark(lines[i])
		if !ok {
			continue
		}
		for len(marks) > 0 && marks[0].line <= i {
			marks = marks[1:]
		}
		f := fence{start: i, info: open.info, end: closing(marks, open, true)}
		if f.end < 0 {
			f.end = closing(marks, open, false)
		}
		f.closed = f.end >= 0
		if !f.closed {
			f.end = len(lines)
		}
		f.body = dedent(lines[i+1:f.end], open.indent)
		out = append(out, f)
		i = f.end
	}
	return out
}

func inlineFence(line []byte) ([]byte, bool) {
	t := bytes.TrimSpace(line)
	if len(t) < 7 || !bytes.HasPrefix(t, []byte("```")) || !bytes.HasSuffix(t, []byte("```")) {
		return nil, false
	}
	in := t[3 : len(t)-3]
	return bytes.TrimSpace(in), len(in) > 0 && !bytes.Contains(in, []byte("`"))
}

// lineMark is a mark and the line that it stands on.
type lineMark struct {
	fenceMark
	line int
}

// maxMarks bounds the marks of one answer: to find the end of a fence, all
// that follow may have to be read.
const maxMarks = 5000

func marksOf(lines [][]byte) ([]lineMark, error) {
	var out []lineMark
	for i, l := range lines {
		if m, ok := parseMark(l); ok {
			out = append(out, lineMark{m, i})
		}
	}
	if len(out) > maxMarks {
		return nil, refuse(GateDecode, ReasonTooLarge, "",
			"the answer has %d fence marks, at most %d are read; answer with the changed files only", len(out), maxMarks)
	}
	return out, nil
}

// closing finds the line that ends a fence among the marks below it, -1 when
// there is none.
func closing(marks []lineMark, open fenceMark, strict bool) int {
	depth := 0
	for _, m := range marks {
		if m.char != open.char || (strict && m.indent != open.indent) {
			continue
		}
		switch {
		case m.info != "" && m.size >= open.size:
			depth++
		case m.info != "" || m.size < open.size:
		case depth > 0:
			depth--
		default:
			return m.line
		}
	}
	return -1
}

// dedent removes up to n columns of white space, the opening line's own.
func dedent(lines [][]byte, n int) [][]byte {
	if n == 0 {
		return lines
	}
	out := make([][]byte, len(lines))
	for i, l := range lines {
		k := 0
		for k < n && k < len(l) && (l[k] == ' ' || l[k] == '\t') {
			k++
		}
		out[i] = l[k:]
	}
	return out
}

// insideFence says whether line i belongs to a fenced block.
func (a *answer) insideFence(i int) bool {
	at, _ := slices.BinarySearchFunc(a.fences, i, func(f fence, i int) int { return cmp.Compare(f.end, i) })
	return at < len(a.fences) && i >= a.fences[at].start
}
