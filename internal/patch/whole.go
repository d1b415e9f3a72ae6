package patch

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

func sortedCopy(list []string) []string {
	out := append([]string(nil), list...)
	sort.Strings(out)
	return out
}

// block is a fence with what is known about its file.
type block struct {
	fence
	lang, name string
	label      []byte
}

// readFences reads whole files from fenced blocks.
func readFences(a *answer) (Draft, bool, error) {
	blocks := a.blocks()
	if len(blocks) == 0 || a.begunInside() {
		return Draft{}, false, nil
	}
	blocks, err := a.assign(blocks)
	if err != nil {
		return Draft{}, true, err
	}
	d := Draft{Format: FormatFile}
	for _, b := range blocks {
		if !b.closed {
			a.note("the last block had no closing fence")
		}
		d.Files = append(d.Files, File{
			Path: b.name, Op: OpModify, Whole: true, Body: joinText(b.body), Label: b.label,
		})
	}
	return d, true, nil
}

// blocks names every fence that it can: by its info string, by the line above,
// by a block above that holds nothing but a path, or by a first comment. A line
// above that is a path and nothing else names a file that is not there yet.
func (a *answer) blocks() []block {
	var out []block
	pending := ""
	for i, f := range a.fences {
		if p, ok := a.pathOnly(f); ok {
			pending = p
			continue
		}
		if f.inline || allBlank(f.body) && !f.closed {
			continue // no block at all, or a stray mark at the end
		}
		b := block{fence: f}
		b.lang, b.name = a.names.info(f.info)
		if b.name == "" && pending != "" {
			b.name = pending
		}
		if b.name == "" {
			b.name = a.above(i)
		}
		if b.name == "" {
			b.name = a.names.bare(a.lineAbove(i), b.lang)
		}
		a.firstComment(&b)
		pending = ""
		out = append(out, b)
	}
	return out
}

// pathOnly recognises a block whose only content is the path of the next one.
func (a *answer) pathOnly(f fence) (string, bool) {
	if len(f.body) != 1 {
		return "", false
	}
	s := strings.TrimSpace(string(f.body[0]))
	p := a.names.resolve(s, false)
	return p, s != "" && (a.names.known[p] || (f.inline && looksLikePath(s)))
}

// above is the file that the line above a fence names.
func (a *answer) above(i int) string {
	name, _ := a.names.label(a.lineAbove(i))
	return name
}

// lineAbove is the last line that is not blank before a fence, at most two
// lines up, and not part of the block before.
func (a *answer) lineAbove(i int) string {
	floor := 0
	if i > 0 {
		floor = a.fences[i-1].end + 1
	}
	at := a.fences[i].start - 1
	for skipped := 0; at >= floor && blank(a.lines[at]); at-- {
		if skipped++; skipped > 2 {
			return ""
		}
	}
	if at < floor {
		return ""
	}
	return string(a.lines[at])
}

// firstComment takes a path from a comment in the first line of the body. The
// line is noise unless the file has it, so it is remembered as the label.
func (a *answer) firstComment(b *block) {
	if len(b.body) == 0 {
		return
	}
	s := strings.TrimSpace(string(b.body[0]))
	t := s
	for _, mark := range []string{"#", "//", "--", "/*", "<!--", ";", "%"} {
		if rest, ok := strings.CutPrefix(s, mark); ok {
			t = rest
			break
		}
	}
	if t == s {
		return
	}
	t = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(t, "-->"), "*/"))
	t, marked := undecorate(t)
	p := a.names.resolve(t, false)
	if t == "" || (!a.names.known[p] && (!marked || !looksLikePath(t))) {
		return
	}
	if b.name == "" {
		b.name = p
	}
	if b.name == p {
		b.label = append(bytes.Clone(b.body[0]), '\n')
	}
}

