package validate

import (
	"bytes"
	"slices"
)

// braced are languages without a parser here whose text outside of comments is
// never a sentence.
var braced = []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".java", ".cs", ".kt", ".rs", ".swift", ".scala"}

// spoken is the first new line of a file in such a language that speaks to a
// reader: a sentence with its punctuation, outside of block comments. It is -1
// when there is none.
func (f *file) spoken(fresh map[int]bool) int {
	if !slices.Contains(braced, extOf(f.Path)) {
		return -1
	}
	comment := false
	for n, l := range f.lines {
		open, shut := bytes.LastIndex(l, []byte("/*")), bytes.LastIndex(l, []byte("*/"))
		if !comment && open < 0 && fresh[n] && isSentence(l) && punctuated(l) {
			return n
		}
		if open >= 0 || shut >= 0 {
			comment = open > shut
		}
	}
	return -1
}

// punctuated says whether a line begins and ends as a sentence does.
func punctuated(l []byte) bool {
	l = bytes.TrimSpace(l)
	return len(l) > 1 && l[0] >= 'A' && l[0] <= 'Z' && bytes.IndexByte([]byte(".:?!"), l[len(l)-1]) >= 0
}
