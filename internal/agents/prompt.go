package agents

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

//go:embed prompts/debugger.txt
var debuggerPrompt string

// request builds what the model is asked: the rules, the failing tests, why
// the last try was refused, and as many files as fit into size bytes. Test
// output and file contents are data between markers, never instructions.
func (d *debugger) request(ctx context.Context, base rollback.Manifest, ask run.Ask, size int) (llm.Request, error) {
	input := *ask.Debug
	in := &input
	var b strings.Builder
	fmt.Fprintf(&b, "Attempt %d.\n\n", in.Attempt)
	if ask.Last != "" {
		fmt.Fprintf(&b, "Your last answer could not be used: %s\n\n", ask.Last)
	}
	if in.Hint != "" {
		fmt.Fprintf(&b, "A person who knows the program says: %s\n\n", in.Hint)
	}
	if in.Feedback != "" {
		fmt.Fprintf(&b, "A reviewer sent the last fix back: %s\n\n", in.Feedback)
	}
	for _, r := range in.Rejected {
		fmt.Fprintf(&b, "Your last answer was refused by the gate %q: %s\n%s\n\n", r.Gate, r.Reason, r.Feedback)
	}
	v := in.Evidence
	if v.Tree != in.Baseline.Tree {
		b.WriteString("Your last change was applied, and the tests below still fail. The files below hold that change: take it back where it is wrong. A diff against the files as they were before is understood too.\n\n")
	}
	fmt.Fprintf(&b, "Failing tests (%d): %s\n\n", v.Counts.Failed, strings.Join(v.Failed, ", "))
	var red run.Evidence
	if err := loadJSON(ctx, d.store, &v.Evidence, &red); err != nil {
		return llm.Request{}, fmt.Errorf("evidence: %w", err)
	}
	guarded, err := loadProtected(ctx, d.store, in.Protected)
	if err != nil {
		return llm.Request{}, err
	}
	// An event may quote less of the output than the evidence holds.
	in.Evidence.Tail = red.Tail
	section(&b, "test output", tail(red.Tail, size/4))
	if len(in.Targets) > 0 {
		fmt.Fprintf(&b, "Only these paths may change: %s\n\n", strings.Join(in.Targets, ", "))
	}
	if err := d.files(ctx, &b, base, in, guarded, size-b.Len()); err != nil {
		return llm.Request{}, err
	}
	return llm.Request{System: debuggerPrompt, Prompt: b.String()}, nil
}

// section writes text between markers that it does not contain. The title is
// written as it is: a path in it is what an answer must repeat.
func section(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, "<<<%s>>>\n%s\n<<<END>>>\n\n", title, strings.ReplaceAll(text, "<<<", "< <<"))
}

// files adds the files of the project, the most suspicious first, while there
// is room, and the names of the rest.
func (d *debugger) files(ctx context.Context, b *strings.Builder, base rollback.Manifest, in *run.DebugInput, guarded protection, room int) error {
	var left []string
	for _, p := range suspects(base, in, guarded) {
		data, ok, err := content(ctx, d.store, base, p)
		if err != nil {
			return err
		}
		if !ok || !utf8.Valid(data) || len(data) > room {
			left = append(left, p)
			continue
		}
		room -= len(data)
		note := ""
		if guarded[p] {
			note = " (must not change)"
		}
		section(b, "file "+p+note, string(data))
	}
	if len(left) > 0 {
		fmt.Fprintf(b, "Further files: %s\n", strings.Join(left[:min(len(left), 200)], ", "))
	}
	return nil
}

// suspects orders the source files: those that the output names first, where
// the last mention is the innermost frame; then targets, then the others;
// tests that fail before tests that do not.
func suspects(base rollback.Manifest, in *run.DebugInput, guarded protection) []string {
	type ranked struct {
		path string
		rank int
	}
	var list []ranked
	for _, e := range base.Entries {
		if e.Type != rollback.TypeFile || !sources[path.Ext(e.Path)] {
			continue
		}
		r := ranked{e.Path, 3}
		at := strings.LastIndex(in.Evidence.Tail, e.Path)
		switch {
		case at >= 0 && !guarded[e.Path]:
			r.rank = 0
		case slices.ContainsFunc(in.Targets, func(t string) bool { return within(t, e.Path) }):
			r.rank = 1
		case at >= 0 || slices.ContainsFunc(in.Evidence.Failed, func(id string) bool { return strings.HasPrefix(id, e.Path) }):
			r.rank = 2
		case guarded[e.Path]:
			r.rank = 4
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return a.rank - b.rank })
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.path
	}
	return out
}

// sources are the endings of files worth showing.
var sources = map[string]bool{
	".py": true, ".pyi": true, ".go": true, ".js": true, ".mjs": true, ".cjs": true, ".jsx": true, ".ts": true, ".tsx": true,
	".java": true, ".kt": true, ".rs": true, ".c": true, ".h": true, ".cc": true, ".cpp": true, ".hpp": true, ".cs": true,
	".rb": true, ".php": true, ".swift": true, ".scala": true, ".sh": true, ".sql": true,
	".toml": true, ".cfg": true, ".ini": true, ".json": true, ".yaml": true, ".yml": true,
}

// tail keeps the end of a text: a trace says what happened in its last lines.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return "[…]\n" + s
}
