package patch

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// readUnified reads unified diffs: git's or plain, in fences or not, with
// wrong or missing counts and headers.
func readUnified(a *answer) (Draft, bool, error) {
	d := Draft{Format: FormatDiff}
	fenced, start := false, diffStart(a)
	for i, f := range a.fences {
		if f.inline || !isDiff(f) {
			continue
		}
		if start >= 0 && start < f.start {
			break // the fence is part of the lines that the diff quotes
		}
		fenced = true
		p := &diffReader{a: a, lines: f.body, hint: a.above(i)}
		if _, name := a.names.info(f.info); name != "" {
			p.hint = name
		}
		if err := p.read(); err != nil {
			return d, true, err
		}
		d.Files = append(d.Files, p.files...)
	}
	if !fenced {
		if start < 0 {
			return d, false, nil
		}
		p := &diffReader{a: a, lines: a.lines[start:]}
		if err := p.read(); err != nil {
			return d, true, err
		}
		d.Files = p.files
	}
	return d, true, nil
}

var hunkHeader = regexp.MustCompile(`^@@(?:\s*-(\d+)(?:,(\d+))?\s+\+(\d+)(?:,(\d+))?\s*@@|[^@]*@@)?\s?(.*)$`)

// isDiff says whether a fenced block is a diff, by its info string or by its
// first lines.
func isDiff(f fence) bool {
	lang, _, _ := strings.Cut(strings.ToLower(f.info), " ")
	named := lang == "diff" || lang == "patch" || lang == "udiff"
	for _, l := range f.body {
		if blank(l) {
			continue
		}
		s := string(l)
		if strings.HasPrefix(s, "diff --git ") || strings.HasPrefix(s, "@@") ||
			strings.HasPrefix(s, "--- ") || strings.HasPrefix(s, "+++ ") || strings.HasPrefix(s, "Index: ") {
			return true
		}
		if !named {
			return false
		}
		if s[0] == '+' || s[0] == '-' {
			return true
		}
	}
	return false
}

// diffStart is the first line of a diff that stands outside every fence.
func diffStart(a *answer) int {
	for i, l := range a.lines {
		s := string(l)
		switch {
		case a.insideFence(i):
		case strings.HasPrefix(s, "diff --git "):
			return i
		case strings.HasPrefix(s, "--- ") && (nextHas(a.lines, i, "+++ ") || nextHas(a.lines, i, "@@")):
			return i
		case strings.HasPrefix(s, "+++ ") && nextHas(a.lines, i, "@@"):
			return i
		case strings.HasPrefix(s, "@@") && hunkHeader.Match(l) && (nextHas(a.lines, i, "-") ||
			nextHas(a.lines, i, "+") || nextHas(a.lines, i, " ")):
			return i
		}
	}
	return -1
}

func nextHas(lines [][]byte, i int, prefix string) bool {
	return i+1 < len(lines) && bytes.HasPrefix(lines[i+1], []byte(prefix))
}

// diffReader reads the lines of one diff.
type diffReader struct {
	a     *answer
	lines [][]byte
	// hint is the file that the text round the diff names.
	hint  string
	at    int
	files []File
}

func (r *diffReader) read() error {
	for r.at < len(r.lines) {
		line := string(bytes.TrimSuffix(r.lines[r.at], []byte("\r")))
		switch {
		case strings.HasPrefix(line, "diff --git "):
			if err := r.gitFile(line); err != nil {
				return err
			}
		case strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ "):
			if err := r.plainFile(File{Op: OpModify}); err != nil {
				return err
			}
		case strings.HasPrefix(line, "@@"):
			if err := r.hunk(); err != nil {
				return err
			}
		case strings.HasPrefix(line, "GIT binary patch") || strings.HasPrefix(line, "Binary files "):
			return refuse(GateDecode, ReasonBinary, "", "binary patches are not accepted")
		case len(r.files) == 0 && line != "" && (line[0] == '-' || line[0] == '+'):
			if err := r.headless(); err != nil {
				return err
			}
		default:
			r.at++
		}
	}
	return r.check()
}

// check refuses a diff of which nothing but headers is left, and finds the file
// of one without a path.
func (r *diffReader) check() error {
	for i := range r.files {
		f := &r.files[i]
		if len(f.Hunks) == 0 && f.Op == OpModify && f.MoveTo == "" && f.Mode == 0 {
			return refuse(GateDecode, ReasonMalformed, f.Path, "the diff of %s has no hunk", f.Path)
		}
		if f.Path == "" {
			name, ok := r.a.holder(f.Hunks)
			if !ok {
				return r.noPath()
			}
			f.Path = name
		}
	}
	if len(r.files) == 0 {
		return refuse(GateDecode, ReasonMalformed, "", "the diff has no hunk")
	}
	return nil
}

func (r *diffReader) name(written string) string {
	written, _, _ = strings.Cut(written, "\t")
	return unquoteName(strings.TrimSpace(written))
}

// gitFile reads the extended header of git.
func (r *diffReader) gitFile(line string) error {
	f := File{Op: OpModify}
	f.Path = gitPath(strings.TrimPrefix(line, "diff --git "))
	r.at++
	for ; r.at < len(r.lines); r.at++ {
		key, value, ok := gitHeader(string(bytes.TrimSuffix(r.lines[r.at], []byte("\r"))))
		if !ok {
			break
		}
		if err := f.header(key, value); err != nil {
			return err
		}
	}
	if f.MoveTo != "" {
		f.Path, f.MoveTo = r.a.names.existing(f.Path, false), r.a.names.resolve(f.MoveTo, false)
	} else if f.Path != "" {
		f.Path = r.target(&f, f.Path)
	}
	if r.continues(&f) {
		return r.plainFile(f)
	}
	r.files = append(r.files, f)
	return nil
}

