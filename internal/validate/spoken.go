package validate

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// braced are languages without a parser here whose text outside of comments is
// never a sentence. In those of family C, of which Java is one, three words in
// a row are none either, unless the language has them.
var (
	familyC = []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".java"}
	braced  = append([]string{".cs", ".kt", ".rs", ".swift", ".scala"}, familyC...)
)

// spoken is the first new line of a file in such a language that speaks to a
// reader: a sentence with its punctuation or, in family C, a row of words,
// outside of block comments. It is -1 when there is none.
func (f *file) spoken(fresh map[int]bool) int {
	ext := extOf(f.Path)
	if !slices.Contains(braced, ext) {
		return -1
	}
	// A raw string may hold anything, over many lines.
	words := slices.Contains(familyC, ext) && !rawString.Match(f.New)
	comment, goesOn := false, false
	for n, l := range f.lines {
		open, shut := bytes.LastIndex(l, []byte("/*")), bytes.LastIndex(l, []byte("*/"))
		more := bytes.HasSuffix(bytes.TrimSpace(l), []byte{'\\'})
		if fresh[n] && !comment && open < 0 {
			if isSentence(l) && punctuated(l) || words && !goesOn && !more && wordsInARow(l) >= wordy {
				return n
			}
		}
		goesOn = more
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

// wordy is the number of words in a row that only prose has: of about a million
// lines of public C, C++ and Java, seven have as many, most of them in the
// middle of a statement, which is not looked at.
const wordy = 3

var (
	rawString = regexp.MustCompile(`"""|R"`)
	// wordless is what hides or looks like words: texts, remarks, annotations,
	// type arguments.
	wordless = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//.*|/\*.*?\*/|@\w+|<[\w ,.?<>\[\]]*>`)
	// inARow matches words with nothing but blanks between them, and what
	// stands round them.
	inARow = regexp.MustCompile(`[\w$.']*[A-Za-z][\w$']*(?:[ \t]+[A-Za-z][\w$']*)*`)
	word   = regexp.MustCompile(`^[A-Za-z]+(?:'[a-z]+)?$`)
)

// wordsInARow counts the most words that follow one another in a line and are
// none of the language. Names in capitals are macros.
func wordsInARow(l []byte) int {
	if len(l) > maxSpoken || bytes.IndexByte([]byte("#*"), firstByte(l)) >= 0 {
		return 0
	}
	most := 0
	for _, row := range inARow.FindAll(wordless.ReplaceAll(l, []byte(" ; ")), -1) {
		n := 0
		for w := range strings.FieldsSeq(string(row)) {
			switch {
			case slices.Contains(dividers, w), !word.MatchString(w):
				n = 0
			case !slices.Contains(wordsOfC, w) && (len(w) == 1 || strings.ToUpper(w) != w):
				n++
			}
			most = max(most, n)
		}
	}
	return most
}

// maxSpoken bounds in bytes the lines that are looked at: longer ones are data.
const maxSpoken = 2000

func firstByte(l []byte) byte {
	if l = bytes.TrimSpace(l); len(l) > 0 {
		return l[0]
	}
	return '*'
}

// dividers are words that stand between names, wordsOfC others that may stand
// beside them.
var (
	dividers = []string{"extends", "implements", "throws", "instanceof"}
	wordsOfC = strings.Fields(`abstract alignas alignof asm assert auto bool boolean break byte case catch char class concept const
		consteval constexpr constinit continue decltype default delete do double else enum explicit export extern false final finally
		float for friend goto if import inline int interface long mutable namespace native new noexcept null nullptr operator package
		permits private protected public record register requires restrict return sealed short signed sizeof static strictfp struct
		super switch synchronized template this throw transient true try typedef typename union unsigned using var virtual void
		volatile while yield`)
)
