package llm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step llmtest.Step
		want failure.Category
		says string
	}{
		"429":             {llmtest.Refuse(429, `{"error":{"message":"slow down"}}`), failure.RateLimit, "slow down"},
		"529":             {llmtest.Refuse(529, `overloaded`), failure.RateLimit, "overloaded"},
		"408":             {llmtest.Refuse(408, ``), failure.Timeout, "408"},
		"504":             {llmtest.Refuse(504, `<html>gateway</html>`), failure.Timeout, "504"},
		"500":             {llmtest.Refuse(500, `{"error":{"message":"The server had an error","type":"server_error"}}`), failure.Connection, "had an error"},
		"502 html":        {llmtest.Refuse(502, "<html>\n<h1>Bad Gateway</h1>"), failure.Connection, "Bad Gateway"},
		"503 no body":     {llmtest.Refuse(503, ""), failure.Connection, "503"},
		"401":             {llmtest.Refuse(401, `{"error":{"message":"bad key"}}`), failure.Unexpected, "check " + llm.EnvAPIKey},
		"402":             {llmtest.Refuse(402, `{"error":{"message":"Insufficient Balance"}}`), failure.Unexpected, "credit"},
		"403":             {llmtest.Refuse(403, `{"detail":"no"}`), failure.Unexpected, llm.EnvModel},
		"404":             {llmtest.Refuse(404, `{"error":{"message":"model not found"}}`), failure.Unexpected, llm.EnvBaseURL},
		"400":             {llmtest.Refuse(400, `{"error":{"message":"timeout must be positive"}}`), failure.Unexpected, "must be positive"},
		"422":             {llmtest.Refuse(422, `{"detail":[{"msg":"extra field"}]}`), failure.Unexpected, "extra field"},
		"string error":    {llmtest.Refuse(400, `{"error":"model requires more memory"}`), failure.Unexpected, "more memory"},
		"json string":     {llmtest.Refuse(400, `"plain words"`), failure.Unexpected, "plain words"},
		"500 wraps 400":   {llmtest.Refuse(500, `{"error":{"message":"litellm.BadRequestError: no","code":"400"}}`), failure.Unexpected, "the cause is HTTP 400"},
		"500 wraps words": {llmtest.Refuse(500, `{"error":{"message":"upstream: Error code: 401 - no"}}`), failure.Unexpected, "401"},
		"502 wraps 429":   {llmtest.Refuse(502, `{"error":{"message":"x","type":"rate_limit_error"}}`), failure.RateLimit, "429"},
		"500 nested":      {llmtest.Refuse(500, `{"error":{"error":{"message":"deep","type":"invalid_request_error"}}}`), failure.Unexpected, "deep"},
		"500 names class": {llmtest.Refuse(500, `openai.BadRequestError: something`), failure.Unexpected, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, c.step)
			f := failed(t, err, c.want)
			require.Contains(t, f.Error(), c.says)
			require.False(t, f.Exhausted)
			require.False(t, llm.ContextTooLong(err))
			require.Less(t, len(f.Error()), 700)
		})
	}
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	_, err := ask(t, llmtest.Refuse(401, "no"), func(c *llm.Config) { c.APIKey = llm.Secret{} })
	require.ErrorContains(t, failed(t, err, failure.Unexpected), "set "+llm.EnvAPIKey)
}

