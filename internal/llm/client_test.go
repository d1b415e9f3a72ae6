package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

func TestAsk(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Say("def f():\n    return 'ü 接続'\n"))
	warm := 0.25
	a, err := client(t, s.URL).Ask(t.Context(), llm.Request{
		System: "code only", Messages: []llm.Message{{Role: llm.RoleUser, Text: "one"}, {Role: llm.RoleAssistant, Text: "two"}},
		Prompt: "three <&> \u2028", MaxTokens: 99, Temperature: &warm,
	})
	require.NoError(t, err)
	require.Equal(t, "def f():\n    return 'ü 接続'\n", a.Text)
	require.Equal(t, llm.FinishStop, a.Finish)
	require.Equal(t, "scripted", a.Model)
	require.Positive(t, a.Usage.Prompt)
	require.Positive(t, a.Usage.Completion)

	got := s.Requests()[0]
	require.Equal(t, "/v1/chat/completions", got.Path)
	require.Equal(t, "Bearer "+key, got.Header.Get("Authorization"))
	require.True(t, got.Stream)
	require.Equal(t, []llmtest.Message{
		{Role: "system", Content: "code only"},
		{Role: "user", Content: "one"},
		{Role: "assistant", Content: "two"},
		{Role: "user", Content: "three <&> \u2028"},
	}, got.Messages)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Body), &body))
	require.InDelta(t, 99, body["max_tokens"], 0)
	require.InDelta(t, 0.25, body["temperature"], 0)
	require.Equal(t, map[string]any{"include_usage": true}, body["stream_options"])
}

// TestEnvironmentOfOthers: variables that the SDK knows must not reach a
// server that they were not meant for.
func TestEnvironmentOfOthers(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "meant-for-another-server")
	t.Setenv("OPENAI_ORG_ID", "another-org")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Private: yes")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	s := llmtest.New(t, llmtest.Say("x"))
	c := client(t, s.URL, func(c *llm.Config) { c.APIKey = llm.Secret{} })
	_, err := c.Ask(t.Context(), llm.Request{Model: "other", Prompt: "p"})
	require.NoError(t, err)
	got := s.Requests()[0]
	require.Equal(t, "other", got.Model)
	for name, values := range got.Header {
		require.NotContains(t, strings.Join(values, " "), "another", name)
	}
	require.Empty(t, got.Header.Get("Authorization"))
	require.Empty(t, got.Header.Get("X-Private"))
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for finish, want := range map[string]string{
		"stop": llm.FinishStop, "end_turn": llm.FinishStop, "eos": llm.FinishStop,
		"length": llm.FinishLength, "max_tokens": llm.FinishLength,
		"content_filter": llm.FinishRefused, "sensitive": llm.FinishRefused,
	} {
		a, err := ask(t, llmtest.Step{Kind: llmtest.Answer, Text: "some code", Finish: finish})
		require.NoError(t, err, finish)
		require.Equal(t, want, a.Finish, finish)
		if want == llm.FinishRefused {
			require.Empty(t, a.Text)
			require.Contains(t, a.Reason, finish)
		} else {
			require.Equal(t, "some code", a.Text)
		}
	}
	for finish, want := range map[string]failure.Category{
		"tool_calls": failure.InvalidOutput, "mystery": failure.InvalidOutput,
		"network_error": failure.Connection, "insufficient_system_resource": failure.Connection,
	} {
		_, err := ask(t, llmtest.Step{Kind: llmtest.Answer, Text: "some code", Finish: finish})
		check(t, err, want)
	}
	a, err := ask(t, llmtest.Step{Kind: llmtest.Raw, Text: sse(
		`{"choices":[{"index":0,"delta":{"content":"part","refusal":"I will"},"finish_reason":null}]}`,
		`{"choices":[{"index":0,"delta":{"refusal":" not"},"finish_reason":"stop"}]}`, "[DONE]")})
	require.NoError(t, err)
	require.Equal(t, llm.Answer{Finish: llm.FinishRefused, Reason: "I will not", Model: "scripted"}, a)
}

