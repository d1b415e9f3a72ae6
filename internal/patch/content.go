package patch

import (
	"bytes"
	"errors"
	"slices"
)

// holder is the only file of the project, or of the targets, in which all of
// the hunks have their place. Without Options.Read it finds none.
func (a *answer) holder(hunks []Hunk) (string, bool) {
	if a.opts.Read == nil {
		return "", false
	}
	paths := a.opts.Targets
	if len(paths) == 0 {
		paths = a.opts.Paths
	}
	found := ""
	for _, p := range paths {
		data, ok := a.opts.Read(p)
		if !ok || !maybeIn(data, hunks) {
			continue
		}
		if _, _, err := applyHunks(p, data, hunks); err != nil && isReason(err, ReasonNoMatch) {
			continue
		}
		if found != "" && found != p {
			return "", false
		}
		found = p
	}
	if found != "" {
		a.note("an edit without a path was taken for " + found + ", which alone has its lines")
	}
	return found, found != ""
}

func isReason(err error, reason string) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}

// maybeIn is a quick test that spares most files the search: the longest word
// of each hunk's old side must be there.
func maybeIn(data []byte, hunks []Hunk) bool {
	for i := range hunks {
		h := &hunks[i]
		want := h.old()
		if h.Literal {
			want = splitText(h.Search)
		}
		var longest []byte
		for _, l := range want {
			for _, w := range bytes.Fields(l) {
				if len(w) > len(longest) {
					longest = w
				}
			}
		}
		if len(longest) == 0 || !bytes.Contains(data, longest) {
			return false
		}
	}
	return len(hunks) > 0
}

// withoutQuotes drops the blocks that a file has already, line for line: the
// answer shows what it speaks of.
func (a *answer) withoutQuotes(blocks []block, path string) []block {
	if a.opts.Read == nil || len(blocks) < 2 {
		return blocks
	}
	data, ok := a.opts.Read(path)
	if !ok {
		return blocks
	}
	s := newSource(data)
	kept := slices.DeleteFunc(slices.Clone(blocks), func(b block) bool {
		lines := trimBlankEnds(b.body)
		return len(lines) > 0 && len(s.find(lines, tierSpace, false)) > 0
	})
	if len(kept) == 0 {
		return blocks
	}
	return kept
}
