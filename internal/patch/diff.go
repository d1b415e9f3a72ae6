package patch

import (
	"bytes"
	"fmt"
	"strconv"
)

// contextLines is the number of unchanged lines round a change in a diff.
const contextLines = 3

// Diff renders the change of one file as a git-style unified diff with three
// lines of context. A nil before is a file that is created, a nil after one that
// is deleted; empty and nil are different. Equal contents give nil.
//
// Decoding the result and placing it on before gives after back, byte for byte.
func Diff(path string, before, after []byte) []byte {
	if bytes.Equal(before, after) && (before == nil) == (after == nil) {
		return nil
	}
	var b bytes.Buffer
	from, to := quoteName("a/"+path), quoteName("b/"+path)
	fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
	switch {
	case before == nil:
		b.WriteString("new file mode 100644\n")
		from = "/dev/null"
	case after == nil:
		b.WriteString("deleted file mode 100644\n")
		to = "/dev/null"
	}
	if len(before) == 0 && len(after) == 0 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	writeHunks(&b, keepEnds(before), keepEnds(after))
	return b.Bytes()
}

// keepEnds cuts content into lines that hold their line ends.
func keepEnds(data []byte) [][]byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func writeHunks(b *bytes.Buffer, old, after [][]byte) {
	spans := LineDiff(old, after)
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && spans[j].OldFrom-spans[j-1].OldTo <= 2*contextLines {
			j++
		}
		writeHunk(b, old, after, spans[i:j])
		i = j
	}
}

func writeHunk(b *bytes.Buffer, old, after [][]byte, spans []Span) {
	first, last := spans[0], spans[len(spans)-1]
	lead := min(contextLines, first.OldFrom)
	tail := min(contextLines, len(old)-last.OldTo)
	a0, a1 := first.OldFrom-lead, last.OldTo+tail
	b0, b1 := first.NewFrom-lead, last.NewTo+tail
	fmt.Fprintf(b, "@@ -%s +%s @@\n", hunkRange(a0, a1), hunkRange(b0, b1))
	at := a0
	for _, s := range spans {
		writeLines(b, ' ', old[at:s.OldFrom])
		writeLines(b, '-', old[s.OldFrom:s.OldTo])
		writeLines(b, '+', after[s.NewFrom:s.NewTo])
		at = s.OldTo
	}
	writeLines(b, ' ', old[at:a1])
}

func hunkRange(from, to int) string {
	switch to - from {
	case 0:
		return strconv.Itoa(from) + ",0"
	case 1:
		return strconv.Itoa(from + 1)
	}
	return strconv.Itoa(from+1) + "," + strconv.Itoa(to-from)
}

func writeLines(b *bytes.Buffer, kind byte, lines [][]byte) {
	for _, l := range lines {
		b.WriteByte(kind)
		b.Write(l)
		if !bytes.HasSuffix(l, []byte("\n")) {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// quoteName writes a path as git does: in C quotes when it holds a byte that
// a reader could take for something else.
func quoteName(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	out := []byte{'"'}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20 || c >= 0x7f:
			out = append(out, fmt.Sprintf(`\%03o`, c)...)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// unquoteName undoes quoteName; text without quotes is returned as it is.
func unquoteName(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		if i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out = append(out, byte(v))
				i += 3
				continue
			}
		}
		i++
		out = append(out, unescape(s[i]))
	}
	return string(out)
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	}
	return c
}
