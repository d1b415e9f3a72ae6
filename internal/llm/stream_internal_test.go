package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
)

// FuzzStream feeds any bytes as the body of an accepted request: what comes out
// is an answer with a stop reason that was in the bytes, or a failure.
func FuzzStream(f *testing.F) {
	const part = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"
	const stop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}` + "\n\n"
	for _, body := range []string{
		part + stop + "data: [DONE]\n\n", part, "data: [DONE]\n\n", ": ping\r\n\r\n" + part + stop,
		`data: {"error":{"message":"no","code":429}}` + "\n\n", part + `data: {"error":"words"}`, "\xff\x00data:",
		"data: {\"choices\":\ndata: []}\n\n", `{"choices":[{"message":{"content":"x"},"finish_reason":"length"}]}`,
	} {
		f.Add(body, false)
		f.Add(body, true)
	}
	c, err := New(Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m", MaxAnswerBytes: 1 << 10})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body string, document bool) {
		media := "text/event-stream"
		if document {
			media = "application/json; charset=utf-8"
		}
		a, err := c.read(&http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body)),
		})
		if err != nil {
			require.Empty(t, a)
			require.True(t, failure.Classify(err).Valid())
			return
		}
		require.Contains(t, []string{FinishStop, FinishLength, FinishRefused}, a.Finish)
		if !strings.Contains(body, `\`) { // an escape may hide the name
			require.Contains(t, strings.ToLower(body), "finish", "a stop reason was sent")
		}
		require.LessOrEqual(t, len(a.Text), 1<<10)
	})
}
