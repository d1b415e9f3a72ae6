package failure

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// set is a set of categories, one bit a row of the table.
type set uint32

// first answers the category that wins: Unexpected where something says so
// aloud, else the one with the highest priority.
func (s set) first() Category {
	if last := len(table) - 1; s&(1<<last) != 0 {
		return table[last].category
	}
	for i := range table {
		if s&(1<<i) != 0 {
			return table[i].category
		}
	}
	return ""
}

func (s set) list() []Category {
	var all []Category
	for i := range table {
		if s&(1<<i) != 0 {
			all = append(all, table[i].category)
		}
	}
	return all
}

func bit(c Category) set {
	for i := range table {
		if table[i].category == c {
			return 1 << i
		}
	}
	return 0
}

// phrase is a sequence of words; rest follows the word under which it is
// found. A phrase with an empty set masks its words.
type phrase struct {
	rest []string
	in   set
}

// phrases finds phrases by their first word, the longest first.
type phrases map[string][]phrase

func (p phrases) add(list string, in set) {
	for text := range strings.SplitSeq(list, ",") {
		if w := strings.Fields(text); len(w) > 0 {
			p[w[0]] = append(p[w[0]], phrase{w[1:], in})
		}
	}
}

func index(field func(*row) string, mask string) phrases {
	p := phrases{}
	p.add(mask, 0)
	for i := range table {
		p.add(field(&table[i]), 1<<i)
	}
	for _, same := range p {
		slices.SortStableFunc(same, func(a, b phrase) int { return len(b.rest) - len(a.rest) })
	}
	return p
}

var (
	typePhrases    = index(func(r *row) string { return r.types }, "")
	messagePhrases = index(func(r *row) string { return r.words }, masked)
	japanese       = splitJapanese()
)

type substring struct {
	text string
	in   set
}

func splitJapanese() []substring {
	var all []substring
	for i := range table {
		for text := range strings.SplitSeq(table[i].japanese, ",") {
			if text = strings.TrimSpace(text); text != "" {
				all = append(all, substring{text, 1 << i})
			}
		}
	}
	return all
}

// match answers the categories of all phrases in words, and the last word of
// each match counts once: a longer phrase hides the shorter ones inside it.
func (p phrases) match(words []string) set {
	var found set
	for i := 0; i < len(words); {
		n, in := p.at(words[i:])
		found |= in
		i += max(n, 1)
	}
	return found
}

func (p phrases) at(words []string) (int, set) {
	for _, ph := range p[words[0]] {
		if n := len(ph.rest); n < len(words) && slices.Equal(ph.rest, words[1:1+n]) {
			return n + 1, ph.in
		}
	}
	return 0, 0
}

// maxHalf bounds what is read of a message, its head and its tail, in bytes,
// so that the whole path stays under 10 µs; maxWords is how many words fit.
const (
	maxHalf  = 192
	maxWords = maxHalf + 1
)

// matchMessage answers the categories that a message names in whole words.
func matchMessage(message string) set {
	text := shorten(message)
	var buf [maxWords]string
	words := split(buf[:0], strings.ToLower(text))
	found := messagePhrases.match(words) | statuses(words)
	if !ascii(text) {
		for _, s := range japanese {
			if strings.Contains(text, s.text) {
				found |= s.in
			}
		}
	}
	return found
}

func shorten(s string) string {
	if len(s) <= 2*maxHalf {
		return s
	}
	head, tail := maxHalf, len(s)-maxHalf
	for head > maxHalf-utf8.UTFMax && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s)-maxHalf+utf8.UTFMax && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "\n" + s[tail:]
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// split appends the words of s: runs of ASCII letters, digits and
// underscores; a dot inside a run belongs to it, so package.json is one word.
// Paths and addresses have no words.
func split(words []string, s string) []string {
	for i := 0; i < len(s); {
		if blank(s[i]) {
			i++
			continue
		}
		end, path := chunkEnd(s, i)
		for !path && i < end {
			stop := wordEnd(s[:end], i)
			if stop == i {
				i++
				continue
			}
			words = append(words, s[i:stop])
			i = stop
		}
		i = end
	}
	return words
}

// chunkEnd finds the next blank, and whether what is before it is a path or
// an address: more than one slash, or one at its beginning.
func chunkEnd(s string, i int) (end int, path bool) {
	for i < len(s) && strings.IndexByte("'\"([<", s[i]) >= 0 {
		i++
	}
	slashes := 0
	for end = i; end < len(s) && !blank(s[end]); end++ {
		switch s[end] {
		case '/':
			slashes++
			path = path || slashes > 1 || end == i
		case '\\':
			path = true
		}
	}
	return end, path
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func wordEnd(s string, i int) int {
	for i < len(s) && (wordByte[s[i]] || s[i] == '.' && i > 0 && wordByte[s[i-1]] && i+1 < len(s) && wordByte[s[i+1]]) {
		i++
	}
	return i
}

// wordByte is the set of bytes that words are made of.
var wordByte = func() (in [256]bool) {
	for _, c := range []byte("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		in[c] = true
	}
	return in
}()

// statuses finds HTTP statuses that a message names as such: "HTTP 429",
// "status code: 503", "504 Gateway Timeout"; never a bare number.
func statuses(words []string) set {
	var found set
	for i, w := range words {
		if len(w) != 3 || w[0] != '4' && w[0] != '5' || !digits(w) {
			continue
		}
		before := i > 0 && announces(words[i-1]) || i > 1 && words[i-2] == "http"
		after := i+1 < len(words) && isReason(words[i+1])
		if before || after {
			c, _ := OfStatus(int(w[0]-'0')*100 + int(w[1]-'0')*10 + int(w[2]-'0'))
			found |= bit(c)
		}
	}
	return found
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func announces(w string) bool {
	switch w {
	case "http", "https", "status", "code", "statuscode", "status_code", "error":
		return true
	}
	return false
}

// isReason reports whether w begins the reason phrase of an HTTP status.
func isReason(w string) bool {
	switch w {
	case "too", "rate", "service", "bad", "gateway", "internal", "request", "unauthorized", "forbidden",
		"not", "payment", "client", "server", "conflict", "unprocessable", "overloaded", "timeout":
		return true
	}
	return false
}

// matchType answers the categories that the name of an error type stands for.
// Of a qualified name the last two parts count: *json.SyntaxError.
func matchType(name string) set {
	name = strings.TrimLeft(name[strings.LastIndexByte(name, '/')+1:], "*")
	var buf [16]string
	words := buf[:0]
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		pkg := name[:i]
		words = camel(words, pkg[strings.LastIndexByte(pkg, '.')+1:])
		name = name[i+1:]
	}
	return typePhrases.match(camel(words, name))
}

// camel appends the lower-cased words of a camel-case name; an acronym is one
// word (JSONDecodeError: json, decode, error).
func camel(words []string, name string) []string {
	for start := 0; start < len(name) && len(words) < cap(words); {
		end := camelEnd(name, start)
		if w := strings.Trim(name[start:end], "_"); w != "" {
			words = append(words, strings.ToLower(w))
		}
		start = end
	}
	return words
}

func camelEnd(s string, i int) int {
	first := i
	for i++; i < len(s); i++ {
		switch {
		case s[i-1] == '_':
			return i
		case upper(s[i]) && !upper(s[i-1]):
			return i
		case i > first+1 && upper(s[i-2]) && upper(s[i-1]) && !upper(s[i]):
			return i - 1
		}
	}
	return i
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }
