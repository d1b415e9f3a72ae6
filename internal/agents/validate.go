package agents

import (
	"context"
	"errors"
	"fmt"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
)

// gates answers run.ValidateInput with run.ValidateAnswer: it puts each
// proposal through the gates and stores what passed. It needs no model.
type gates struct {
	store rollback.Blobs
	warm  *validators
}

func (g *gates) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Validate
	var plan testrun.Plan
	if err := loadJSON(ctx, g.store, in.Plan, &plan); err != nil {
		return run.Answer{}, err
	}
	v, release, err := g.warm.borrow(plan.Python)
	if err != nil {
		return run.Answer{}, err
	}
	defer release()
	m, err := rollback.Load(ctx, g.store, in.Base)
	if err != nil {
		return run.Answer{}, err
	}
	guarded, err := loadProtected(ctx, g.store, in.Protected)
	if err != nil {
		return run.Answer{}, err
	}
	judge := judging{gates: g, v: v, in: in, base: m, guarded: guarded.list()}
	out := &run.ValidateAnswer{Accepted: []run.Candidate{}, Rejected: []run.Rejection{}}
	for rank, p := range in.Proposals {
		word, err := judge.proposal(ctx, p)
		if err != nil {
			return run.Answer{}, err
		}
		if !word.Accepted {
			out.Rejected = append(out.Rejected, run.Rejection{
				Rank: rank, Gate: word.Gate, Reason: word.Reason, Status: word.Status, Hash: word.Candidate.Hash,
				Feedback: run.CutText(word.Feedback, maxFeedback),
			})
			continue
		}
		c, err := g.keep(ctx, word, rank, p)
		if err != nil {
			return run.Answer{}, err
		}
		if c.Oversized() {
			out.Rejected = append(out.Rejected, refusal(c, reasonTooMany, tooMany(c)))
			continue
		}
		out.Accepted = append(out.Accepted, c)
	}
	return run.Answer{Validate: out}, nil
}

const (
	// maxFeedback is the most bytes of a gate's sentence.
	maxFeedback = 2 << 10
	// maxNotes bounds the tolerances and tripwires of a candidate.
	maxNotes, maxNoteBytes = 20, 2 << 10

	gatePaths = validate.GatePaths
	// Reasons of the paths gate that only a tree can tell.
	reasonUnsafe    = "unsafe"
	reasonProtected = "protected"
	reasonTooMany   = "too_many"
)

func tooMany(c run.Candidate) string {
	return fmt.Sprintf("the answer changes %d files, which is more than a run tests; change fewer", len(c.Changes))
}

// judging is one ask of the gates.
type judging struct {
	*gates
	v       *validate.Validator
	in      *run.ValidateInput
	base    rollback.Manifest
	guarded []string
}

// proposal judges one answer: on the base, and where it does not fit there on
// the project as it was.
func (j judging) proposal(ctx context.Context, p run.Proposal) (validate.Verdict, error) {
	text, err := rollback.Read(ctx, j.store, p.Text.SHA256)
	if err != nil {
		return validate.Verdict{}, err
	}
	word, err := j.check(ctx, p, text, j.base)
	if err != nil || j.in.Origin == nil || word.Gate != validate.GatePlace {
		return word, err
	}
	// Written against the files as they were before the last try.
	origin, err := rollback.Load(ctx, j.store, *j.in.Origin)
	if err != nil {
		return word, err
	}
	first, err := j.check(ctx, p, text, origin)
	if err == nil && first.Accepted {
		word = first
		word.Candidate.OnOrigin = true
	}
	return word, err
}

// check puts one proposal through the gates on a tree.
func (j judging) check(ctx context.Context, p run.Proposal, text []byte, m rollback.Manifest) (validate.Verdict, error) {
	base := NewBase(m, func(e rollback.Entry) ([]byte, error) { return rollback.Read(ctx, j.store, e.SHA256) })
	word := j.v.Check(ctx, validate.Input{
		Answer: text, Format: p.Format, Finish: p.Finish, Base: base,
		Targets: j.in.Targets, Tried: j.in.Tried, TestPaths: j.guarded,
	})
	if word.Accepted {
		word = onTree(word, m)
	}
	return word, errors.Join(base.Err(), ctx.Err())
}

// onTree refuses a candidate that the tree cannot take: only the tree knows
// links and files with several names.
func onTree(word validate.Verdict, m rollback.Manifest) validate.Verdict {
	_, err := m.With(word.Candidate.Changes, func(string) int64 { return 0 })
	if err == nil {
		return word
	}
	word.Accepted, word.Gate, word.Status = false, gatePaths, run.StatusGateFail
	word.Reason, word.Feedback = reasonUnsafe, err.Error()
	return word
}

// keep stores the contents of an accepted candidate.
func (g *gates) keep(ctx context.Context, word validate.Verdict, rank int, p run.Proposal) (run.Candidate, error) {
	c := word.Candidate
	for sha, data := range word.Contents {
		ref, err := g.store.Put(ctx, data)
		if err != nil {
			return c, err
		}
		if ref.SHA256 != sha {
			return c, fmt.Errorf("validate: content %s was stored as %s", sha, ref.SHA256)
		}
	}
	diff, err := g.store.Put(ctx, word.Diff)
	c.Rank, c.Diff, c.Note = rank, diff, p.Note
	c.Tolerances = run.CutList(word.Tolerances, maxNotes, maxNoteBytes)
	c.Tripwires = run.CutList(word.Tripwires, maxNotes, maxNoteBytes)
	return c, err
}