func TestEmptyAnswerIsAnAnswer(t *testing.T) {
	t.Parallel()
	a, err := ask(t, llmtest.Say(""))
	require.NoError(t, err)
	require.Empty(t, a.Text)
	require.Equal(t, llm.FinishStop, a.Finish)
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const (
	part = `{"choices":[{"index":0,"delta":{"content":"x = 1\n"},"finish_reason":null}]}`
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

// TestIncomplete: whatever ends before its stop reason is never an answer.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]llmtest.Step{
		"cut at once":                {Kind: llmtest.Cut, Text: "x = 1\n"},
		"cut in the middle":          {Kind: llmtest.Cut, Text: strings.Repeat("x = 1\n", 50), After: 3},
		"cut after the text":         {Kind: llmtest.Cut, Text: "x = 1\n", After: llmtest.AfterAll},
		"ends without done":          {Kind: llmtest.Answer, Text: "x = 1\n", NoDone: true},
		"done without a stop reason": {Kind: llmtest.Answer, Text: "x = 1\n"},
		"nothing":                    {Kind: llmtest.Raw},
		"html":                       {Kind: llmtest.Raw, Text: "<html>data: no</html>"},
		"done alone":                 {Kind: llmtest.Raw, Text: sse("[DONE]")},
		"garbage":                    {Kind: llmtest.Raw, Text: sse(part, "{nonsense")},
		"wrong type":                 {Kind: llmtest.Raw, Text: sse(part, `{"choices":[{"delta":{"content":7}}]}`, stop)},
		"other choice":               {Kind: llmtest.Raw, Text: sse(part, `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")},
		"half an event":              {Kind: llmtest.Raw, Text: sse(part) + "data: " + stop},
		"json without stop":          {Kind: llmtest.JSON, Text: "x = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, step)
			require.Empty(t, a)
			f := failed(t, err, failure.InvalidOutput)
			require.NotContains(t, f.Error(), "x = 1")
			if name != "garbage" && name != "wrong type" {
				require.ErrorContains(t, f, "incomplete")
			}
		})
	}
}

func TestStreamsThatAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 70000)
	for name, c := range map[string]struct {
		step llmtest.Step
		want string
	}{
		"line over 64 KiB": {llmtest.Step{Kind: llmtest.Answer, Text: long + "\nz = 2\n", Chunks: 1, Finish: "stop"}, long + "\nz = 2\n"},
		"two lines, one long": {llmtest.Step{Kind: llmtest.Raw, Text: sse(
			`{"choices":[{"index":0,"delta":{"content":"`+long+`"}}]}`, part, stop, "[DONE]")}, long + "x = 1\n"},
		"error null":       {llmtest.Step{Kind: llmtest.Raw, Text: sse(`{"error":null,`+part[1:], stop, "[DONE]")}, "x = 1\n"},
		"comments and CR":  {llmtest.Step{Kind: llmtest.Raw, Text: ": ping\r\n\r\nevent: x\r\ndata:" + part + "\r\n\r\ndata: " + stop + "\r\n\r\n: bye\r\n"}, "x = 1\n"},
		"no done at all":   {llmtest.Step{Kind: llmtest.Raw, Text: sse(part, stop)}, "x = 1\n"},
		"one document":     {llmtest.Step{Kind: llmtest.JSON, Text: "x = 1\n", Finish: "stop"}, "x = 1\n"},
		"null in a choice": {llmtest.Step{Kind: llmtest.Raw, Text: sse(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`, part, stop)}, "x = 1\n"},
		"text after done":  {llmtest.Step{Kind: llmtest.Raw, Text: sse(part, stop, "[DONE]", part)}, "x = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, c.step)
			require.NoError(t, err)
			require.Equal(t, c.want, a.Text)
		})
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	small := func(c *llm.Config) { c.MaxAnswerBytes = 1000 }
	for _, kind := range []llmtest.Kind{llmtest.Answer, llmtest.JSON} {
		_, err := ask(t, llmtest.Step{Kind: kind, Text: strings.Repeat("a", 1001), Finish: "stop"}, small)
		require.ErrorContains(t, failed(t, err, failure.InvalidOutput), "longer than 1000 bytes")
		_, err = ask(t, llmtest.Step{Kind: kind, Text: strings.Repeat("a", 1000), Finish: "stop"}, small)
		require.NoError(t, err)
	}
	_, err := ask(t, llmtest.Step{Kind: llmtest.JSON, Text: strings.Repeat("a", 2<<20), Finish: "stop"}, small)
	check(t, err, failure.InvalidOutput)
}

func TestSilence(t *testing.T) {
	t.Parallel()
	idle := func(c *llm.Config) { c.Idle = 50 * time.Millisecond }
	whole := func(c *llm.Config) { c.Timeout = 50 * time.Millisecond }
	for name, after := range map[string]int{"no headers": llmtest.AfterNone, "some text": 2, "all text": llmtest.AfterAll} {
		for limit, change := range map[string]func(*llm.Config){"idle": idle, "whole": whole} {
			t.Run(name+"/"+limit, func(t *testing.T) {
				t.Parallel()
				_, err := ask(t, llmtest.Step{Kind: llmtest.Hang, Text: strings.Repeat("x = 1\n", 50), After: after}, change)
				require.ErrorContains(t, failed(t, err, failure.Timeout), "50ms")
			})
		}
	}
}

