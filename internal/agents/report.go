package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// reporter answers run.ReportInput with run.ReportAnswer: it writes down every
// attempt of a run for the person who takes over. It needs no model.
type reporter struct {
	store rollback.Blobs
	dir   string
}

func (r *reporter) handle(ctx context.Context, job bus.Job) (run.Answer, error) {
	s, err := job.State(ctx)
	if err != nil {
		return run.Answer{}, err
	}
	text, err := r.render(ctx, s)
	if err != nil {
		return run.Answer{}, err
	}
	ref, err := r.store.Put(ctx, text)
	if err != nil {
		return run.Answer{}, err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return run.Answer{}, fmt.Errorf("report: %w", err)
	}
	path := filepath.Join(r.dir, job.Run+".md")
	fault.Point("agents.report")
	if err := renameio.WriteFile(path, text, 0o600); err != nil {
		return run.Answer{}, fmt.Errorf("report: %w", err)
	}
	if err := rollback.SyncFolders(r.dir); err != nil {
		return run.Answer{}, fmt.Errorf("report: %w", err)
	}
	fault.Point("agents.reported")
	if job.Ask.Report.InProject {
		if path, err = inProject(ctx, job, path, text); err != nil {
			return run.Answer{}, err
		}
	}
	return run.Answer{Report: &run.ReportAnswer{Report: ref, Path: path}}, nil
}

// inProject writes the report into the project and returns its path: under the
// lock of the folder, and only while the run waits for it. A file of that name
// that somebody else wrote is left alone. Where the folder takes no report, the
// one beside the run has to do.
func inProject(ctx context.Context, job bus.Job, fallback string, text []byte) (string, error) {
	dir, path := job.Ask.Report.Dir, fallback
	err := locked(ctx, job, dir, func() error {
		fault.Point("agents.report.project")
		ok, err := rollback.PlaceReport(dir, text)
		if ok {
			path = filepath.Join(dir, rollback.ReportName)
		}
		fault.Point("agents.report.placed")
		return err
	})
	if ctx.Err() != nil || errors.Is(err, errNotPending) {
		return path, err
	}
	if err != nil {
		job.Log.Warn().Err(err).Msg("the report is not in the project")
	}
	return path, nil
}

func (r *reporter) render(ctx context.Context, s run.State) ([]byte, error) {
	sum := run.Summarise(s)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n# Run %s: %s\n\n", rollback.ReportMark, s.ID, sum.State)
	fmt.Fprintf(&b, "- folder: `%s`\n- reason: %s\n- tree before: `%s`\n- tree after: `%s`%s\n", s.Task.Dir, sum.Reason, sum.BaseTree, sum.FinalTree, proof(s))
	if s.Baseline != nil {
		fmt.Fprintf(&b, "- isolation of the tests: %s, runner: %s\n", s.Baseline.Level, s.Baseline.Runner)
	}
	if sum.Calls > 0 {
		fmt.Fprintf(&b, "- model calls: %d (%d tokens)\n", sum.Calls, sum.Tokens)
	}
	for _, p := range sum.Conflicts {
		fmt.Fprintf(&b, "- changed by somebody else during the run, kept, and perhaps with a change of the run in it: `%s`; what it was before lies in `saved/%s/base` of the state folder\n", p, s.ID)
	}
	if n := sum.Kept.Conflicts - len(sum.Conflicts); n > 0 {
		fmt.Fprintf(&b, "- and %d more\n", n)
	}
	for _, p := range sum.Foreign {
		fmt.Fprintf(&b, "- changed by somebody else during the run, which never wrote it; not touched: `%s`\n", p)
	}
	if n := sum.Kept.Foreign - len(sum.Foreign); n > 0 {
		fmt.Fprintf(&b, "- and %d more\n", n)
	}
	if s.Review != nil && len(s.Review.Reasons) > 0 {
		fmt.Fprintf(&b, "- the guardian's last word: %s: %s\n", s.Review.Word, strings.Join(s.Review.Reasons, "; "))
	}
	if s.Baseline != nil {
		fmt.Fprintf(&b, "\n## The tests before the run\n\n%s\n", verdictLine(*s.Baseline))
		fence(&b, "", s.Baseline.Tail)
	}
	for i := range s.Attempts {
		if err := r.attempt(ctx, &b, &s.Attempts[i], sum.Tries[i]); err != nil {
			return nil, err
		}
	}
	artefacts(&b, s)
	return b.Bytes(), nil
}

