package patch

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// namer turns what an answer writes as a file name into a project path.
type namer struct {
	targets []string
	known   map[string]bool
	// byBase maps a base name to the known paths that end with it.
	byBase map[string][]string
}

func newNamer(targets, paths []string) *namer {
	n := &namer{targets: targets, known: map[string]bool{}, byBase: map[string][]string{}}
	for _, list := range [][]string{targets, paths} {
		for _, p := range list {
			if !n.known[p] {
				n.known[p] = true
				n.byBase[path.Base(p)] = append(n.byBase[path.Base(p)], p)
			}
		}
	}
	return n
}

// only is the file that a block without a name must mean: the single target,
// or the single known file when there are no targets.
func (n *namer) only() (string, bool) {
	if len(n.targets) == 1 {
		return n.targets[0], true
	}
	if len(n.targets) == 0 && len(n.known) == 1 {
		for p := range n.known {
			return p, true
		}
	}
	return "", false
}

// allowed lists the names for a refusal.
func (n *namer) allowed() string {
	list := n.targets
	if len(list) == 0 {
		for p := range n.known {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return "none is declared"
	}
	const most = 20
	list = sortedCopy(list)
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return strings.Join(list, ", ")
}

// resolve maps a written path to a known one when it means exactly one: as it
// is, without the a/ and b/ of a diff, or with folders added or left out at
// the front. Otherwise the path stays as written.
func (n *namer) resolve(written string, fromDiff bool) string {
	p := strings.TrimPrefix(written, "./")
	if n.known[p] {
		return p
	}
	if rest, ok := cutSide(p); ok && (fromDiff || n.known[rest]) {
		p = strings.TrimPrefix(rest, "./")
	}
	if n.known[p] || CheckPath(p) != nil {
		return p
	}
	if m := n.suffix(p, n.targets); m != "" {
		return m
	}
	return p
}

// existing is resolve for an edit that needs a file to be there.
func (n *namer) existing(written string, fromDiff bool) string {
	p := n.resolve(written, fromDiff)
	if n.known[p] || CheckPath(p) != nil {
		return p
	}
	if m := n.suffix(p, n.byBase[path.Base(p)]); m != "" {
		return m
	}
	return p
}

// suffix is the only path of list that ends with p, or that p ends with.
func (n *namer) suffix(p string, list []string) string {
	found := ""
	for _, k := range list {
		if strings.HasSuffix(k, "/"+p) || strings.HasSuffix(p, "/"+k) {
			if found != "" && found != k {
				return ""
			}
			found = k
		}
	}
	return found
}

func cutSide(p string) (string, bool) {
	if len(p) > 2 && (p[:2] == "a/" || p[:2] == "b/") {
		return p[2:], true
	}
	return p, false
}

var (
	numbered  = regexp.MustCompile(`^(\d+[.)]|[-*+•])\s+`)
	prefixed  = regexp.MustCompile(`^(?i)(file ?name|file ?path|file|path)\s*[:=]\s*`)
	pathLike  = regexp.MustCompile(`^(?:~?/)?[\w.@+-]+(/[\w.@+ -]+)*$`)
	extension = regexp.MustCompile(`\.[A-Za-z]\w{0,9}$`)
	quoted    = regexp.MustCompile("`([^`\\s]+)`")
	product   = regexp.MustCompile(`^[A-Z][\w.]*\.[cm]?[jt]s$`)
	address   = regexp.MustCompile(`^(?:www\.|[\w.-]+\.(?:com|org|io|net|dev|edu|gov)(?:/|$))`)
	attribute = regexp.MustCompile(`(?i)\b(?:file ?name|file ?path|file|path|title|src)\s*[:=]\s*["']?([^"'\s}]+)`)
)

// label reads a line that stands above a block. It returns the path when the
// line is a known path under any decoration, when it marks a path explicitly,
// or when it mentions exactly one known path.
func (n *namer) label(line string) (string, bool) {
	s, marked := undecorate(line)
	if s != "" {
		if p := n.resolve(s, false); n.known[p] {
			return p, true
		}
		if marked && looksLikePath(s) {
			return n.resolve(s, false), true
		}
	}
	return n.mentioned(line)
}

// maxBare bounds in bytes a path that only its own line marks as one.
const maxBare = 255

// bare reads a line that is nothing but the path of a file that is not there.
// It has a folder, or the extension of the block's language, and is no product
// (Node.js) or address, nor longer than people write paths.
func (n *namer) bare(line, lang string) string {
	s, _ := undecorate(line)
	if len(s) > maxBare || !looksLikePath(s) || address.MatchString(s) {
		return ""
	}
	exts, ext := languages[lang], path.Ext(s)
	if lang == "" {
		exts = strings.Join(slices.Collect(maps.Values(languages)), " ")
	}
	fits := containsWord(exts, ext) && !product.MatchString(s)
	if fits || strings.Contains(s, "/") && (exts == "" || containsWord(exts, ext) || isKnownAs(ext, exts)) {
		return n.resolve(s, false)
	}
	return ""
}

// undecorate drops headings, bullets, quotes and colons. marked says that the
// decoration is one that people put round file names.
func undecorate(line string) (string, bool) {
	s := strings.TrimSpace(line)
	s = strings.TrimSpace(strings.TrimLeft(s, "#>"))
	s = numbered.ReplaceAllLiteralString(s, "")
	marked := false
	for range 6 {
		before := s
		s = strings.TrimSpace(s)
		s = strings.TrimRight(s, ":")
		if t := prefixed.ReplaceAllLiteralString(s, ""); t != s {
			s, marked = t, true
		}
		for _, pair := range []string{"``", "[]", "**", "__", `""`, "''", "()", "<>"} {
			if len(s) >= 2 && s[0] == pair[0] && s[len(s)-1] == pair[1] {
				s = s[1 : len(s)-1]
				marked = marked || pair == "``" || pair == "[]"
			}
		}
		if s == before {
			break
		}
	}
	return s, marked
}

func looksLikePath(s string) bool {
	return pathLike.MatchString(s) && extension.MatchString(s)
}

// mentioned is the only known path that stands in backticks or as a word. With
// declared targets a sentence names one of them or nothing: it may well speak
// of the failing test.
func (n *namer) mentioned(line string) (string, bool) {
	found := ""
	take := func(s string) bool {
		p := n.resolve(s, false)
		if !n.known[p] || (len(n.targets) > 0 && !slices.Contains(n.targets, p)) {
			return true
		}
		if found != "" && found != p {
			return false
		}
		found = p
		return true
	}
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		if !take(m[1]) {
			return "", false
		}
	}
	for _, w := range strings.Fields(line) {
		if !take(strings.Trim(w, "`*_\"'()[],:;.")) {
			return "", false
		}
	}
	return found, found != ""
}

// info reads the info string of a fence: its language and its path, if any.
func (n *namer) info(info string) (lang, name string) {
	if m := attribute.FindStringSubmatch(info); m != nil {
		name = n.resolve(m[1], false)
	}
	for i, w := range strings.Fields(info) {
		if l, p, ok := strings.Cut(w, ":"); ok && i == 0 && !strings.Contains(p, ":") && name == "" && looksLikePath(p) {
			return strings.ToLower(l), n.resolve(p, false)
		}
		w = strings.Trim(w, "{}[]()`\"'")
		if name == "" {
			if p := n.resolve(w, false); n.known[p] || (looksLikePath(w) && strings.ContainsAny(w, "./")) {
				name = p
				continue
			}
		}
		if i == 0 {
			lang = strings.ToLower(strings.TrimPrefix(w, "."))
		}
	}
	return lang, name
}
