package validate

import (
	"bytes"
	"slices"
)

// dialect says what a language has beside brackets and "strings".
type dialect struct {
	single   bool // 'strings'
	comments bool // as in C
	raw      bool // `strings` without escapes
	script   bool // templates and regular expressions; operators are levels
	elements bool // JSX
	types    bool // type arguments, which may look like an element
}

func scriptDialect(ext string) dialect {
	return dialect{
		single: true, comments: true, script: true,
		elements: ext == ".js" || ext == ".jsx" || ext == ".tsx",
		types:    ext == ".ts" || ext == ".tsx" || ext == ".mts" || ext == ".cts",
	}
}

// reads is a set of the ways in which a byte may be read. What a slash, a
// closing brace or an angle bracket means only a parser knows, so all that it
// may mean is followed side by side until one remains.
type reads uint16

const (
	asCode reads = 1 << iota
	asLine
	asBlock
	asSingle
	asDouble
	asTemplate
	asDollar // behind a $ in a template
	asRaw
	asRegexp
	asClass      // [...] in a regular expression
	asText       // between the tags of JSX
	asAttrSingle // attributes of JSX: no escapes, over many lines
	asAttrDouble
	allReads = iota
)

// bracket is one that is open, or may be.
type bracket struct {
	kind   byte // ( [ {, < for a tag that is being read, E for its content
	levels int
	// after is how the text behind the bracket's end is read.
	after reads
	// sure says that it is no part of a text or comment; doubts is the number
	// of brackets before it of which that was not known.
	sure   bool
	doubts int
	// clause brackets hold what a statement may follow: if (…).
	clause bool
	// closing tags and such as may be type arguments.
	closing, vague bool
}

// operand says what stood before a slash or an angle bracket: something that
// they are operators behind.
type operand byte

const (
	noOperand operand = iota
	maybeOperand
	anOperand
)

// reading measures a text. A real bracket is never taken off before its end:
// only sure ends are ends, and they end all that was put above by mistake.
type reading struct {
	dialect
	src       []byte
	cur, late reads // late ones take the next byte as it is
	open      []bracket
	total     int
	most      int
	doubts    int
	templates int // open brackets that return to one
	texts     int
	prev      operand
	word      int  // where the current word began, -1 outside of one
	clause    bool // the word before was if or such
	dot       bool // a dot was before
	tags      int  // open tags
	row       int
	mostRow   int
	square    int
}

// measure is the most levels that may be open at once: brackets, and in a
// script between two separators of the same bracket the operators and prefix
// words. row is the longest run of commas with nothing but names, numbers and
// blanks between them that stands in no square bracket: an array is cheap.
func measure(src []byte, d dialect) (depth, row int) {
	r := reading{dialect: d, src: src, cur: asCode, open: []bracket{{sure: true}}, word: -1}
	if d.script && bytes.HasPrefix(src, []byte("#!")) {
		r.cur = asLine
	}
	for i := range src {
		r.step(i)
	}
	return r.most, r.mostRow
}

func (r *reading) step(i int) {
	c := r.src[i]
	before := r.late
	next, late := before, reads(0)
	r.late = 0
	if r.cur == asCode && before == 0 {
		next, late = r.code(i, true)
	} else {
		sure := r.cur|before == asCode
		for s := reads(1); s < 1<<allReads; s <<= 1 {
			if r.cur&s == 0 {
				continue
			}
			var n, l reads
			if s == asCode {
				n, l = r.code(i, sure)
			} else {
				n, l = r.other(s, i, c)
			}
			next, late = next|n, late|l
		}
		if all := r.cur | before; all&(all-1) != 0 {
			r.prev, r.clause, r.word = maybeOperand, false, -1
		}
	}
	r.cur, r.late = next, late
}

// other reads a byte of what is no code.
func (r *reading) other(s reads, i int, c byte) (next, late reads) {
	if c == '\\' && s&(asSingle|asDouble|asTemplate|asDollar|asRegexp|asClass) != 0 {
		return 0, s&^asDollar | s&asDollar>>1
	}
	if s&(asLine|asSingle|asDouble|asRegexp|asClass) != 0 && (c == '\n' || r.script && r.separator(i, c)) {
		return asCode, 0
	}
	switch {
	case s == asBlock && c == '*' && r.at(i+1) == '/':
		return 0, asCode
	case s == asSingle && c == '\'', s == asDouble && c == '"', s&(asTemplate|asDollar) != 0 && c == '`', s == asRaw && c == '`',
		s == asRegexp && c == '/', s == asAttrSingle && c == '\'', s == asAttrDouble && c == '"':
		r.prev, r.word = anOperand, -1
		return asCode, 0
	case s == asRegexp && c == '[':
		return asClass, 0
	case s == asClass && c == ']':
		return asRegexp, 0
	case s&(asTemplate|asDollar) != 0 && c == '$':
		return asDollar, 0
	case s == asDollar && c == '{':
		r.push(bracket{kind: '{', levels: 1, after: asTemplate}, r.cur == s)
		return asCode, 0
	case s == asDollar:
		return asTemplate, 0
	case s == asText && c == '{':
		r.push(bracket{kind: '{', levels: 1, after: s}, r.cur == s)
		return asCode, 0
	case s == asText && c == '<':
		r.tag(i, asText, r.cur == asText)
		return asCode, 0
	}
	return s, 0
}

