package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate"
)

// protection is the set of files that no candidate of a run may touch: its
// tests and the configuration of their runner. It is an artifact, as a project
// may have thousands; without it nothing is approved.
type protection map[string]bool

// keepProtected stores the list, before the answer that names it.
func keepProtected(ctx context.Context, store rollback.Blobs, paths []string) (*run.Ref, error) {
	if paths == nil {
		paths = []string{}
	}
	ref, err := storeJSON(ctx, store, paths)
	return &ref, err
}

// loadProtected reads the list back. A list that is not there, is damaged or
// is something else is an error.
func loadProtected(ctx context.Context, store rollback.Blobs, ref *run.Ref) (protection, error) {
	var paths []string
	if err := loadJSON(ctx, store, ref, &paths); err != nil {
		return nil, fmt.Errorf("list of protected files: %w", err)
	}
	if paths == nil {
		return nil, errors.New("list of protected files: the artifact holds none")
	}
	out := make(protection, len(paths))
	for _, p := range paths {
		out[p] = true
	}
	return out, nil
}

// list is the set, sorted.
func (p protection) list() []string {
	out := make([]string, 0, len(p))
	for path := range p {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// touched names the first change of a protected file, or nothing. A link that
// leads to a protected file is one as well.
func (p protection) touched(m rollback.Manifest, changes []run.Change) string {
	for _, ch := range changes {
		target, err := m.Resolve(ch.Path)
		if p[ch.Path] || err == nil && p[target] {
			return ch.Path
		}
	}
	return ""
}

// protected lists the files of the project that tests and runner consist of:
// what the collected ids name, what is named like a test, and configuration.
func protected(m rollback.Manifest, ev run.Evidence) []string { return testPaths(m, ev.Collected) }

// TestPaths lists what of a project is named like a test or a runner's
// configuration: all that is known before the tests have run.
func TestPaths(m rollback.Manifest) []string { return testPaths(m, nil) }

func testPaths(m rollback.Manifest, ids []string) []string {
	files := map[string]bool{}
	for _, id := range ids {
		file, _, _ := strings.Cut(id, "::")
		files[file] = true
	}
	var out []string
	for _, e := range m.Entries {
		if e.Type == rollback.TypeFile && (files[e.Path] || ProtectedName(e.Path)) {
			out = append(out, e.Path)
		}
	}
	return out
}

// ProtectedName reports whether the path is that of a test or of its runner's
// configuration.
func ProtectedName(p string) bool { return validate.IsTest(p) }

func storeJSON(ctx context.Context, store rollback.Blobs, v any) (run.Ref, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return run.Ref{}, err
	}
	return store.Put(ctx, data)
}

func loadJSON(ctx context.Context, store rollback.Blobs, ref *run.Ref, v any) error {
	if ref == nil {
		return errors.New("the ask names no artifact")
	}
	data, err := rollback.Read(ctx, store, ref.SHA256)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// refusable returns the sentence about a candidate that no tree can take: a
// path of it leaves the project, has several names, is excluded, or is not
// what the change was made from. It is empty for every other error.
func refusable(err error) string {
	var e *rollback.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Kind {
	case rollback.KindUnsafe, rollback.KindChange, rollback.KindDrift, rollback.KindLimit:
		return e.Error()
	default:
		return ""
	}
}

// refusal is the word of the paths gate on a candidate.
func refusal(c run.Candidate, reason, feedback string) run.Rejection {
	return run.Rejection{
		Rank: c.Rank, Gate: gatePaths, Reason: reason, Feedback: feedback, Status: run.StatusGateFail, Hash: c.Hash,
	}
}

// passing returns err when it says nothing about the candidate: the worker is
// stopping, or the bus did not answer. Then the ask is repeated.
func passing(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case failure.Is(err, failure.Connection), failure.Is(err, failure.Timeout):
		return err
	}
	return nil
}