// continues says whether the --- and +++ lines that follow a git header are
// about the same file.
func (r *diffReader) continues(f *File) bool {
	if r.at >= len(r.lines) || !bytes.HasPrefix(r.lines[r.at], []byte("--- ")) {
		return false
	}
	from := r.name(string(r.lines[r.at][4:]))
	from, _ = cutSide(from)
	return f.MoveTo == "" || from == "/dev/null" || r.a.names.existing(from, true) == f.Path
}

// gitPath takes the new path from "a/x b/x".
func gitPath(s string) string {
	if strings.HasSuffix(s, `"`) {
		if i := strings.LastIndex(s[:len(s)-1], ` "`); i >= 0 {
			s = unquoteName(s[i+1:])
			s, _ = cutSide(s)
			return s
		}
	}
	if i := strings.LastIndex(s, " b/"); i >= 0 {
		return s[i+3:]
	}
	f := strings.Fields(s)
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1]
}

var gitKeys = []string{
	"new file mode", "deleted file mode", "old mode", "new mode", "rename from", "rename to",
	"copy from", "copy to", "similarity index", "dissimilarity index", "index",
}

func gitHeader(line string) (key, value string, ok bool) {
	for _, k := range gitKeys {
		if v, found := strings.CutPrefix(line, k+" "); found {
			return k, strings.TrimSpace(v), true
		}
	}
	return "", "", false
}

func (f *File) header(key, value string) error {
	var err error
	switch key {
	case "new file mode":
		f.Op = OpCreate
		f.Mode, err = checkMode(value, f.Path)
	case "new mode":
		f.Mode, err = checkMode(value, f.Path)
	case "old mode":
		_, err = checkMode(value, f.Path)
	case "deleted file mode":
		f.Op = OpDelete
		_, err = checkMode(value, f.Path)
	case "index":
		if i := strings.LastIndexByte(value, ' '); i >= 0 {
			_, err = checkMode(value[i+1:], f.Path)
		}
	case "rename from":
		f.Path = unquoteName(value)
	case "rename to":
		f.MoveTo = unquoteName(value)
	case "copy from", "copy to":
		err = refuse(GateDecode, ReasonUnsupported, f.Path, "a diff may not copy files; write the new file in full")
	}
	return err
}

// plainFile reads "--- old" and "+++ new", either of which may be missing. f
// holds what git's own header said before.
func (r *diffReader) plainFile(f File) error {
	var from, to string
	if s, ok := strings.CutPrefix(string(r.lines[r.at]), "--- "); ok {
		from = r.name(strings.TrimSuffix(s, "\r"))
		r.at++
	}
	if r.at < len(r.lines) {
		if s, ok := strings.CutPrefix(string(r.lines[r.at]), "+++ "); ok {
			to = r.name(strings.TrimSuffix(s, "\r"))
			r.at++
		}
	}
	switch {
	case from == "/dev/null" && to == "/dev/null":
		return refuse(GateDecode, ReasonMalformed, "", "a diff names /dev/null on both sides")
	case from == "/dev/null":
		f.Op = OpCreate
		f.Path = r.target(&f, to)
	case to == "/dev/null":
		f.Op = OpDelete
		f.Path = r.target(&f, from)
	case f.MoveTo != "":
	case to == "":
		f.Path = r.target(&f, from)
	default:
		f.Path = r.target(&f, to)
	}
	r.files = append(r.files, f)
	return nil
}

// target maps a written name; edits of existing files may leave folders out.
func (r *diffReader) target(f *File, written string) string {
	if written == "" {
		written = r.hint
	}
	if f.Op == OpCreate {
		return r.a.names.resolve(written, true)
	}
	return r.a.names.existing(written, true)
}

// unnamed is the file of hunks that stand without a header. Its path is empty
// where only its content can tell; check looks for it.
func (r *diffReader) unnamed() error {
	name := r.hint
	if name == "" {
		name, _ = r.a.names.only()
	}
	if name == "" && r.a.opts.Read == nil {
		return r.noPath()
	}
	r.files = append(r.files, File{Path: name, Op: OpModify})
	return nil
}

func (r *diffReader) noPath() error {
	return refuse(GateDecode, ReasonNoPath, "",
		"the diff does not name its file; start it with --- a/PATH and +++ b/PATH. Files: %s", r.a.names.allowed())
}

func (r *diffReader) headless() error {
	if err := r.unnamed(); err != nil {
		return err
	}
	r.a.note("a diff without headers")
	return r.add(Hunk{}, counts{})
}

func (r *diffReader) hunk() error {
	if len(r.files) == 0 {
		if err := r.unnamed(); err != nil {
			return err
		}
	}
	m := hunkHeader.FindSubmatch(bytes.TrimSuffix(r.lines[r.at], []byte("\r")))
	r.at++
	h, c := Hunk{}, counts{}
	if m == nil {
		return r.add(h, c)
	}
	if len(m[1]) > 0 {
		c = counts{stated: true, old: count(m[2]), new: count(m[4])}
		h.Start, _ = strconv.Atoi(string(m[1]))
	}
	if heading := bytes.TrimSpace(m[5]); len(heading) > 0 {
		h.Anchors = [][]byte{heading}
	}
	return r.add(h, c)
}

// counts are the line numbers that a hunk header states.
type counts struct {
	stated   bool
	old, new int
}

func count(b []byte) int {
	if len(b) == 0 {
		return 1
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return -1
	}
	return n
}