// separator says whether one of the line ends that only scripts have ends here.
func (r *reading) separator(i int, c byte) bool {
	return c == '\r' || c&^1 == 0xa8 && i > 1 && r.src[i-1] == 0x80 && r.src[i-2] == 0xe2
}

func (r *reading) at(i int) byte {
	if i >= 0 && i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// code reads a byte of code; sure says that it can be nothing else.
func (r *reading) code(i int, sure bool) (next, late reads) {
	c := r.src[i]
	r.count(i, c, sure)
	if wordByte(c) {
		if r.word < 0 {
			r.word = i
		}
		r.prev = anOperand
		if c >= 0x80 {
			r.prev = maybeOperand // a letter or a blank
		}
		return asCode, 0
	}
	if r.word >= 0 {
		r.wordEnds(r.src[r.word:i])
	}
	if r.script && r.oldComment(i, c) {
		return asCode | asLine, 0
	}
	before := r.prev
	if !sure {
		before = maybeOperand
	}
	switch {
	case c == '\n', c == '\r':
		r.prev = min(r.prev, maybeOperand)
		return asCode, 0
	case c <= ' ':
		return asCode, 0
	}
	clause := r.clause
	if c == '/' {
		return r.slash(i, before, sure)
	}
	r.prev, r.clause, r.dot = noOperand, false, false
	switch c {
	case '(', '[', '{':
		r.push(bracket{kind: c, levels: 1, after: asCode, clause: clause}, sure)
	case ')', ']', '}':
		return r.close(c, sure), 0
	case '"', '\'', '`':
		return r.quote(c, sure), 0
	case '<':
		if r.elements {
			r.angle(i, before, sure)
		}
	case '>':
		switch {
		case r.at(i-1) == '=' && r.open[len(r.open)-1].kind != '<':
			// an arrow
		case r.tags > 0:
			return r.tagEnds(i, sure), 0
		default:
			r.prev = maybeOperand
		}
	case '+', '-':
		if r.at(i-1) == c {
			r.prev = maybeOperand
		}
	case '!', '.':
		r.prev, r.dot = maybeOperand, c == '.'
	}
	return asCode, 0
}

// quote begins a string.
func (r *reading) quote(c byte, sure bool) reads {
	if c == '`' {
		switch {
		case r.script:
			return asTemplate
		case r.raw:
			return asRaw
		}
		return asCode
	}
	plain, attribute := asDouble, asAttrDouble
	if c == '\'' {
		plain, attribute = asSingle, asAttrSingle
		if !r.single {
			return asCode
		}
	}
	switch exact := sure && r.certain(); {
	case r.tags == 0, exact && r.open[len(r.open)-1].kind != '<':
		return plain
	case exact:
		return attribute
	}
	return plain | attribute
}

// oldComment says whether a comment of HTML may begin, which goes to the line's
// end.
func (r *reading) oldComment(i int, c byte) bool {
	return c == '<' && bytes.HasPrefix(r.src[i:], []byte("<!--")) || c == '-' && bytes.HasPrefix(r.src[i:], []byte("-->"))
}

// slash begins a comment or a regular expression, or divides.
func (r *reading) slash(i int, before operand, sure bool) (next, late reads) {
	switch r.at(i + 1) {
	case '/':
		if r.comments {
			return asLine, 0
		}
	case '*':
		if r.comments {
			return 0, asBlock
		}
	}
	r.prev, r.clause, r.dot = noOperand, false, false
	switch {
	case !r.script || before == anOperand, sure && r.open[len(r.open)-1].kind == '<' && r.certain():
		return asCode, 0
	case before == noOperand && sure:
		return asRegexp, 0
	}
	return asCode | asRegexp, 0
}

// certain says that the uppermost bracket is the innermost one of the text.
func (r *reading) certain() bool {
	b := &r.open[len(r.open)-1]
	return b.sure && b.doubts == r.doubts
}

func (r *reading) push(b bracket, sure bool) {
	if !sure {
		r.doubts++
	}
	b.sure, b.doubts = sure, r.doubts
	r.open = append(r.open, b)
	r.enclose(b, 1)
	r.most = max(r.most, r.total)
}

// enclose keeps the sums over the open brackets.
func (r *reading) enclose(b bracket, n int) {
	r.total += n * b.levels
	switch {
	case b.kind == '<':
		r.tags += n
	case b.after&asTemplate != 0:
		r.templates += n
	}
	if b.after&asText != 0 {
		r.texts += n
	}
}

// cut takes off all brackets from the nth on.
func (r *reading) cut(n int) {
	for _, b := range r.open[n:] {
		r.enclose(b, -1)
	}
	r.open = r.open[:n]
}

// close takes a bracket off when its end is sure, with what is above it.
func (r *reading) close(c byte, sure bool) reads {
	r.prev = maybeOperand
	at := -1
	if sure {
		at = r.opener(c)
	} else {
		r.doubts++
	}
	if at < 0 {
		return r.behind(c)
	}
	b := r.open[at]
	certain := b.sure && b.doubts == r.doubts
	next := b.after
	if !certain {
		next = r.behind(c)
	}
	r.cut(at)
	if c == ']' || c == ')' && certain && !b.clause {
		r.prev = anOperand
	}
	return next
}

// opener is the nearest bracket that c may end: none outside of an element.
func (r *reading) opener(c byte) int {
	kind := byte('(')
	switch c {
	case ']':
		kind = '['
	case '}':
		kind = '{'
	}
	for k := len(r.open) - 1; k > 0; k-- {
		switch r.open[k].kind {
		case kind:
			return k
		case '<', 'E':
			return -1
		}
	}
	return -1
}

// behind is all that may follow a bracket's end.
func (r *reading) behind(c byte) reads {
	next := asCode
	if c == '}' && r.templates > 0 {
		next |= asTemplate
	}
	if c == '}' && r.texts > 0 {
		next |= asText
	}
	return next
}

var (
	// clauses have a parenthesis and then a statement.
	clauses = []string{"if", "while", "for", "with", "await"}
	// prefixes have an operand behind them; perhaps may.
	prefixes = []string{
		"return", "case", "typeof", "else", "do", "in", "instanceof", "new", "delete", "void", "throw", "extends", "default",
	}
	perhaps = []string{
		"of", "yield", "await", "async", "as", "satisfies", "is", "keyof", "readonly", "unique", "infer", "asserts",
		"if", "while", "for", "with", "finally", "try", "export", "import", "let", "const", "var", "static", "get", "set", "type",
		"declare", "abstract", "public", "private", "protected", "override", "accessor", "using", "debugger", "break", "continue",
	}
)

// wordEnds finds out what may follow a word.
func (r *reading) wordEnds(b []byte) {
	r.word = -1
	if len(b) > 10 || !r.script {
		r.dot, r.clause = false, false
		if slices.Max(b) >= 0x80 {
			r.prev = maybeOperand
		}
		return
	}
	w := string(b)
	r.clause = slices.Contains(clauses, w)
	switch {
	case slices.Max(b) >= 0x80, slices.Contains(perhaps, w), r.dot && slices.Contains(prefixes, w):
		r.prev = maybeOperand
	case slices.Contains(prefixes, w):
		r.prev = noOperand
	}
	r.dot = false
}

// wordByte says whether c belongs to a name or number.
func wordByte(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || c == '#' || c == '@' || c >= 0x80
}

// count adds the levels of operators and the names in a row, which separators
// end.
func (r *reading) count(i int, c byte, sure bool) {
	switch {
	case c == '[':
		if sure {
			r.square++
		}
		r.row = 0
	case c == ']':
		r.square, r.row = max(r.square-1, 0), 0
	case c == ',' && r.square == 0:
		r.row++
		r.mostRow = max(r.mostRow, r.row)
	case c == ',', letter(c), c >= '0' && c <= '9', c <= ' ', c == '"', c == '\'', c == '/' && (r.at(i+1) == '/' || r.at(i+1) == '*'):
	case sure:
		r.row = 0
	}
	top := &r.open[len(r.open)-1]
	switch n := 0; c {
	case ',', ';', '\n':
		if sure && (c != '\n' || startsStatement(r.src[i+1:])) {
			keep := min(top.levels, 1)
			r.total -= top.levels - keep
			top.levels = keep
		}
	default:
		n = r.levelsOf(i, c)
		top.levels += n
		r.total += n
		r.most = max(r.most, r.total)
	}
}

// levelsOf weighs an operator, or the first letter of a word.
func (r *reading) levelsOf(i int, c byte) int {
	inWord := i > 0 && letter(r.src[i-1])
	switch {
	case !r.script || !scriptLevels[c] || letter(c) && inWord:
		return 0
	case c == '=' && r.at(i+1) == '>':
		return arrowLevels
	case c == '<' && (!inWord || r.at(i+1) == '/'):
		return 0 // a comparison, or an element of JSX
	case c == '<':
		return angleLevels
	}
	return 1
}
