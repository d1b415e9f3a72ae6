package validate

import "bytes"

// The parsers of this process recurse, and a full stack ends a Go process. So
// texts that could recurse deeper than people write are not parsed at all. The
// bounds leave room: the worst construct measured takes 20 KB of a stack of
// 1 GB for each level.
const (
	// maxDepth bounds open brackets and chained operators together.
	maxDepth = 8000
	// maxElse bounds the branches of one file; each is a level.
	maxElse = 20_000
	// maxCases and maxRow bound what takes a script's parser quadratic time:
	// cases, and names in a row between commas. Measured: 3 s for 9,000 cases,
	// 15 s for 32,000 names.
	maxCases = 4000
	maxRow   = 4000
	// arrowLevels is the weight of an arrow function: the time that nested
	// ones take grows with the cube of their number.
	arrowLevels = 80
	// angleLevels is the weight of an angle bracket behind a name in
	// TypeScript: each may begin type arguments, and is read again and again
	// to find out.
	angleLevels = 20
	// maxMarks bounds what one line of YAML may nest.
	maxMarks = 2000
)

// tooDeep estimates the recursion that a text needs, from above.
func tooDeep(p string, src []byte) bool {
	switch extOf(p) {
	case ".yaml", ".yml":
		return yamlMarks(src) > maxMarks || chainDepth(src, nil) > maxDepth
	case ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts":
		return bytes.Count(src, []byte("else")) > maxElse || bytes.Count(src, []byte("case")) > maxCases ||
			namesInARow(src) > maxRow || chainDepth(src, scriptLevels[:]) > maxDepth
	}
	return chainDepth(src, nil) > maxDepth
}

// scriptLevels marks the characters that may each open a level of recursion in
// a script: operators, and the first letter of prefix keywords (typeof, new,
// void, delete, await, yield, if, for, while, with, do).
var scriptLevels = func() (t [256]bool) {
	for _, c := range []byte("=?:.*!~+-<tnvdayifw") {
		t[c] = true
	}
	return t
}()

// chainDepth is the most levels that are open at once: brackets, and between
// two separators of the same bracket every character in levels. Letters count
// where a word begins.
func chainDepth(src []byte, levels []bool) int {
	open := []int{0}
	total, most := 0, 0
	word := false
	for i := 0; i < len(src); i++ {
		c := src[i]
		last := len(open) - 1
		switch c {
		case '(', '[', '{':
			open = append(open, 1)
			total++
		case ')', ']', '}':
			if last > 0 {
				total -= open[last]
				open = open[:last]
			}
		case ',', ';', '\n':
			if c == '\n' && !startsStatement(src[i+1:]) {
				break
			}
			keep := min(open[last], 1)
			total -= open[last] - keep
			open[last] = keep
		case '"', '\'':
			i = skipString(src, i)
		default:
			if levels != nil && levels[c] && (!letter(c) || !word) {
				n := 1
				switch {
				case c == '=' && i+1 < len(src) && src[i+1] == '>':
					n = arrowLevels
				case c == '<' && (!word || i+1 < len(src) && src[i+1] == '/'):
					n = 0 // a comparison, or an element of JSX
				case c == '<':
					n = angleLevels
				}
				open[last] += n
				total += n
			}
		}
		word = letter(c)
		most = max(most, total)
	}
	return most
}

// namesInARow is the longest run of commas with nothing but names, numbers and
// blanks between them that stands in no square bracket: an array is cheap.
func namesInARow(src []byte) int {
	most, n, square := 0, 0, 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '[':
			square++
			n = 0
		case c == ']':
			square = max(square-1, 0)
			n = 0
		case c == ',' && square == 0:
			n++
			most = max(most, n)
		case c == '"' || c == '\'':
			i = skipString(src, i)
		case letter(c) || c >= '0' && c <= '9' || c <= ' ':
		default:
			n = 0
		}
	}
	return most
}

// startsStatement says whether a line begins with a word that can't go on an
// expression, so that files without semicolons have separators too.
func startsStatement(rest []byte) bool {
	rest = bytes.TrimLeft(rest[:min(len(rest), 200)], " \t")
	for _, w := range []string{"const ", "let ", "var ", "export ", "import ", "return", "type ", "interface "} {
		if bytes.HasPrefix(rest, []byte(w)) {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' }

// skipString returns the index of the closing quote, or of the line's end.
func skipString(src []byte, i int) int {
	quote := src[i]
	for i++; i < len(src) && src[i] != '\n'; i++ {
		switch src[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return i
}

// yamlMarks is the most indicators that stand on one line.
func yamlMarks(src []byte) int {
	most := 0
	for line := range bytes.Lines(src) {
		n := 0
		for _, mark := range []string{": ", "- ", "? ", "&", "!", "[", "{"} {
			n += bytes.Count(line, []byte(mark))
		}
		most = max(most, n)
	}
	return most
}
