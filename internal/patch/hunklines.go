package patch

import "bytes"

// add reads the lines of a hunk and appends it to the last file.
func (r *diffReader) add(h Hunk, c counts) error {
	f := &r.files[len(r.files)-1]
	raw := r.hunkLines(c)
	h.Lines = parseHunkLines(raw)
	if c.stated {
		old, fresh := sides(h.Lines)
		h.Counted = old == c.old && fresh == c.new
		if !h.Counted {
			r.a.note("a hunk header's line counts were wrong")
		}
	}
	if len(h.Lines) == 0 {
		return refuse(GateDecode, ReasonMalformed, f.Path, "a hunk of %s is empty", f.Path)
	}
	if !changes(h.Lines) {
		r.a.note("a hunk without a change was dropped")
		return nil
	}
	f.Hunks = append(f.Hunks, h)
	return nil
}

// hunkLines takes the lines up to the end of a hunk: where the stated counts
// are used up and no further diff line follows, or at the next header.
func (r *diffReader) hunkLines(c counts) [][]byte {
	start := r.at
	var old, fresh int
	reached := r.countsReach(c)
	for ; r.at < len(r.lines); r.at++ {
		l := r.lines[r.at]
		if c.stated && old == c.old && fresh == c.new && !isDiffLine(l) {
			return r.lines[start:r.at]
		}
		if r.endsHunk(reached && (old != c.old || fresh != c.new)) {
			break
		}
		o, n := sideOf(l)
		old, fresh = old+o, fresh+n
	}
	return trimTail(r.lines[start:r.at], c)
}

func isDiffLine(l []byte) bool {
	return len(l) > 0 && (l[0] == '+' || l[0] == '-' || l[0] == ' ' || l[0] == '\\')
}

func sideOf(l []byte) (old, fresh int) {
	switch {
	case len(l) > 0 && l[0] == '+':
		return 0, 1
	case len(l) > 0 && l[0] == '-':
		return 1, 0
	case len(l) > 0 && l[0] == '\\':
		return 0, 0
	}
	return 1, 1
}

// endsHunk recognises the header that follows a hunk. A deleted line may look
// like one ("-- x" in SQL): it is none where the counts want it and work out
// exactly.
func (r *diffReader) endsHunk(wanted bool) bool {
	l := r.lines[r.at]
	switch {
	case bytes.HasPrefix(l, []byte("@@")), bytes.HasPrefix(l, []byte("diff --git ")),
		bytes.HasPrefix(l, []byte("```")), bytes.HasPrefix(l, []byte("*** End Patch")),
		bytes.HasPrefix(l, []byte("GIT binary patch")):
		return true
	case bytes.HasPrefix(l, []byte("--- ")):
		if !nextHas(r.lines, r.at, "+++ ") && !nextHas(r.lines, r.at, "@@") {
			return false
		}
		return !wanted
	case bytes.HasPrefix(l, []byte("+++ ")):
		return nextHas(r.lines, r.at, "@@") && !wanted
	}
	return false
}

// countsReach says whether taking lines up to the next hunk header at the most
// gives exactly the stated counts.
func (r *diffReader) countsReach(c counts) bool {
	var old, fresh int
	for i := r.at; c.stated && i < len(r.lines); i++ {
		l := r.lines[i]
		if bytes.HasPrefix(l, []byte("@@")) || bytes.HasPrefix(l, []byte("diff --git ")) {
			break
		}
		o, n := sideOf(l)
		if old, fresh = old+o, fresh+n; old > c.old || fresh > c.new || old == c.old && fresh == c.new {
			break
		}
	}
	return c.stated && old == c.old && fresh == c.new
}

// trimTail drops what follows the last marked line when a blank line shows
// that it is no part of the hunk, and blank lines that the counts don't want.
func trimTail(lines [][]byte, c counts) [][]byte {
	last := len(lines)
	for last > 0 && !isDiffLine(lines[last-1]) {
		last--
	}
	for i := last; i < len(lines); i++ {
		if !blank(lines[i]) {
			continue
		}
		old, fresh := sidesOf(lines[:i])
		for k := i; c.stated && k < len(lines) && blank(lines[k]); k++ {
			o, n := sideOf(lines[k])
			if old, fresh = old+o, fresh+n; old == c.old && fresh == c.new {
				return lines[:k+1]
			}
		}
		return lines[:i]
	}
	return lines
}

func sidesOf(lines [][]byte) (old, fresh int) {
	for _, l := range lines {
		o, n := sideOf(l)
		old, fresh = old+o, fresh+n
	}
	return old, fresh
}

// parseHunkLines gives each line its kind. A line without a mark is context
// that lost its leading space; an empty one is a blank context line.
func parseHunkLines(raw [][]byte) []Line {
	out := make([]Line, 0, len(raw))
	for _, l := range raw {
		switch {
		case len(l) == 0:
			out = append(out, Line{Kind: ' '})
		case l[0] == '\\':
			if len(out) > 0 {
				out[len(out)-1].NoEOL = true
			}
		case l[0] == '+' || l[0] == '-' || l[0] == ' ':
			out = append(out, Line{Kind: l[0], Text: l[1:]})
		default:
			out = append(out, Line{Kind: ' ', Text: l, Bare: true})
		}
	}
	return out
}

func sides(lines []Line) (old, fresh int) {
	for _, l := range lines {
		if l.Kind != '+' {
			old++
		}
		if l.Kind != '-' {
			fresh++
		}
	}
	return old, fresh
}

func changes(lines []Line) bool {
	for _, l := range lines {
		if l.Kind != ' ' {
			return true
		}
	}
	return false
}
