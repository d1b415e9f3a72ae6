package rollback

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// excludedNames are left out wherever they stand: version control, virtual
// environments, dependencies, caches.
func excludedNames() []string {
	return append(cacheNames(), ".git", ".hg", ".svn", ".venv", "node_modules", ".tox", ".nox")
}

// cacheNames are excluded folders that any test run makes anew. Restore
// removes them from a folder that the run itself created, and nowhere else.
func cacheNames() []string {
	return []string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
}

func builtin(base string) bool {
	return slices.Contains(excludedNames(), base) || strings.HasSuffix(base, ".pyc")
}

func isCache(base string) bool {
	return slices.Contains(cacheNames(), base) || strings.HasSuffix(base, ".pyc")
}

// ignoreRules are the patterns of a .nexusignore, in gitignore syntax.
type ignoreRules []ignoreRule

type ignoreRule struct {
	expr     *regexp.Regexp
	negated  bool
	dirOnly  bool
	anchored bool
}

// splitLines cuts a .nexusignore into lines without a BOM, line ends, comments
// and blank lines.
func splitLines(data []byte) []string {
	var out []string
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		s := strings.TrimSuffix(string(line), "\r")
		if s != "" && !strings.HasPrefix(s, "#") {
			out = append(out, s)
		}
	}
	return out
}

func parseIgnore(lines []string) (ignoreRules, error) {
	var out ignoreRules
	for _, line := range lines {
		rule, ok, err := parseRule(line)
		if err != nil {
			return nil, &Error{Kind: KindUnreadable, Paths: []string{ignoreFile}, Detail: fmt.Sprintf("pattern %q", line), Err: err}
		}
		if ok {
			out = append(out, rule)
		}
	}
	return out, nil
}

func parseRule(line string) (ignoreRule, bool, error) {
	var r ignoreRule
	p := trimBlanks(line)
	if rest, ok := strings.CutPrefix(p, "!"); ok {
		r.negated, p = true, rest
	}
	if rest, ok := strings.CutSuffix(p, "/"); ok {
		r.dirOnly, p = true, rest
	}
	r.anchored = strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return r, false, nil
	}
	var err error
	r.expr, err = regexp.Compile(globExpr(p))
	return r, true, err
}

// trimBlanks removes trailing blanks that no backslash protects.
func trimBlanks(s string) string {
	for strings.HasSuffix(s, " ") {
		cut := strings.TrimSuffix(s, " ")
		slashes := len(cut) - len(strings.TrimRight(cut, `\`))
		if slashes%2 == 1 {
			break
		}
		s = cut
	}
	return s
}

// globExpr turns one pattern into an expression for the whole path.
func globExpr(p string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(p); {
		i += globPart(&b, p, i)
	}
	b.WriteString(`\z`)
	return b.String()
}

// globPart writes the expression of what stands at p[i:] and returns how many
// bytes of the pattern that was.
func globPart(b *strings.Builder, p string, i int) int {
	rest, start := p[i:], i == 0 || p[i-1] == '/'
	switch {
	case start && strings.HasPrefix(rest, "**/"):
		b.WriteString(`(?:.*/)?`)
		return 3
	case start && i > 0 && rest == "**":
		b.WriteString(`.+`)
		return 2
	case rest[0] == '*':
		b.WriteString(`[^/]*`)
		return 1
	case rest[0] == '?':
		b.WriteString(`[^/]`)
		return 1
	case rest[0] == '[':
		return globClass(b, rest)
	case rest[0] == '\\' && len(rest) > 1:
		b.WriteString(regexp.QuoteMeta(rest[1:2]))
		return 2
	default:
		b.WriteString(regexp.QuoteMeta(rest[:1]))
		return 1
	}
}

// globClass writes a bracket expression. One that is not closed becomes an
// expression that does not compile, so that the pattern is reported.
func globClass(b *strings.Builder, rest string) int {
	i, negated := 1, false
	if i < len(rest) && (rest[i] == '!' || rest[i] == '^') {
		i, negated = i+1, true
	}
	var set strings.Builder
	for first := i; i < len(rest) && (rest[i] != ']' || i == first); {
		n := classPart(&set, rest[i:])
		i += n
	}
	if i >= len(rest) {
		b.WriteString("[")
		return len(rest)
	}
	if negated {
		b.WriteString("[^/" + set.String() + "]")
	} else {
		b.WriteString("[" + set.String() + "]")
	}
	return i + 1
}

func classPart(set *strings.Builder, rest string) int {
	if strings.HasPrefix(rest, "[:") {
		if end := strings.Index(rest, ":]"); end > 0 {
			set.WriteString(rest[:end+2])
			return end + 2
		}
	}
	if rest[0] == '\\' && len(rest) > 1 {
		set.WriteString(regexp.QuoteMeta(rest[1:2]))
		return 2
	}
	if strings.ContainsRune(`\[]^&~`, rune(rest[0])) {
		set.WriteByte('\\')
	}
	set.WriteByte(rest[0])
	return 1
}

// excludes reports whether the last pattern that matches p excludes it.
func (rules ignoreRules) excludes(p string, dir bool) bool {
	for _, r := range slices.Backward(rules) {
		if r.dirOnly && !dir {
			continue
		}
		subject := p
		if !r.anchored {
			subject = path.Base(p)
		}
		if r.expr.MatchString(subject) {
			return !r.negated
		}
	}
	return false
}

// guard refuses paths that no candidate may touch.
type guard struct {
	rules        ignoreRules
	rulesErr     error
	environments []string
	special      []string
	hardLinked   []string
}

func (m Manifest) guard() guard {
	rules, err := parseIgnore(m.Ignore)
	return guard{rules, err, m.Environments, m.Special, m.HardLinked}
}

// check looks at every spelling of one path: as named, and with links followed.
func (g guard) check(paths ...string) error {
	if g.rulesErr != nil {
		return g.rulesErr
	}
	for _, p := range paths {
		switch {
		case p == ignoreFile:
			return unsafePath(p, "the list of exclusions may not be changed")
		case g.excluded(p):
			return unsafePath(p, "is excluded")
		case slices.Contains(g.special, p):
			return unsafePath(p, "is a FIFO, socket or device")
		case slices.Contains(g.hardLinked, p):
			return unsafePath(p, "has several names (hard link)")
		}
	}
	return nil
}

// excluded looks at the path and at every folder above it, from the top: what
// stands in an excluded folder cannot be included again.
func (g guard) excluded(p string) bool {
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		sub, dir := p[:i], i < len(p)
		if builtin(path.Base(sub)) || slices.Contains(g.environments, sub) || g.rules.excludes(sub, dir) {
			return true
		}
	}
	return false
}