// assign gives the only target to the only block without a name and drops the
// blocks that are commands or output. What then is unclear is refused.
func (a *answer) assign(blocks []block) ([]block, error) {
	var named, unnamed []block
	for _, b := range blocks {
		if b.name != "" {
			named = append(named, b)
		} else {
			unnamed = append(unnamed, b)
		}
	}
	only, single := a.names.only()
	unnamed = matching(unnamed, "")
	if fitting := matching(unnamed, path.Ext(only)); single && (len(named) == 0 || hasName(named, only)) {
		unnamed = fitting
	} else if len(fitting) < len(unnamed) {
		single = false // a block of another language beside other files is one of them
	}
	unnamed = distinct(unnamed)
	if single && len(unnamed) > 1 {
		unnamed = a.withoutExamples(a.withoutQuotes(unnamed, only))
	}
	switch {
	case len(named) == 0 && len(unnamed) == 0:
		return nil, refuse(GateDecode, ReasonLanguage, "", "no block of the answer holds code for %s", a.names.allowed())
	case len(unnamed) == 0:
		return named, nil
	case single && len(unnamed) == 1 && !hasName(named, only):
		unnamed[0].name = only
		return append(named, unnamed...), nil
	case single && hasName(named, only):
		return named, nil
	}
	return nil, refuse(GateDecode, ReasonNoPath, "",
		"%d code blocks do not say which file they are; put the path above each block. Files: %s",
		len(unnamed), a.names.allowed())
}

// defines matches the first line of a definition at the top level.
var defines = regexp.MustCompile(
	`^(?:(?:export|default|async|pub|public|abstract|final|static) +)*` +
		`(?:def|class|func|function|fn|type|struct|interface|enum|trait|impl|module) +\w`)

// withoutExamples drops the blocks that define nothing when one block does: a
// model likes to show how its code is called, or what was wrong.
func (a *answer) withoutExamples(blocks []block) []block {
	var kept []block
	for _, b := range blocks {
		if slices.ContainsFunc(b.body, defines.Match) {
			kept = append(kept, b)
		}
	}
	if len(kept) != 1 {
		return blocks
	}
	a.note("the blocks that define nothing were taken for examples")
	return kept
}

func hasName(blocks []block, name string) bool {
	for _, b := range blocks {
		if b.name == name {
			return true
		}
	}
	return false
}

// distinct drops repetitions of the same body.
func distinct(blocks []block) []block {
	var out []block
	seen := map[string]bool{}
	for _, b := range blocks {
		key := string(bytes.TrimSpace(joinText(b.body)))
		if !seen[key] {
			seen[key] = true
			out = append(out, b)
		}
	}
	return out
}

// languages maps info strings to the extensions of their files.
var languages = map[string]string{
	"python": ".py .pyi", "py": ".py .pyi", "python3": ".py .pyi", "go": ".go", "golang": ".go",
	"javascript": ".js .mjs .cjs .jsx", "js": ".js .mjs .cjs .jsx", "jsx": ".jsx .js", "node": ".js .mjs .cjs",
	"typescript": ".ts .tsx .mts .cts", "ts": ".ts .tsx .mts .cts", "tsx": ".tsx .ts", "json": ".json", "jsonc": ".json",
	"yaml": ".yaml .yml", "yml": ".yaml .yml", "toml": ".toml", "ini": ".ini .cfg", "html": ".html .htm .vue .svelte",
	"css": ".css", "scss": ".scss", "sql": ".sql", "php": ".php", "ruby": ".rb", "rb": ".rb", "rust": ".rs", "rs": ".rs",
	"java": ".java", "kotlin": ".kt", "c": ".c .h", "cpp": ".cpp .cc .hpp .h .cxx", "csharp": ".cs", "cs": ".cs",
	"bash": ".sh .bash", "sh": ".sh .bash", "shell": ".sh .bash", "zsh": ".sh .zsh", "console": "", "terminal": "",
	"text": ".txt .md", "txt": ".txt", "plaintext": ".txt", "output": "", "log": "", "traceback": "", "pytb": "",
	"markdown": ".md .mdx", "md": ".md .mdx", "xml": ".xml .svg", "powershell": ".ps1", "makefile": "", "dockerfile": "",
}

// matching drops blocks whose language is known to be another than that of
// ext; without ext it drops commands and output only.
func matching(blocks []block, ext string) []block {
	var out []block
	for _, b := range blocks {
		exts, known := languages[b.lang]
		switch {
		case !known || b.lang == "":
		case ext == "" && (exts == "" || strings.HasPrefix(exts, ".sh")):
			continue
		case ext != "" && !containsWord(exts, ext) && !isKnownAs(ext, exts):
			continue
		}
		out = append(out, b)
	}
	return out
}

// isKnownAs keeps a block when the target's extension is in no language at
// all, so that its language can't speak against it.
func isKnownAs(ext, exts string) bool {
	if exts == "" {
		return false
	}
	for _, l := range languages {
		if containsWord(l, ext) {
			return false
		}
	}
	return true
}

func containsWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
