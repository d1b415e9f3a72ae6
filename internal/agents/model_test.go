package agents

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

const key = "sk-test-0123456789"

// asking is a debugger with a scripted model, and what it is asked.
func (b *bench) asking(steps ...llmtest.Step) (*debugger, *llmtest.Server, *run.DebugInput) {
	b.t.Helper()
	srv := llmtest.New(b.t, steps...)
	client, err := llm.New(llm.Config{BaseURL: srv.URL, Model: "m", APIKey: llm.NewSecret(key)})
	require.NoError(b.t, err)
	b.t.Cleanup(client.Close)
	d := &debugger{store: b.store, model: &Model{Client: client, Name: "m", Secrets: []string{key}, Recordings: b.t.TempDir()}}
	return d, srv, b.debugging(run.SourceModel)
}

func TestModelProposes(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	d, srv, in := b.asking(llmtest.Say("calc.py\n```\n" + fixed + "```"))
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.Len(t, ans.Proposals, 1)
	require.Equal(t, 1, ans.Calls)
	require.Positive(t, ans.PromptTokens)
	require.Positive(t, ans.AnswerTokens)
	p := ans.Proposals[0]
	require.Equal(t, "stop", p.Finish)
	require.Equal(t, "m", p.Note)
	text, err := rollback.Read(t.Context(), b.store, p.Text.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(text), "return a + b")
	request, err := rollback.Read(t.Context(), b.store, ans.Request.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(request), "AssertionError: -1 != 3")
	require.Equal(t, 1, srv.Count())
}

// TestModelIsPaidOnce: the same ask again, as after a crash, is answered from
// what was kept.
func TestModelIsPaidOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	d, srv, in := b.asking(llmtest.Say("a fix"))
	first, err := debug(t, d, in)
	require.NoError(t, err)
	again, err := debug(t, d, in)
	require.NoError(t, err)
	require.Equal(t, first.Proposals, again.Proposals)
	require.Equal(t, 1, srv.Count())
	kept, err := filepath.Glob(filepath.Join(d.model.Recordings, "*", "*.json"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.NoError(t, os.WriteFile(kept[0], []byte("{"), 0o600))
	_, err = debug(t, d, in)
	require.Error(t, err, "a damaged recording is no answer")
}

// TestModelWithoutAnOffer: what is no proposal says why.
func TestModelWithoutAnOffer(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	none := 0
	for name, c := range map[string]struct {
		steps  []llmtest.Step
		change func(d *debugger, in *run.DebugInput)
		why    string
		calls  int
	}{
		"empty":    {[]llmtest.Step{llmtest.Say("")}, nil, "empty", 1},
		"no model": {nil, func(d *debugger, _ *run.DebugInput) { d.model = nil }, llm.EnvBaseURL, 0},
		"no calls": {nil, func(_ *debugger, in *run.DebugInput) { in.Calls = &none }, "budget", 0},
		"a refusal": {
			[]llmtest.Step{{Kind: llmtest.Answer, Text: "I must not.", Finish: "content_filter"}},
			nil, "refused", 1,
		},
	} {
		d, _, in := b.asking(c.steps...)
		if c.change != nil {
			c.change(d, in)
		}
		ans, err := debug(t, d, in)
		require.NoError(t, err, name)
		require.Empty(t, ans.Proposals, name)
		require.Contains(t, ans.Reason, c.why, name)
		require.Equal(t, c.calls, ans.Calls, name)
	}
}

// TestModelFails: the error says how many calls it took, and keeps its
// category.
func TestModelFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	for status, want := range map[int]failure.Category{
		429: failure.RateLimit, 500: failure.Connection, 504: failure.Timeout, 401: failure.Unexpected, 302: failure.Unexpected,
	} {
		d, _, in := b.asking(llmtest.Refuse(status, "no "+key))
		_, err := debug(t, d, in)
		require.Equal(t, want, failure.Classify(err), status)
		var counted interface{ ModelCalls() int }
		require.ErrorAs(t, err, &counted)
		require.Equal(t, 1, counted.ModelCalls())
		require.NotContains(t, err.Error(), key)
		f := failure.Convert(err, "debugger")
		require.Equal(t, status, f.Status)
	}
}

// TestModelWithLessContext: a request that was too long is asked once more
// with less.
func TestModelWithLessContext(t *testing.T) {
	t.Parallel()
	tree := calc()
	for i := range 40 {
		tree["pkg/part_"+strconv.Itoa(i)+".py"] = strings.Repeat("# a long file\n", 150)
	}
	b := newBench(t, tree)
	long := `{"error":{"message":"too long","code":"context_length_exceeded"}}`
	d, srv, in := b.asking(llmtest.Refuse(400, long), llmtest.Say("a fix"))
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.Len(t, ans.Proposals, 1)
	require.Equal(t, 2, ans.Calls)
	requests := srv.Requests()
	require.Less(t, len(requests[1].Last()), len(requests[0].Last()))
	d, srv, in = b.asking(llmtest.Refuse(400, long), llmtest.Refuse(400, long))
	_, err = debug(t, d, in)
	require.True(t, llm.ContextTooLong(err), "%v", err)
	require.Equal(t, 2, srv.Count())
}

// TestModelSeesNoSecret: neither what is sent nor what is kept holds one.
func TestModelSeesNoSecret(t *testing.T) {
	t.Parallel()
	tree := calc()
	tree["settings.py"] = "API = '" + key + "'\n"
	b := newBench(t, tree)
	d, srv, in := b.asking(llmtest.Say("a fix"))
	ans, err := debug(t, d, in)
	require.NoError(t, err)
	require.NotContains(t, srv.Requests()[0].Last(), key)
	kept, err := rollback.Read(t.Context(), b.store, ans.Request.SHA256)
	require.NoError(t, err)
	require.Contains(t, string(kept), "settings.py")
	require.NotContains(t, string(kept), key)
}

// TestModelWithoutItsArtifacts: a request that would leave something out is
// not sent.
func TestModelWithoutItsArtifacts(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	lost := run.Ref{SHA256: strings.Repeat("6", 64)}
	for name, change := range map[string]func(in *run.DebugInput){
		"evidence":  func(in *run.DebugInput) { in.Evidence.Evidence = lost },
		"protected": func(in *run.DebugInput) { in.Protected = &lost },
		"base":      func(in *run.DebugInput) { in.Base.Manifest = lost },
	} {
		d, srv, in := b.asking()
		change(in)
		_, err := debug(t, d, in)
		require.True(t, rollback.IsKind(err, rollback.KindBlob), "%s: %v", name, err)
		require.Zero(t, srv.Count(), name)
	}
}
