package patch

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// Place finds where a draft's edits belong and applies them to the bytes that
// read returns; read reports false for a path that does not exist. The result
// has one Edit for each path that is touched, sorted by path, those without
// effect included. Either everything is placed or an *Error says what is not.
func Place(d Draft, read func(path string) ([]byte, bool)) ([]Edit, error) {
	var out []Edit
	seen := map[string]bool{}
	for i := range d.Files {
		edits, err := placeFile(&d.Files[i], read)
		if err != nil {
			return nil, err
		}
		for _, e := range edits {
			if seen[e.Path] {
				return nil, refuse(GatePlace, ReasonOverlap, e.Path, "%s is changed twice in one answer", e.Path)
			}
			seen[e.Path] = true
			out = append(out, e)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

func placeFile(f *File, read func(string) ([]byte, bool)) ([]Edit, error) {
	if err := checkPaths(f); err != nil {
		return nil, err
	}
	old, exists := read(f.Path)
	if exists && old == nil {
		old = []byte{}
	}
	if exists && bytes.IndexByte(old, 0) >= 0 && f.Op != OpDelete {
		return nil, refuse(GatePlace, ReasonBinary, f.Path, "%s is not a text file and can't be edited", f.Path)
	}
	switch {
	case f.Op == OpDelete:
		return placeDelete(f, old, exists)
	case f.Op == OpCreate && exists:
		return nil, refuse(GatePlace, ReasonExists, f.Path, "%s exists already; answer with an edit of it", f.Path)
	case f.Op == OpCreate, !exists && (f.Whole || f.writes()):
		return placeCreate(f)
	case !exists:
		return nil, refuse(GatePlace, ReasonMissing, f.Path, "there is no file %s in the project", f.Path)
	}
	return placeModify(f, old, read)
}

func placeDelete(f *File, old []byte, exists bool) ([]Edit, error) {
	if !exists {
		return nil, refuse(GatePlace, ReasonMissing, f.Path, "there is no file %s to delete", f.Path)
	}
	if len(f.Hunks) > 0 {
		rest, _, err := applyHunks(f.Path, old, f.Hunks)
		if err != nil {
			return nil, err
		}
		if !blank(rest) {
			return nil, refuse(GatePlace, ReasonNoMatch, f.Path,
				"the diff deletes %s but does not quote all of its lines", f.Path)
		}
	}
	return []Edit{{Path: f.Path, Op: OpDelete, Old: old}}, nil
}

func placeCreate(f *File) ([]Edit, error) {
	body := f.Body
	if !f.Whole {
		var err error
		if body, err = createdBody(f); err != nil {
			return nil, err
		}
	}
	body = bytes.TrimPrefix(body, f.Label)
	if body == nil {
		body = []byte{}
	}
	return []Edit{{Path: f.Path, Op: OpCreate, New: body, Mode: f.Mode}}, nil
}

// writes says that the first thing a file's blocks do is to write text that
// replaces nothing.
func (f *File) writes() bool {
	return len(f.Hunks) > 0 && f.Hunks[0].Literal && len(f.Hunks[0].Search) == 0 && f.Hunks[0].Sequential
}

// createdBody is what the hunks make of a file that does not exist. A later
// block may edit what the blocks before it have written.
func createdBody(f *File) ([]byte, error) {
	var body []byte
	for i, h := range f.Hunks {
		switch {
		case h.Literal && len(h.Search) == 0:
			body = append(body, h.Replace...)
		case h.Sequential && len(body) > 0:
			edited, _, err := applyHunks(f.Path, body, f.Hunks[i:i+1])
			if err != nil {
				return nil, err
			}
			body = edited
		case h.Literal:
			return nil, refuse(GatePlace, ReasonMissing, f.Path, "there is no file %s in the project", f.Path)
		default:
			for _, l := range h.Lines {
				if l.Kind == '-' || (l.Kind == ' ' && !blank(l.Text)) {
					return nil, refuse(GatePlace, ReasonMissing, f.Path,
						"%s is to be created, yet the answer quotes lines of it", f.Path)
				}
				body = append(body, l.Text...)
				if !l.NoEOL {
					body = append(body, '\n')
				}
			}
		}
	}
	return body, nil
}

func placeModify(f *File, old []byte, read func(string) ([]byte, bool)) ([]Edit, error) {
	var (
		out   []byte
		notes []string
		err   error
	)
	if f.Whole {
		out, notes, err = replaceWhole(f, old)
	} else {
		out, notes, err = applyHunks(f.Path, old, f.Hunks)
	}
	if err != nil {
		return nil, err
	}
	if f.MoveTo == "" || f.MoveTo == f.Path {
		return []Edit{{Path: f.Path, Op: OpModify, Old: old, New: out, Mode: f.Mode, Tolerances: notes}}, nil
	}
	if _, taken := read(f.MoveTo); taken {
		return nil, refuse(GatePlace, ReasonExists, f.MoveTo, "%s can't be moved: %s exists", f.Path, f.MoveTo)
	}
	return []Edit{
		{Path: f.Path, Op: OpDelete, Old: old},
		{Path: f.MoveTo, Op: OpCreate, From: f.Path, New: out, Mode: f.Mode, Tolerances: notes},
	}, nil
}

// replaceWhole makes the difference between the file and its new body an edit,
// so that untouched lines keep their line ends and the file its BOM, its final
// line end and its encoding.
func replaceWhole(f *File, old []byte) ([]byte, []string, error) {
	body := f.Body
	if len(f.Label) > 0 && !bytes.HasPrefix(bytes.TrimPrefix(old, bom), f.Label) {
		body = bytes.TrimPrefix(body, f.Label)
	}
	if len(bytes.TrimPrefix(old, bom)) == 0 {
		return append(bytes.Clone(old), bytes.TrimPrefix(body, bom)...), nil, nil
	}
	if !utf8.Valid(old) && utf8.Valid(body) {
		return nil, nil, refuse(GatePlace, ReasonEncoding, f.Path,
			"%s is not UTF-8; a whole file would change its encoding, answer with a small edit of ASCII lines", f.Path)
	}
	rest := bytes.TrimPrefix(old, bom)
	src := newSource(rest)
	oldLines := make([][]byte, src.size())
	for i := range src.size() {
		oldLines[i] = src.text(i)
	}
	newLines := splitText(dropCR(bytes.TrimPrefix(body, bom)))
	h := diffHunk(oldLines, newLines)
	out, err := splice(f.Path, rest, src.spans(&h, placement{}))
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if len(rest) != len(old) {
		notes = append(notes, f.Path+": the byte order mark was kept")
		out = append(bytes.Clone(bom), out...)
	}
	if allCRLF(rest) && !allCRLF(body) {
		notes = append(notes, f.Path+": the answer took the file's CRLF line ends")
	}
	return out, notes, nil
}

// diffHunk writes the difference of two texts as one hunk over all of old.
func diffHunk(old, after [][]byte) Hunk {
	var h Hunk
	at := 0
	add := func(kind byte, lines [][]byte) {
		for _, l := range lines {
			h.Lines = append(h.Lines, Line{Kind: kind, Text: l})
		}
	}
	for _, s := range LineDiff(old, after) {
		add(' ', old[at:s.OldFrom])
		add('-', old[s.OldFrom:s.OldTo])
		add('+', after[s.NewFrom:s.NewTo])
		at = s.OldTo
	}
	add(' ', old[at:])
	return h
}

// applyHunks places every hunk on the file as it was. A sequential hunk that
// is not there may match the result of the hunks before it.
func applyHunks(path string, old []byte, hunks []Hunk) ([]byte, []string, error) {
	body, hadBOM := old, false
	if bytes.HasPrefix(old, bom) && !mentionsBOM(hunks) {
		body, hadBOM = old[len(bom):], true
	}
	base := newSource(body)
	var (
		pending []edit
		notes   []string
	)
	hunks = unlike(hunks)
	nths, alls := repeats(hunks)
	for i := range hunks {
		nth, all := nths[i], alls[i]
		edits, note, err := locate(path, base, &hunks[i], nth, all)
		if err != nil && hunks[i].Sequential && len(pending) > 0 && reasonOf(err) == ReasonNoMatch {
			mid, serr := splice(path, base.data, pending)
			if serr != nil {
				return nil, nil, serr
			}
			if err := keepsEncoding(path, old, pending); err != nil {
				return nil, nil, err
			}
			base, pending = newSource(mid), nil
			edits, note, err = locate(path, base, &hunks[i], nth, all)
		}
		if err != nil {
			return nil, nil, describe(err, i, len(hunks))
		}
		pending = append(pending, edits...)
		if note != "" {
			notes = append(notes, fmt.Sprintf("%s: hunk %d: %s", path, i+1, note))
		}
	}
	out, err := splice(path, base.data, pending)
	if err != nil {
		return nil, nil, err
	}
	if err := keepsEncoding(path, old, pending); err != nil {
		return nil, nil, err
	}
	if hadBOM {
		out = append(bytes.Clone(bom), out...)
	}
	return out, notes, nil
}

// repeats counts the hunks that are the same as each hunk: those before it, and
// all of them. An answer that says the same edit once for each place means all
// the places; where there is but one, it has said it twice.
func repeats(hunks []Hunk) (nth, all []int) {
	nth, all = make([]int, len(hunks)), make([]int, len(hunks))
	keys, count := make([]string, len(hunks)), map[string]int{}
	for i := range hunks {
		keys[i] = hunks[i].key()
		nth[i] = count[keys[i]]
		count[keys[i]]++
	}
	for i, k := range keys {
		all[i] = count[k]
	}
	return nth, all
}

// unlike leaves out the hunks that state the same edit of the same place again:
// a diff that is printed twice means one edit. Without a line number or heading
// the place is not stated, and each may mean another one.
func unlike(hunks []Hunk) []Hunk {
	out, seen := make([]Hunk, 0, len(hunks)), map[string]bool{}
	for i := range hunks {
		h := &hunks[i]
		if h.Start > 0 || len(h.Anchors) > 0 {
			k := fmt.Sprintf("%d %q %s", h.Start, h.Anchors, h.key())
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		out = append(out, *h)
	}
	return out
}

// key is what a hunk looks for and what it writes: equal for equal edits.
func (h *Hunk) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%t %q %q", h.Literal, h.Search, h.Replace)
	for _, l := range h.Lines {
		fmt.Fprintf(&b, "\n%c%s", l.Kind, l.Text)
	}
	return b.String()
}

// describe says which of several hunks failed and that the others matched.
func describe(err *Error, i, n int) *Error {
	if n == 1 {
		return err
	}
	e := *err
	switch i {
	case 0:
		e.Feedback = "Hunk 1 did not match. " + e.Feedback
	case 1:
		e.Feedback = "Hunk 1 matched, hunk 2 did not. Nothing was applied. " + e.Feedback
	default:
		e.Feedback = fmt.Sprintf("Hunks 1 to %d matched, hunk %d did not. Nothing was applied. %s", i, i+1, e.Feedback)
	}
	return &e
}

func reasonOf(err *Error) string {
	if err == nil {
		return ""
	}
	return err.Reason
}

func mentionsBOM(hunks []Hunk) bool {
	for _, h := range hunks {
		if bytes.Contains(h.Search, bom) || bytes.Contains(h.Replace, bom) {
			return true
		}
		for _, l := range h.Lines {
			if bytes.HasPrefix(l.Text, bom) {
				return true
			}
		}
	}
	return false
}

// keepsEncoding refuses to write UTF-8 into a file that is something else,
// unless the file holds the same line already.
func keepsEncoding(path string, old []byte, edits []edit) *Error {
	if utf8.Valid(old) {
		return nil
	}
	for _, e := range edits {
		for line := range bytes.Lines(e.text) {
			line = bytes.TrimRight(line, "\r\n")
			if !isASCII(line) && utf8.Valid(line) && !bytes.Contains(old, line) {
				return refuse(GatePlace, ReasonEncoding, path,
					"%s is not UTF-8; new text in it must be plain ASCII", path)
			}
		}
	}
	return nil
}
