package validate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"nexuscore.dev/nexus/internal/patch"
	"nexuscore.dev/nexus/internal/run"
)

// refusal is one gate's no.
type refusal struct{ gate, reason, feedback string }

func refuse(gate, reason, format string, args ...any) *refusal {
	return &refusal{gate, reason, fmt.Sprintf(format, args...)}
}

// placing turns an answer into a candidate, judging looks at what it holds. A
// gate sees only what the gates before it let pass.
var (
	placing = []func(*check) *refusal{
		(*check).decode,
		(*check).scope,
		(*check).place,
		(*check).notEmpty,
		(*check).notRepeated,
	}
	judging = []func(*check) *refusal{
		(*check).noProse,
		(*check).noMarkers,
		(*check).noElision,
		(*check).syntax,
		(*check).structure,
		(*check).noSecrets,
		(*check).noTampering,
	}
)

func (c *check) run(gates []func(*check) *refusal) *refusal {
	for _, gate := range gates {
		if r := gate(c); r != nil {
			return r
		}
	}
	return nil
}

// check is one run of the gates.
type check struct {
	*Validator
	in Input
	// targets are the files of in.Targets, with those in its folders.
	targets []string

	// tree is the base's names as scope looks them up.
	tree       treeNames
	draft      patch.Draft
	files      []*file
	candidate  run.Candidate
	contents   map[string][]byte
	diff       []byte
	tolerances []string
	tripwires  []string
}

// file is one changed file with what the gates learn about it.
type file struct {
	patch.Edit
	// lines are those of the new side, olds those of the old one.
	lines, olds [][]byte
	spans       []patch.Span
	// syntax is what the parser of the file's language says; python is the
	// worker's report on a .py file.
	syntax syntaxResult
	python *report
}

func (c *check) decode() *refusal {
	d, err := patch.Decode(c.in.Answer, patch.Options{
		Format: c.in.Format, Finish: c.in.Finish, Targets: c.targets, Paths: c.sources(),
		Read: c.in.Base.Read,
	})
	if noPath(err) {
		if p := c.implied(); p != "" {
			d, err = c.decodeAs(p)
			c.tolerances = append(c.tolerances, "the answer names no file; it is taken for "+p)
		}
	}
	if err != nil {
		return fromPatch(err)
	}
	c.draft = d
	c.tolerances = append(c.tolerances, d.Tolerances...)
	return nil
}

// sources lists the files that an answer may well mean: all but the protected
// ones, or all when it has declared targets.
func (c *check) sources() []string {
	all := c.in.Base.Paths()
	if len(c.targets) > 0 {
		return all
	}
	out := make([]string, 0, len(all))
	for _, p := range all {
		if _, protected := c.protected(p); !protected {
			out = append(out, p)
		}
	}
	return out
}

func fromPatch(err error) *refusal {
	var e *patch.Error
	if errors.As(err, &e) {
		return &refusal{e.Gate, e.Reason, e.Feedback}
	}
	return refuse(GateDecode, "failed", "%v", err)
}

func (c *check) place() *refusal {
	edits, err := patch.Place(c.draft, c.in.Base.Read)
	if err != nil {
		return c.explainMissing(fromPatch(err))
	}
	for _, e := range edits {
		c.tolerances = append(c.tolerances, e.Tolerances...)
		if e.Op == patch.OpModify && string(e.Old) == string(e.New) && !c.modeChanges(e) {
			continue
		}
		if len(e.New) > c.cfg.MaxFile {
			return refuse(GatePlace, "too_large", "%s would have %d bytes, more than %d", e.Path, len(e.New), c.cfg.MaxFile)
		}
		if c.spoils(e) {
			return refuse(GatePlace, patch.ReasonEncoding, "%s is UTF-8, and the answer would write bytes into it that are not", e.Path)
		}
		f := &file{Edit: e, lines: textLines(e.New), olds: textLines(e.Old)}
		f.spans = patch.LineDiff(f.olds, f.lines)
		c.files = append(c.files, f)
	}
	c.build()
	return nil
}

// spoils says whether a file that is UTF-8, or new, would be so no more. A file
// that moves keeps what it has.
func (c *check) spoils(e patch.Edit) bool {
	old := e.Old
	if e.From != "" {
		old, _ = c.in.Base.Read(e.From)
	}
	return utf8.Valid(old) && !utf8.Valid(e.New)
}

func (c *check) modeChanges(e patch.Edit) bool {
	return e.Mode != 0 && e.Mode != c.in.Base.Mode(e.Path)
}

// build makes the run's candidate from the placed edits.
func (c *check) build() {
	c.contents = map[string][]byte{}
	for _, f := range c.files {
		ch := run.Change{Path: f.Path, Op: run.Op(f.Op), Mode: c.mode(f.Edit)}
		if f.Op != patch.OpCreate {
			ch.Base, ch.BaseMode = sum(f.Old), c.in.Base.Mode(f.Path)
		}
		if f.Op != patch.OpDelete {
			ch.New = sum(f.New)
			c.contents[ch.New] = f.New
		}
		c.candidate.Changes = append(c.candidate.Changes, ch)
		c.diff = append(c.diff, patch.Diff(f.Path, f.Old, f.New)...)
	}
	c.candidate.Hash = run.HashChanges(c.candidate.Changes)
	c.candidate.Note = c.draft.Format
	c.candidate.Diff = run.Ref{SHA256: sum(c.diff), Size: int64(len(c.diff))}
}

// mode keeps a file's permission bits; a new file gets 0644 unless the answer
// states the executable bit, a moved one those of its source.
func (c *check) mode(e patch.Edit) uint32 {
	switch {
	case e.Op == patch.OpDelete:
		return 0
	case e.Mode != 0:
		return e.Mode
	case e.Op == patch.OpModify:
		return c.in.Base.Mode(e.Path)
	case e.From != "" && c.in.Base.Mode(e.From) != 0:
		return c.in.Base.Mode(e.From)
	}
	return 0o644
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func (c *check) rejected(r *refusal) Verdict {
	v := c.verdict()
	v.Refuse(r.gate, r.reason, r.feedback)
	return v
}

// maxFeedback bounds in bytes what a refusal says; it quotes files and
// interpreters.
const maxFeedback = 4 << 10

// Refuse turns v into a rejection by a gate.
func (v *Verdict) Refuse(gate, reason, feedback string) {
	if len(feedback) > maxFeedback {
		feedback = feedback[:maxFeedback] + "…"
	}
	v.Accepted, v.Gate, v.Reason = false, gate, reason
	v.Feedback, v.Status = strings.ToValidUTF8(feedback, "\ufffd"), statusOf(gate, reason)
}

func (c *check) accepted() Verdict {
	v := c.verdict()
	v.Accepted = true
	return v
}

func (c *check) verdict() Verdict {
	c.candidate.Tolerances, c.candidate.Tripwires = c.tolerances, c.tripwires
	return Verdict{
		Candidate: c.candidate, Contents: c.contents, Diff: c.diff,
		Tolerances: c.tolerances, Tripwires: c.tripwires,
	}
}

// statusOf maps a refusal to the one status of the attempt.
func statusOf(gate, reason string) run.AttemptStatus {
	switch {
	case gate == GateDecode && reason == patch.ReasonNoCode:
		return run.StatusNoFixedCode
	case gate == GateProse || gate == GateSyntax:
		return run.StatusASTFail
	}
	return run.StatusGateFail
}
