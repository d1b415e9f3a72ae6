package validate

import (
	"bytes"
	"slices"
)

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

// tooDeep estimates the recursion that a text needs, from above: where a text
// may be read in several ways, the reading counts that nests deepest. YAML's
// parser and Go's have bounds of their own, and TOML's texts are small.
func tooDeep(p string, src []byte) bool {
	switch ext := extOf(p); {
	case slices.Contains(scriptExts, ext):
		depth, row := measure(src, scriptDialect(ext))
		return depth > maxDepth || row > maxRow ||
			bytes.Count(src, []byte("else")) > maxElse || bytes.Count(src, []byte("case")) > maxCases
	case ext == ".yaml", ext == ".yml":
		depth, _ := measure(src, dialect{single: true})
		return depth > maxDepth || yamlMarks(src) > maxMarks
	case ext == ".go":
		depth, _ := measure(src, dialect{single: true, comments: true, raw: true})
		return depth > maxDepth
	case ext == ".toml":
		depth, _ := measure(src, dialect{single: true})
		return depth > maxDepth
	}
	depth, _ := measure(src, dialect{comments: true})
	return depth > maxDepth
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