// TestSlowIsNotSilent: the idle limit starts again at each byte.
func TestSlowIsNotSilent(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(60 * time.Millisecond)
		defer tick.Stop()
		for _, e := range []string{": wait\n\n", sse(part), sse(part), sse(part), sse(part), sse(stop)} {
			_, _ = w.Write([]byte(e))
			w.(http.Flusher).Flush()
			<-tick.C
		}
	}))
	t.Cleanup(srv.Close)
	c := client(t, srv.URL+"/v1", func(c *llm.Config) { c.Idle = 240 * time.Millisecond })
	a, err := c.Ask(t.Context(), llm.Request{Prompt: "p"})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x = 1\n", 4), a.Text)
}

func TestStop(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Step{Kind: llmtest.Hang, Text: "x", After: 1, Times: 2})
	c := client(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.Arrived()
		cancel()
	}()
	_, err := c.Ask(ctx, llm.Request{Prompt: "p"})
	check(t, err, failure.Unexpected)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, failure.Stopped(err))

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Ask(ctx, llm.Request{Prompt: "p"})
	check(t, err, failure.Timeout)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := client(t, gone.URL+"/v1").Ask(t.Context(), llm.Request{Prompt: "p"})
	require.ErrorContains(t, failed(t, err, failure.Connection), "cannot reach the model at "+gone.URL)

	_, err = ask(t, llmtest.Step{Kind: llmtest.Cut, After: llmtest.AfterNone})
	check(t, err, failure.Connection)
}

// TestRedirect: the key stays with the server that it was meant for.
func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := llmtest.New(t, llmtest.Say("stolen"))
		step := llmtest.Refuse(status, "", "Location", other.URL+"/chat/completions?key="+key)
		_, err := ask(t, step)
		require.ErrorContains(t, failed(t, err, failure.Unexpected), llm.EnvBaseURL)
		require.Zero(t, other.Count())
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	secret := llm.NewSecret(key)
	cfg := llm.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m", APIKey: secret}
	c, err := llm.New(cfg)
	require.NoError(t, err)
	doc, err := json.Marshal(map[string]any{"cfg": cfg.Model, "secret": secret})
	require.NoError(t, err)
	for _, dump := range []string{
		fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), fmt.Sprintf("%v %+v %#v", secret, secret, secret),
		fmt.Sprintf("%v %+v %#v", c, c, c), fmt.Sprintf("%+v %#v", *c, *c), string(doc),
	} {
		require.NotContains(t, dump, key)
	}
	require.Equal(t, key, secret.Reveal())
	require.Empty(t, llm.Secret{}.String())

	for _, body := range []string{
		`{"error":{"message":"Incorrect API key provided: ` + key + `. Check it","code":"invalid_api_key"}}`,
		"proxy said: Authorization: Bearer " + key, key,
	} {
		for _, status := range []int{401, 400, 429, 500} {
			_, err := ask(t, llmtest.Refuse(status, body))
			require.Error(t, err)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), key)
		}
	}
	_, err = ask(t, llmtest.Step{Kind: llmtest.Raw, Text: sse(part, `{"error":"`+key+`"}`)})
	check(t, err, failure.Connection)
	_, err = ask(t, llmtest.Step{Kind: llmtest.Answer, Text: "x", Finish: key})
	check(t, err, failure.InvalidOutput)
}

// TestNoHTTP: what listens there speaks another protocol, or none.
func TestNoHTTP(t *testing.T) {
	t.Parallel()
	for _, greeting := range []string{"SSH-2.0-OpenSSH_9.6\r\n", "\x00\x01\x02", "HTTP/9.9 what\r\n\r\n", ""} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, err = io.WriteString(c, greeting)
				err = errors.Join(err, c.Close())
			}
			done <- err
		}()
		c, err := llm.New(llm.Config{BaseURL: "http://" + l.Addr().String() + "/v1", Model: "m"})
		require.NoError(t, err)
		_, err = c.Ask(t.Context(), llm.Request{Prompt: "hello"})
		require.Equal(t, failure.Connection, failure.Classify(err), "%q: %v", greeting, err)
		c.Close()
		require.NoError(t, <-done)
		require.NoError(t, l.Close())
	}
}