func TestContextTooLong(t *testing.T) {
	t.Parallel()
	for _, step := range []llmtest.Step{
		llmtest.Refuse(400, `{"error":{"code":"context_length_exceeded"}}`),
		llmtest.Refuse(500, `Requested token count exceeds the model's maximum context length of 16384 tokens`),
		llmtest.Refuse(400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000"}}`),
		llmtest.Refuse(400, `{"error":{"message":"the request exceeds the available context size"}}`),
		llmtest.Refuse(413, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`),
		{Kind: llmtest.Error, Text: `{"error":{"message":"maximum context length is 10","code":400}}`},
	} {
		_, err := ask(t, step)
		f := failed(t, err, failure.Unexpected)
		require.True(t, llm.ContextTooLong(err), "%v", err)
		require.Equal(t, failure.NextSource, failure.Dispose(f.Failure("r", 1, 0)).Action)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	_, err := ask(t, llmtest.Refuse(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`))
	f := failed(t, err, failure.RateLimit)
	require.True(t, f.Exhausted)
	require.Zero(t, f.QuotaReset)
	require.Equal(t, failure.Park, failure.Dispose(f.Failure("r", 1, 0)).Action)
	require.ErrorContains(t, err, "billing")

	_, err = ask(t, llmtest.Refuse(429, `weekly limit reached. resets in 6h29m`))
	f = failed(t, err, failure.RateLimit)
	require.True(t, f.Exhausted)
	require.Equal(t, 6*time.Hour+29*time.Minute, f.QuotaReset)

	_, err = ask(t, llmtest.Refuse(429, `slow`, "Retry-After", "7200"))
	f = failed(t, err, failure.RateLimit)
	require.Equal(t, 2*time.Hour, f.QuotaReset)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step llmtest.Step
		want time.Duration
	}{
		"seconds":      {llmtest.Refuse(429, "x", "Retry-After", "7"), 7 * time.Second},
		"milliseconds": {llmtest.Refuse(429, "x", "Retry-After-Ms", "1500"), 1500 * time.Millisecond},
		"sentence":     {llmtest.Refuse(429, "Please try again in 20s"), 20 * time.Second},
		"503":          {llmtest.Refuse(503, "x", "Retry-After", "3"), 3 * time.Second},
		"none":         {llmtest.Refuse(429, "x"), 0},
		"bad":          {llmtest.Refuse(429, "x", "Retry-After", "abc", "Retry-After-Ms", "NaN"), 0},
		"negative":     {llmtest.Refuse(429, "x", "Retry-After", "-1"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, c.step)
			f := failed(t, err, failure.Classify(err))
			require.Equal(t, c.want, f.RetryAfter)
			require.False(t, f.Exhausted)
		})
	}
	date := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	_, err := ask(t, llmtest.Refuse(429, "x", "Retry-After", date))
	require.InDelta(t, 90, failed(t, err, failure.RateLimit).RetryAfter.Seconds(), 30)
}

func TestErrorInsideStream(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]failure.Category{
		`{"error":{"message":"too fast","code":"rate_limit_exceeded"}}`:          failure.RateLimit,
		`{"error":{"type":"overloaded_error","message":"Overloaded"}}`:           failure.RateLimit,
		`{"error":{"code":504,"message":"upstream"}}`:                            failure.Timeout,
		`{"error":{"code":400,"message":"bad"}}`:                                 failure.Unexpected,
		`{"error":{"type":"invalid_request_error","message":"bad"}}`:             failure.Unexpected,
		`{"error":{"message":"something"},"choices":[{"finish_reason":"stop"}]}`: failure.Connection,
		`{"error":"words"}`: failure.Connection,
		`no json at all`:    failure.Connection,
	} {
		for _, after := range []int{0, llmtest.AfterNone} {
			a, err := ask(t, llmtest.Step{Kind: llmtest.Error, Text: text, After: after})
			check(t, err, want)
			require.Empty(t, a)
		}
	}
	_, err := ask(t, llmtest.Step{Kind: llmtest.Error, Text: `{"error":{"code":"insufficient_quota","message":"resets in 2h"}}`})
	require.Equal(t, 2*time.Hour, failed(t, err, failure.RateLimit).QuotaReset)
}

// TestEndlessRefusal: a body without an end is not read to its end.
func TestEndlessRefusal(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for {
			if _, err := io.WriteString(w, strings.Repeat("A", 4096)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	c := client(t, srv.URL+"/v1", func(c *llm.Config) { c.Timeout = 10 * time.Second })
	_, err := c.Ask(t.Context(), llm.Request{Prompt: "p"})
	require.Less(t, len(failed(t, err, failure.Connection).Error()), 700)
}

// TestOneCall: nothing is tried again below the pipeline.
func TestOneCall(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 409, 429, 500, 503} {
		s := llmtest.New(t, llmtest.Refuse(status, "no", "X-Should-Retry", "true"), llmtest.Say("never"))
		_, err := client(t, s.URL).Ask(t.Context(), llm.Request{Prompt: "p"})
		require.Error(t, err)
		require.Equal(t, 1, s.Count(), status)
	}
}
