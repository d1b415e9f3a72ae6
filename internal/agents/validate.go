package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

	mu sync.Mutex
	// warm holds a validator for each interpreter.
	warm map[string]*validate.Validator
}

func (g *gates) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	in := job.Ask.Validate
	var plan testrun.Plan
	if err := loadJSON(ctx, g.store, in.Plan, &plan); err != nil {
		return run.Answer{}, err
	}
	v, err := g.validator(plan)
	if err != nil {
		return run.Answer{}, err
	}
	m, err := rollback.Load(ctx, g.store, in.Base)
	if err != nil {
		return run.Answer{}, err
	}
	out := &run.ValidateAnswer{Accepted: []run.Candidate{}, Rejected: []run.Rejection{}}
	for rank, p := range in.Proposals {
		text, err := rollback.Read(ctx, g.store, p.Text.SHA256)
		if err != nil {
			return run.Answer{}, err
		}
		word, err := g.check(ctx, v, in, p, text, m)
		if err != nil {
			return run.Answer{}, err
		}
		if in.Origin != nil && word.Gate == validate.GatePlace {
			// Written against the files as they were before the last try.
			origin, err := rollback.Load(ctx, g.store, *in.Origin)
			if err != nil {
				return run.Answer{}, err
			}
			first, err := g.check(ctx, v, in, p, text, origin)
			if err != nil {
				return run.Answer{}, err
			}
			if first.Accepted {
				word = first
				word.Candidate.OnOrigin = true
			}
		}
		if !word.Accepted {
			out.Rejected = append(out.Rejected, run.Rejection{
				Rank: rank, Gate: word.Gate, Reason: word.Reason, Feedback: word.Feedback, Status: word.Status, Hash: word.Candidate.Hash,
			})
			continue
		}
		c, err := g.keep(ctx, word, rank, p)
		if err != nil {
			return run.Answer{}, err
		}
		out.Accepted = append(out.Accepted, c)
	}
	return run.Answer{Validate: out}, nil
}

// check puts one proposal through the gates on a tree.
func (g *gates) check(ctx context.Context, v *validate.Validator, in *run.ValidateInput, p run.Proposal, text []byte, m rollback.Manifest) (validate.Verdict, error) {
	base := &baseTree{ctx: ctx, store: g.store, m: m}
	word := v.Check(ctx, validate.Input{
		Answer: text, Format: p.Format, Finish: p.Finish, Base: base,
		Targets: in.Targets, Tried: in.Tried, TestPaths: in.Protected,
	})
	return word, errors.Join(base.err, ctx.Err())
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
	c.Tolerances, c.Tripwires = word.Tolerances, word.Tripwires
	return c, err
}

// validator returns the validator of the plan's interpreter.
func (g *gates) validator(plan testrun.Plan) (*validate.Validator, error) {
	python := ""
	if plan.Python != nil {
		python = plan.Python.Path
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if v := g.warm[python]; v != nil {
		return v, nil
	}
	v, err := validate.New(validate.Config{Python: python})
	if err != nil {
		return nil, err
	}
	if g.warm == nil {
		g.warm = map[string]*validate.Validator{}
	}
	g.warm[python] = v
	return v, nil
}

// close ends the interpreters.
func (g *gates) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	for _, v := range g.warm {
		err = errors.Join(err, v.Close())
	}
	clear(g.warm)
	return err
}

// baseTree reads a manifest's files for the gates. Their interface has no
// errors, so the first one is kept for the caller.
type baseTree struct {
	ctx   context.Context //nolint:containedctx // lives for one Check
	store rollback.Blobs
	m     rollback.Manifest
	err   error
}

// Read implements validate.Base.
func (b *baseTree) Read(path string) ([]byte, bool) {
	data, ok, err := content(b.ctx, b.store, b.m, path)
	if err != nil {
		b.err = errors.Join(b.err, err)
		return nil, false
	}
	return data, ok
}

// Paths implements validate.Base.
func (b *baseTree) Paths() []string {
	var out []string
	for _, e := range b.m.Entries {
		if e.Type == rollback.TypeFile {
			out = append(out, e.Path)
		}
	}
	return out
}

// Mode implements validate.Base.
func (b *baseTree) Mode(path string) uint32 {
	e, _ := b.m.Lookup(path)
	return e.Mode
}
