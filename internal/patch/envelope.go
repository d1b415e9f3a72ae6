package patch

import (
	"bytes"
	"strings"
)

// readEnvelope reads the "*** Begin Patch" format.
func readEnvelope(a *answer) (Draft, bool, error) {
	start := -1
	for i, l := range a.lines {
		if string(bytes.TrimSpace(l)) == "*** Begin Patch" {
			start = i
			break
		}
	}
	if start < 0 {
		return Draft{}, false, nil
	}
	r := &envelopeReader{a: a}
	ended := false
	for _, l := range a.lines[start+1:] {
		if string(bytes.TrimSpace(l)) == "*** End Patch" {
			ended = true
			break
		}
		if bytes.HasPrefix(l, []byte("```")) && len(r.files) > 0 {
			break
		}
		if err := r.line(l); err != nil {
			return Draft{}, true, err
		}
	}
	if !ended {
		a.note("the patch had no *** End Patch line")
	}
	if len(r.files) == 0 {
		return Draft{}, true, refuse(GateDecode, ReasonNoOperation, "",
			"the patch names no file; use *** Update File: PATH. Files: %s", a.names.allowed())
	}
	return Draft{Format: FormatPatch, Files: r.files}, true, r.check()
}

// envelopeReader reads the lines between the envelope's ends.
type envelopeReader struct {
	a     *answer
	files []File
	// anchors collects the @@ lines before a hunk's first line.
	anchors [][]byte
	// open says that the last hunk still takes lines.
	open bool
}

func (r *envelopeReader) line(l []byte) error {
	s := string(bytes.TrimRight(l, " \t\r"))
	for _, v := range []struct {
		mark string
		op   Op
	}{{"*** Add File:", OpCreate}, {"*** Delete File:", OpDelete}, {"*** Update File:", OpModify}} {
		if name, ok := strings.CutPrefix(s, v.mark); ok {
			r.start(strings.TrimSpace(name), v.op)
			return nil
		}
	}
	if len(r.files) == 0 {
		if s == "" || strings.HasPrefix(s, "@@") || isDiffLine(l) {
			return nil
		}
		return refuse(GateDecode, ReasonMalformed, "", "the patch has text before its first file")
	}
	f := &r.files[len(r.files)-1]
	switch {
	case strings.HasPrefix(s, "*** Move to:"):
		f.MoveTo = r.a.names.resolve(strings.TrimSpace(strings.TrimPrefix(s, "*** Move to:")), false)
	case s == "*** End of File":
		if n := len(f.Hunks); n > 0 {
			f.Hunks[n-1].AtEOF = true
		}
		r.open = false
	case strings.HasPrefix(s, "@@"):
		r.heading(s)
	default:
		return r.content(f, l)
	}
	return nil
}

func (r *envelopeReader) start(written string, op Op) {
	name := r.a.names.resolve(written, false)
	if op != OpCreate {
		name = r.a.names.existing(written, false)
	}
	r.files = append(r.files, File{Path: name, Op: op})
	r.anchors, r.open = nil, false
}

func (r *envelopeReader) heading(s string) {
	if r.open {
		r.anchors, r.open = nil, false
	}
	m := hunkHeader.FindStringSubmatch(s)
	if m != nil {
		if text := strings.TrimSpace(m[5]); text != "" {
			r.anchors = append(r.anchors, []byte(text))
		}
	}
}

func (r *envelopeReader) content(f *File, l []byte) error {
	if f.Op == OpDelete {
		if blank(l) {
			return nil
		}
		return refuse(GateDecode, ReasonMalformed, f.Path, "*** Delete File: %s is followed by lines", f.Path)
	}
	if f.Op == OpCreate && len(l) > 0 && l[0] != '+' {
		return refuse(GateDecode, ReasonMalformed, f.Path, "every line of the new file %s must start with +", f.Path)
	}
	if f.Op == OpCreate && len(l) == 0 {
		if r.open {
			h := &f.Hunks[len(f.Hunks)-1]
			h.Lines = append(h.Lines, Line{Kind: '+', Bare: true})
		}
		return nil
	}
	if !r.open {
		f.Hunks = append(f.Hunks, Hunk{Anchors: r.anchors})
		r.open = true
	}
	h := &f.Hunks[len(f.Hunks)-1]
	h.Lines = append(h.Lines, parseHunkLines([][]byte{l})...)
	return nil
}

// check drops blank lines at the end of hunks and refuses an update without a
// change.
func (r *envelopeReader) check() error {
	for i := range r.files {
		f := &r.files[i]
		kept := f.Hunks[:0]
		for _, h := range f.Hunks {
			for n := len(h.Lines); n > 0 && len(h.Lines[n-1].Text) == 0 && (h.Lines[n-1].Kind == ' ' || h.Lines[n-1].Bare); n-- {
				h.Lines = h.Lines[:n-1]
			}
			if changes(h.Lines) {
				kept = append(kept, h)
			}
		}
		f.Hunks = kept
		if f.Op == OpModify && len(kept) == 0 && f.MoveTo == "" {
			return refuse(GateDecode, ReasonNoOperation, f.Path, "the update of %s changes nothing", f.Path)
		}
	}
	return nil
}
