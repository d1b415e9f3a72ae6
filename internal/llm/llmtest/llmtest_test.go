package llmtest_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, url string) *llm.Client {
	t.Helper()
	c, err := llm.New(llm.Config{BaseURL: url, Model: "m"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestScript plays every verb against the client of the product.
func TestScript(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "answer.txt")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	s := llmtest.Script(t, `
# each line is one step
answer "two\nlines"
answer times=2 chunks=1 no quotes at all
answer @`+file+`
answer finish=length `+"`raw`"+`
answer if="special one" "for the special one"
echo
json "whole"
status 429 Retry-After=7 "slow down"
status 500
cut after=all "text"
error "boom"
raw "data: {}\n\n"
answer finish=none "x"
`)
	c := client(t, s.URL)
	ask := func(prompt string) (llm.Answer, error) {
		return c.Ask(t.Context(), llm.Request{Prompt: prompt})
	}
	for i, want := range []llm.Answer{
		{Text: "two\nlines", Finish: "stop"},
		{Text: "no quotes at all", Finish: "stop"},
		{Text: "no quotes at all", Finish: "stop"},
		{Text: "from a file\n", Finish: "stop"},
		{Text: "raw", Finish: "length"},
		{Text: "for the special one", Finish: "stop"},
		{Text: "echo this", Finish: "stop"},
		{Text: "whole", Finish: "stop"},
	} {
		prompt := map[int]string{5: "a special one", 6: "echo this"}[i]
		a, err := ask(prompt)
		require.NoError(t, err, i)
		require.Equal(t, want.Text, a.Text)
		require.Equal(t, want.Finish, a.Finish)
	}
	for _, want := range []failure.Category{
		failure.RateLimit, failure.Connection, failure.InvalidOutput, failure.Connection, failure.InvalidOutput, failure.InvalidOutput,
	} {
		_, err := ask("p")
		require.Equal(t, want, failure.Classify(err), "%v", err)
	}
	require.Zero(t, s.Left())
	require.Zero(t, s.Excess())
	_, err := ask("p")
	require.ErrorContains(t, err, "the script is over")
	require.Equal(t, 1, s.Excess())
	require.Equal(t, 15, s.Count())
	require.Equal(t, "echo this", s.Requests()[6].Last())
	require.Empty(t, llmtest.Request{}.Last())
	require.Equal(t, s.URL, s.Env()["NEXUS_MODEL_BASE_URL"])

	s.Add(llmtest.Step{Kind: llmtest.Answer, Text: "again", Finish: "stop", Times: llmtest.Forever})
	for range 3 {
		a, err := ask("p")
		require.NoError(t, err)
		require.Equal(t, "again", a.Text)
	}
	require.Zero(t, s.Left())
}

func TestStepOrderOfConditions(t *testing.T) {
	t.Parallel()
	s := llmtest.Script(t, "answer plain\nanswer times=* if=\"a\\\"b\" quoted")
	c := client(t, s.URL)
	a, err := c.Ask(t.Context(), llm.Request{Prompt: `say a"b`})
	require.NoError(t, err)
	require.Equal(t, "quoted", a.Text)
	a, err = c.Ask(t.Context(), llm.Request{Prompt: "x"})
	require.NoError(t, err)
	require.Equal(t, "plain", a.Text)
	require.Zero(t, s.Left())
}

func TestMistakesInScripts(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"answer x\n\nanswr y": "line 3", "status abc": "no HTTP status", "status 99 x": "no HTTP status",
		"answer times=x y": "no number", "answer chunks=-1 y": "no number", "answer after=some y": "no number",
		"answer Colour=red y": "unknown option", "status 500 colour=red y": "unknown option",
		`answer "open`: "invalid syntax", `answer finish="open`: "unknown", "answer @/nonexistent/file": "no such file",
	} {
		_, err := llmtest.Parse(script)
		if script == `answer finish="open` {
			require.NoError(t, err, "a lone quote belongs to the word")
			continue
		}
		require.ErrorContains(t, err, says, script)
	}
}

func TestOtherAddresses(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Say("x"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/models", http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

// TestServe runs the server the way a process of its own does.
func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- llmtest.Serve(ctx, "127.0.0.1:0", "answer hello\nhang x", w) }()
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	c := client(t, lines.Text())
	answers := make(chan llm.Answer, 1)
	go func() {
		a, err := c.Ask(t.Context(), llm.Request{Prompt: "p"})
		if err != nil {
			a.Text = err.Error()
		}
		answers <- a
	}()
	require.True(t, lines.Scan())
	require.Equal(t, "POST /v1/chat/completions (request 1)", lines.Text())
	require.Equal(t, "hello", (<-answers).Text)
	cancel()
	require.NoError(t, <-done)

	require.Error(t, llmtest.Serve(t.Context(), "127.0.0.1:0", "nonsense", io.Discard))
	require.Error(t, llmtest.Serve(t.Context(), "no address", "", io.Discard))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"answer x", "status 429 Retry-After=7 \"x\"", "hang after=none", strings.Repeat("cut times=* x\n", 3)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if strings.Contains(script, "@") {
			t.Skip("files are not part of the grammar under test")
		}
		steps, err := llmtest.Parse(script)
		if err == nil {
			require.LessOrEqual(t, len(steps), strings.Count(script, "\n")+1)
		}
	})
}