func proof(s run.State) string {
	switch {
	case s.Settled == nil:
		return ""
	case !s.Settled.Proven:
		return " (NOT PROVEN: check the folder by hand)"
	case s.Origin != nil && s.Settled.After == s.Origin.Hash:
		return " (byte for byte as before the run)"
	}
	return ""
}

func verdictLine(v run.Verdict) string {
	out := fmt.Sprintf("%s: %d passed, %d failed, %d skipped", v.Kind, v.Counts.Passed, v.Counts.Failed, v.Counts.Skipped)
	if v.Reason != "" {
		out += " (" + v.Reason + ")"
	}
	for _, id := range v.Failed {
		out += "\n- `" + id + "`"
	}
	return out
}

// attempt writes one attempt: what was proposed, what was refused and why,
// what was tested and how it ended.
func (r *reporter) attempt(ctx context.Context, b *bytes.Buffer, a *run.Attempt, sum run.AttemptSummary) error {
	fmt.Fprintf(b, "\n## Attempt %d: %s by %s\n\n", a.N, a.Status, a.Source)
	if a.Err != "" {
		fmt.Fprintf(b, "%s\n", a.Err)
	}
	if a.Validated != nil {
		for _, rej := range a.Validated.Rejected {
			fmt.Fprintf(b, "- refused by the gate `%s`: %s\n", rej.Gate, rej.Reason)
		}
	}
	if a.Applied != nil {
		for _, rej := range a.Applied.Refused {
			fmt.Fprintf(b, "- refused by the gate `%s`: %s: %s\n", rej.Gate, rej.Reason, rej.Feedback)
		}
	}
	if a.Proposed != nil && sum.Diff == nil {
		for _, p := range a.Proposed.Proposals {
			text, err := rollback.Read(ctx, r.store, p.Text.SHA256)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "\nThe answer as it came (%s):\n", p.Finish)
			fence(b, "", tail(string(text), 4<<10))
		}
	}
	if sum.Diff != nil {
		diff, err := rollback.Read(ctx, r.store, sum.Diff.SHA256)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\nCandidate `%s` %s\n", sum.Candidate, sum.Note)
		fence(b, "diff", string(diff))
	}
	if a.Tested != nil {
		for _, t := range a.Tested.Results {
			fmt.Fprintf(b, "\nTests of candidate %d: %s\n", t.Rank, verdictLine(t.Verdict))
			fence(b, "", t.Verdict.Tail)
		}
	}
	return nil
}

// fence writes text as a code block that the text cannot end.
func fence(b *bytes.Buffer, lang, text string) {
	if text == "" {
		return
	}
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	fmt.Fprintf(b, "\n%s%s\n%s\n%s\n", mark, lang, strings.TrimRight(text, "\n"), mark)
}

// artefacts lists what can be fetched by hash.
func artefacts(b *bytes.Buffer, s run.State) {
	fmt.Fprintf(b, "\n## Artefacts\n\n")
	if s.Origin != nil {
		fmt.Fprintf(b, "- manifest of the folder: `%s`\n", s.Origin.Manifest.SHA256)
	}
	if s.Baseline != nil {
		fmt.Fprintf(b, "- evidence before: `%s`, output: `%s`\n", s.Baseline.Evidence.SHA256, s.Baseline.Output.SHA256)
	}
	for _, a := range s.Attempts {
		if a.Proposed != nil && a.Proposed.Request != nil {
			fmt.Fprintf(b, "- request of attempt %d: `%s`\n", a.N, a.Proposed.Request.SHA256)
		}
		if a.Tested == nil {
			continue
		}
		for _, t := range a.Tested.Results {
			fmt.Fprintf(b, "- evidence of attempt %d, candidate %d: `%s`, output: `%s`\n", a.N, t.Rank, t.Verdict.Evidence.SHA256, t.Verdict.Output.SHA256)
		}
	}
}
