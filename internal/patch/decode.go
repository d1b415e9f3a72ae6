package patch

import (
	"bytes"
)

// Decode reads the raw text of an answer. It returns an *Error with Gate
// GateDecode or GatePaths for everything that it refuses; ReasonNoCode means
// that nothing in the text claims to be code.
func Decode(text []byte, o Options) (Draft, error) {
	body, err := admit(text, o)
	if err != nil {
		return Draft{}, err
	}
	readers, ok := readersOf(o.Format)
	if !ok {
		return Draft{}, refuse(GateDecode, ReasonFormat, "", "the format %q is unknown", o.Format)
	}
	a, err := newAnswer(body, o)
	if err != nil {
		return Draft{}, err
	}
	for _, read := range readers {
		d, claimed, err := read(a)
		if err != nil {
			return Draft{}, err
		}
		if claimed {
			return finish(d, a)
		}
	}
	return Draft{}, noCode("the answer holds no code; answer with code only, in one of the agreed formats")
}

// admit refuses what is never read and drops what is never content.
func admit(text []byte, o Options) ([]byte, error) {
	switch {
	case len(text) > MaxAnswer:
		return nil, refuse(GateDecode, ReasonTooLarge, "", "the answer is larger than %d bytes", MaxAnswer)
	case o.Finish == "length":
		return nil, refuse(GateDecode, ReasonTruncated, "",
			"the answer was cut off at the token limit; answer with a shorter edit instead of the whole file")
	case blank(text):
		return nil, noCode("the answer is empty; answer with code only")
	case o.Finish != FinishStop:
		return nil, refuse(GateDecode, ReasonTruncated, "", "the answer did not come to a regular end (stop reason %q)", o.Finish)
	case bytes.IndexByte(text, 0) >= 0:
		return nil, refuse(GateDecode, ReasonNUL, "", "the answer holds a NUL byte")
	}
	body := stripReasoning(text)
	if blank(body) {
		return nil, noCode("the answer holds reasoning only; answer with code")
	}
	return body, nil
}

// reader decodes one format. claimed is false when the text is not in it.
type reader func(*answer) (d Draft, claimed bool, err error)

// readersOf lists the decoders of a format in the order in which they may
// claim a text: the most distinctive marks first.
func readersOf(format string) ([]reader, bool) {
	switch format {
	case "", FormatAuto:
		return []reader{readEnvelope, readSearch, readTags, readJSON, readUnified, readFences, readBare}, true
	case FormatFile:
		return []reader{readJSON, readFences, readBare}, true
	case FormatDiff:
		return []reader{readUnified}, true
	case FormatSearch:
		return []reader{readSearch, readTags}, true
	case FormatPatch:
		return []reader{readEnvelope}, true
	case FormatEdits:
		return []reader{readJSON}, true
	}
	return nil, false
}

// answer is the text of one answer with what the readers share.
type answer struct {
	text   []byte
	lines  [][]byte
	fences []fence
	names  *namer
	opts   Options
	notes  []string
}

func newAnswer(text []byte, o Options) (*answer, error) {
	a := &answer{opts: o, names: newNamer(o.Targets, o.Paths)}
	if allCRLF(text) {
		text = dropCR(text)
		a.note("the answer's CRLF line ends were read as LF")
	}
	a.text = text
	a.lines = splitText(text)
	marks, err := marksOf(a.lines)
	if err != nil {
		return nil, err
	}
	a.fences = findFences(a.lines, marks)
	return a, nil
}

func (a *answer) note(s string) { a.notes = append(a.notes, s) }

// finish merges the files of a draft by path and checks every path.
func finish(d Draft, a *answer) (Draft, error) {
	out := Draft{Format: d.Format, Tolerances: append(a.notes, d.Tolerances...)}
	index := map[string]int{}
	for _, f := range d.Files {
		if err := checkPaths(&f); err != nil {
			return Draft{}, err
		}
		i, known := index[f.Path]
		if !known {
			if len(out.Files) == MaxFiles {
				return Draft{}, refuse(GateDecode, ReasonTooLarge, "",
					"the answer changes more than %d files; answer with the few that the fix needs", MaxFiles)
			}
			index[f.Path] = len(out.Files)
			out.Files = append(out.Files, f)
			continue
		}
		if err := merge(&out.Files[i], f); err != nil {
			return Draft{}, err
		}
	}
	if len(out.Files) == 0 {
		return Draft{}, refuse(GateDecode, ReasonNoOperation, "", "the answer names no file and no change")
	}
	return out, nil
}

func checkPaths(f *File) error {
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	if f.MoveTo == "" {
		return nil
	}
	return CheckPath(f.MoveTo)
}

// merge joins a second block for the same file to the first one.
func merge(into *File, f File) error {
	if into.Mode != 0 && f.Mode != 0 && into.Mode != f.Mode {
		return refuse(GateDecode, ReasonTwoVersions, f.Path, "the answer gives %s two different modes; answer with one", f.Path)
	}
	into.Mode = max(into.Mode, f.Mode)
	switch {
	case into.Whole && f.Whole && bytes.Equal(into.Body, f.Body):
		return nil
	case !into.Whole && !f.Whole && into.Op == f.Op && into.Op != OpDelete && into.MoveTo == f.MoveTo:
		into.Hunks = append(into.Hunks, f.Hunks...)
		return nil
	case into.Op == OpDelete && f.Op == OpDelete && len(f.Hunks) == 0:
		return nil
	}
	return refuse(GateDecode, ReasonTwoVersions, f.Path,
		"the answer holds two different versions of %s; answer with one", f.Path)
}
