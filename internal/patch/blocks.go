package patch

import (
	"bytes"
	"slices"
)

// unstay tells what stays of a hunk's lines apart into lines that go and lines
// that come, so that these can be indented anew.
func (h *Hunk) unstay() *Hunk {
	v := *h
	v.Lines = nil
	for _, l := range h.Lines {
		if l.Kind != ' ' || blank(l.Text) {
			v.Lines = append(v.Lines, l)
			continue
		}
		gone, come := l, l
		gone.Kind, come.Kind = '-', '+'
		v.Lines = append(v.Lines, gone, come)
	}
	return &v
}

// nests says whether the new side makes blocks, where indent is what the file
// has before the first old line.
func (h *Hunk) nests(indent []byte) bool {
	fresh, _ := h.newSide()
	for _, l := range h.Lines {
		if l.Kind == ' ' && !blank(l.Text) {
			i := slices.IndexFunc(fresh, func(f []byte) bool { return bytes.Equal(f, l.Text) })
			fresh[i] = join(string(indent), bytes.TrimLeft(l.Text, " \t"))
		}
		if l.Kind != '+' && !blank(l.Text) {
			break
		}
	}
	return nested(fresh)
}

// nested says whether the indentation of lines that are not blank makes sense
// where it makes blocks: the line after one that opens a block is deeper, no
// other is deeper than the line above it, and a shallower one is as deep as one
// that was left open. Comments and lines inside brackets are free.
func nested(lines [][]byte) bool {
	inside := continued(lines)
	var open [][]byte
	opens := false
	for i, l := range lines {
		if !inside[i] && isComment(l) {
			continue
		}
		if !inside[i] {
			in := indentOf(l)
			if len(open) > 0 {
				last := open[len(open)-1]
				if deeper := len(in) > len(last) && bytes.HasPrefix(in, last); deeper != opens {
					return false
				}
			}
			for len(open) > 0 && len(open[len(open)-1]) > len(in) {
				open = open[:len(open)-1]
			}
			switch {
			case opens || len(open) == 0 && i == firstCode(lines):
				open = append(open, in)
			case len(open) == 0 || !bytes.Equal(open[len(open)-1], in):
				return false
			}
		}
		end := trimRight(l)
		opens = bytes.HasSuffix(end, []byte(":")) || bytes.HasSuffix(end, []byte("{"))
	}
	return true
}

func firstCode(lines [][]byte) int {
	return slices.IndexFunc(lines, func(l []byte) bool { return !isComment(l) })
}

func isComment(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '#' || bytes.HasPrefix(line, []byte("//"))
}
