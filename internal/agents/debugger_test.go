package agents

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/llm/llmtest"
	"nexuscore.dev/nexus/internal/run"
)

// debugging asks for a fix of the project.
func (b *bench) debugging(src run.Source) *run.DebugInput {
	b.t.Helper()
	_, tree := b.snapshot()
	red := run.Verdict{
		Kind: run.VerdictFailed, Tree: tree.Hash, Failed: []string{"test_calc.py::test"}, Counts: run.Counts{Failed: 1},
		Evidence: b.evidence(tree.Hash, run.OutcomeFailed, func(e *run.Evidence) { e.Tail = "calc.py:2: AssertionError: -1 != 3" }),
	}
	return &run.DebugInput{
		Attempt: 1, Source: src, Dir: b.dir, Base: tree, Evidence: red, Baseline: red,
		Protected: b.guarded("test_calc.py"), Limit: 20, Seconds: 600,
	}
}

func debug(t *testing.T, d *debugger, in *run.DebugInput) (*run.DebugAnswer, error) {
	t.Helper()
	ans, err := d.handle(t.Context(), job(run.Ask{Debug: in}))
	return ans.Debug, err
}

// TestDebuggerOfNoSource: only sources that exist are asked, and what they say
// fits into a message.
func TestDebuggerOfNoSource(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	d, _, in := b.asking(llmtest.Step{Kind: llmtest.Answer, Text: strings.Repeat("I must not. ", 1000), Finish: "content_filter"})
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.LessOrEqual(t, len(ans.Reason), run.MaxText+len(run.Cut))
	in.Source = "oracle"
	_, err = debug(t, d, in)
	require.ErrorContains(t, err, "oracle")
}
