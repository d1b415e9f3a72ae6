package patch

import (
	"bytes"
	"unicode/utf8"
)

var bom = []byte("\ufeff")

// source is a file's content cut into lines, with white-space-free forms that
// are made on first use. A lone CR is text.
type source struct {
	data []byte
	// starts holds where each line starts, and the length of data at the end.
	starts []int
	// trimmed and folded are the forms of the tolerant tiers.
	trimmed, folded [][]byte
}

func newSource(data []byte) *source {
	s := &source{data: data, starts: make([]int, 0, bytes.Count(data, []byte{'\n'})+2)}
	for at := 0; at < len(data); {
		s.starts = append(s.starts, at)
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	s.starts = append(s.starts, len(data))
	return s
}

// size is the number of lines.
func (s *source) size() int { return len(s.starts) - 1 }

// raw is the text with the CR of a CRLF, as a diff of the file shows it.
func (s *source) raw(i int) []byte {
	line := s.data[s.starts[i]:s.starts[i+1]]
	return bytes.TrimSuffix(line, []byte{'\n'})
}

func (s *source) text(i int) []byte {
	line := s.raw(i)
	if s.starts[i]+len(line) == s.starts[i+1] {
		return line // the last one, without a line end
	}
	return bytes.TrimSuffix(line, []byte{'\r'})
}

func (s *source) eol(i int) []byte { return s.data[s.starts[i]+len(s.text(i)) : s.starts[i+1]] }

// offset is where line i starts; the length of the file for one past the end.
func (s *source) offset(i int) int { return s.starts[min(i, s.size())] }

// usualEOL is the line end for a place that has no neighbour with one.
func (s *source) usualEOL() []byte {
	for i := range s.size() {
		if e := s.eol(i); len(e) > 0 {
			return e
		}
	}
	return []byte("\n")
}

func (s *source) trims() [][]byte {
	if s.trimmed == nil {
		s.trimmed = make([][]byte, s.size())
		for i := range s.size() {
			s.trimmed[i] = trimRight(s.text(i))
		}
	}
	return s.trimmed
}

func (s *source) folds() [][]byte {
	if s.folded == nil {
		s.folded = make([][]byte, s.size())
		for i := range s.size() {
			s.folded[i] = fold(s.text(i))
		}
	}
	return s.folded
}

func trimRight(b []byte) []byte { return bytes.TrimRight(b, " \t\r") }

// fold drops white space at both ends and makes every run inside one space.
func fold(b []byte) []byte {
	b = bytes.Trim(b, " \t\r")
	if !bytes.ContainsAny(b, "\t") && !bytes.Contains(b, []byte("  ")) {
		return b
	}
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c == '\t' {
			c = ' '
		}
		if c == ' ' && len(out) > 0 && out[len(out)-1] == ' ' {
			continue
		}
		out = append(out, c)
	}
	return out
}

func indentOf(b []byte) []byte {
	for i, c := range b {
		if c != ' ' && c != '\t' {
			return b[:i]
		}
	}
	return b
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// splitText cuts model text into lines without their line ends. A final line
// end makes no further line; a CR before LF is kept.
func splitText(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.Split(b, []byte("\n"))
}

// joinText is the inverse of splitText for a text with a final line end.
func joinText(lines [][]byte) []byte {
	if len(lines) == 0 {
		return nil
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// allCRLF says whether every line end of b is a CRLF, and there is one.
func allCRLF(b []byte) bool {
	n := bytes.Count(b, []byte("\n"))
	return n > 0 && n == bytes.Count(b, []byte("\r\n"))
}

func dropCR(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
