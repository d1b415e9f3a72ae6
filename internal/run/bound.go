package run

import (
	"encoding/json"
	"strings"
)

// What an event may hold of lists that grow with a project. An event with the
// most of everything stays below the 1 MiB that a message may have; whoever
// needs all of a list reads the artifact beside it.
const (
	// MaxIDs is the most test ids that one list of a Verdict holds.
	MaxIDs = 50
	// MaxText is the most bytes of one list, and of a reason.
	MaxText = 4 << 10
	// MaxPaths is the most paths that a list of drift or rollback holds.
	MaxPaths = 50
	// MaxCandidate is the most bytes of a Candidate as JSON, about 50 changes.
	// What is larger is refused: no run tests it without a person anyway.
	MaxCandidate = 16 << 10
	// maxResults is the most bytes of the ids and tails of one TestAnswer.
	maxResults = 64 << 10
)

// Cut is the mark at the end of a text that was cut.
const Cut = "…"

// CutList returns the first entries of list: at most n, with at most bytes
// bytes in all. An entry that does not fit by itself is cut, and marked.
func CutList(list []string, n, bytes int) []string {
	var out []string
	for _, s := range list[:min(len(list), n)] {
		if len(s) > bytes {
			if len(out) == 0 {
				out = append(out, CutText(s, bytes))
			}
			break
		}
		bytes -= len(s)
		out = append(out, s)
	}
	return out
}

// CutText cuts s to at most n bytes, between characters, and adds the mark.
func CutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:max(n, 0)], "") + Cut
}

// cut bounds lists and texts; the counts keep the lengths of the lists.
func (v Verdict) cut(ids, text int) Verdict {
	for _, list := range []*[]string{&v.Failed, &v.Fixed, &v.Broken, &v.Missing, &v.Flaky} {
		*list = CutList(*list, ids, text)
	}
	v.Reason = CutText(v.Reason, text)
	return v
}

// Bound cuts what the verdicts of an answer quote, each to its share. A single
// verdict is left as Judge made it.
func (t *TestAnswer) Bound() {
	n := len(t.Results)
	if n < 2 {
		return
	}
	// Five lists, a reason, and a tail of twice the size of a list.
	share := min(maxResults/n/8, MaxText)
	for i := range t.Results {
		v := t.Results[i].Verdict.cut(max(MaxIDs/n, 3), share)
		if len(v.Tail) > 2*share {
			v.Tail = strings.ToValidUTF8(v.Tail[len(v.Tail)-2*share:], "")
		}
		t.Results[i].Verdict = v
	}
}

// Oversized reports whether the candidate is more than an event may hold.
func (c Candidate) Oversized() bool {
	data, err := json.Marshal(c)
	return err != nil || len(data) > MaxCandidate
}
