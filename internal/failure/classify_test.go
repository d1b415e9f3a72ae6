package failure_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
)

// refusal is an error as an adapter of an SDK makes it.
type refusal struct {
	status    int
	after     time.Duration
	exhausted bool
	reset     time.Duration
}

func (r *refusal) Error() string                { return fmt.Sprintf("the timeout parameter is odd (%d)", r.status) }
func (r *refusal) HTTPStatus() int              { return r.status }
func (r *refusal) RetryAfter() time.Duration    { return r.after }
func (r *refusal) Quota() (bool, time.Duration) { return r.exhausted, r.reset }

type broken struct{ inner *refusal }

func (b broken) Error() string { return b.inner.Error() }

type brokenUnwrap struct{}

func (brokenUnwrap) Error() string { return "connection lost" }
func (brokenUnwrap) Unwrap() error { panic("no way in") }

type cyclic struct{}

func (c *cyclic) Error() string { return "round and round" }
func (c *cyclic) Unwrap() error { return c }

// RateLimitError is named like the error type of several SDKs.
type RateLimitError struct{}

func (RateLimitError) Error() string { return "slow down" }

func jsonError(t *testing.T, text string, into any) error {
	t.Helper()
	err := json.Unmarshal([]byte(text), into)
	require.Error(t, err)
	return err
}

// realErrors makes errors with real sockets, certificates and programs.
func realErrors(t *testing.T) (refused, late, untrusted, exit, missing error) {
	t.Helper()
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := closed.Addr().String()
	require.NoError(t, closed.Close())
	_, refused = new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	require.Error(t, refused)

	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	client := &http.Client{Timeout: 20 * time.Millisecond}
	_, late = client.Get(slow.URL) //nolint:noctx,bodyclose // the client's own time limit is under test; there is no body
	require.Error(t, late)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the client, as it should
	secure.StartTLS()
	t.Cleanup(secure.Close)
	_, untrusted = http.Get(secure.URL) //nolint:noctx,bodyclose // there is no body
	require.Error(t, untrusted)
	exit = exec.Command("false").Run() //nolint:noctx // it ends at once
	require.Error(t, exit)
	missing = exec.Command("/nonexistent/program").Run() //nolint:noctx // it never starts
	require.Error(t, missing)
	return refused, late, untrusted, exit, missing
}

// TestGoErrors classifies errors that the real libraries return.
func TestGoErrors(t *testing.T) {
	t.Parallel()
	refused, late, untrusted, exit, missing := realErrors(t)
	for name, c := range map[string]struct {
		err  error
		want failure.Category
	}{
		"nil":                      {nil, failure.Unexpected},
		"cancelled":                {fmt.Errorf("rate limit: %w", context.Canceled), failure.Unexpected},
		"deadline":                 {fmt.Errorf("patch: %w", context.DeadlineExceeded), failure.Timeout},
		"refused":                  {refused, failure.Connection},
		"late client":              {late, failure.Timeout},
		"untrusted certificate":    {untrusted, failure.Unexpected},
		"certificate type":         {&tls.CertificateVerificationError{Err: errors.New("connection")}, failure.Unexpected},
		"exit status":              {fmt.Errorf("timeout: %w", exit), failure.Sandbox},
		"missing program":          {missing, failure.Unexpected},
		"json syntax":              {jsonError(t, "{", new(int)), failure.InvalidOutput},
		"json type":                {jsonError(t, `"x"`, new(int)), failure.InvalidOutput},
		"end of file":              {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), failure.Connection},
		"eof":                      {io.EOF, failure.Connection},
		"closed":                   {net.ErrClosed, failure.Connection},
		"path":                     {&fs.PathError{Op: "open", Path: "/patch/timeout", Err: syscall.ENOSPC}, failure.Unexpected},
		"reset":                    {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, failure.Connection},
		"errno timeout":            {fmt.Errorf("dial: %w", syscall.ETIMEDOUT), failure.Timeout},
		"errno again":              {syscall.EAGAIN, failure.Unexpected},
		"op timeout":               {&net.OpError{Op: "read", Err: &net.DNSError{IsTimeout: true}}, failure.Timeout},
		"op timeout alone":         {&net.OpError{Op: "read", Err: lateErr{}}, failure.Timeout},
		"op alone":                 {&net.OpError{Op: "read", Err: errors.New("odd")}, failure.Connection},
		"not late":                 {onTime{}, failure.Unexpected},
		"no such host":             {&net.DNSError{Name: "api.example", IsNotFound: true}, failure.Connection},
		"address without time":     {&url.Error{Op: "Get", URL: "https://x", Err: errors.New("odd")}, failure.Unexpected},
		"type name":                {RateLimitError{}, failure.RateLimit},
		"status 429":               {&refusal{status: 429}, failure.RateLimit},
		"status 529":               {&refusal{status: 529}, failure.RateLimit},
		"status 408":               {&refusal{status: 408}, failure.Timeout},
		"status 504":               {&refusal{status: 504}, failure.Timeout},
		"status 500":               {&refusal{status: 500}, failure.Connection},
		"status 400":               {&refusal{status: 400}, failure.Unexpected},
		"status 200":               {&refusal{status: 200}, failure.Unexpected},
		"status beats words":       {fmt.Errorf("connection error: %w", &refusal{status: 400}), failure.Unexpected},
		"status beats json":        {fmt.Errorf("%w: %w", jsonError(t, "<", new(int)), &refusal{status: 503}), failure.Connection},
		"inner words win":          {fmt.Errorf("connection error: %w", errors.New("API key invalid")), failure.Unexpected},
		"outer words help":         {fmt.Errorf("request timed out: %w", errors.New("odd")), failure.Timeout},
		"inner own wins":           {fmt.Errorf("sandbox: %w", failure.New(failure.Timeout, "x", io.EOF)), failure.Timeout},
		"innermost own wins":       {failure.New(failure.Sandbox, "a", failure.New(failure.PatchApply, "b", io.EOF)), failure.PatchApply},
		"own without category":     {&failure.Error{Err: errors.New("timed out")}, failure.Timeout},
		"own of unknown category":  {failure.New("flood", "x", nil), failure.Unexpected},
		"joined":                   {errors.Join(nil, errors.New("odd"), syscall.ECONNREFUSED), failure.Connection},
		"joined words":             {errors.Join(errors.New("odd"), errors.New("timed out")), failure.Timeout},
		"nil inside":               {broken{}, failure.Unexpected},
		"broken chain":             {brokenUnwrap{}, failure.Unexpected},
		"cycle":                    {&cyclic{}, failure.Unexpected},
		"security is never a word": {errors.New("security violation"), failure.Unexpected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, failure.Classify(c.err), "%v", c.err)
			e := failure.Explain(c.err)
			require.Equal(t, c.want, e.Category)
			require.NotEmpty(t, e.Reason)
			require.Equal(t, c.err != nil, failure.Is(c.err, c.want))
		})
	}
}

type onTime struct{}

func (onTime) Error() string { return "odd" }
func (onTime) Timeout() bool { return false }

type lateErr struct{}

func (lateErr) Error() string { return "late" }
func (lateErr) Timeout() bool { return true }

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]failure.Category{
		"応答がタイムアウトしました":                                                    failure.Timeout,
		"サーバーに接続できません":                                                     failure.Connection,
		"ネットワークに到達できません":                                                   failure.Connection,
		"レート制限を超えました":                                                      failure.RateLimit,
		"JSONの解析に失敗しました":                                                   failure.InvalidOutput,
		"パッチを適用できませんでした":                                                   failure.PatchApply,
		"サンドボックスの実行に失敗しました":                                                failure.Sandbox,
		"証明書の検証に失敗し、接続できません":                                               failure.Unexpected,
		"予期しないエラーです":                                                       failure.Unexpected,
		"HTTP/1.1 503 Service Unavailable":                                 failure.Connection,
		"status code: 504":                                                 failure.Timeout,
		"Error code: 401 - connection refused":                             failure.Unexpected,
		"404 Not Found: network":                                           failure.Unexpected,
		"429 rows were parsed":                                             failure.Unexpected,
		"line 503 of the report":                                           failure.Unexpected,
		"cannot open package.json":                                         failure.Unexpected,
		"cannot open /var/network/patch/json":                              failure.Unexpected,
		`cannot open C:\network\patch`:                                     failure.Unexpected,
		"the neural network did not converge":                              failure.Unexpected,
		"Disk quota exceeded":                                              failure.Unexpected,
		"PATCH request timed out":                                          failure.Timeout,
		"error: patch failed: a.py:1":                                      failure.PatchApply,
		"Rate limit exceeded for api key sk-1":                             failure.RateLimit,
		"rate-limit exceeded":                                              failure.RateLimit,
		"the model is overloaded":                                          failure.RateLimit,
		"context_length_exceeded: json too large":                          failure.Unexpected,
		"x509: certificate signed by unknown authority: connection closed": failure.Unexpected,
		strings.Repeat("lorem ", 1000) + "timed out":                       failure.Timeout,
		strings.Repeat("接", 1000) + " timed out":                           failure.Timeout,
		"timed out " + strings.Repeat("a ", 100000):                        failure.Timeout,
	} {
		require.Equal(t, want, failure.Classify(errors.New(text)), "%.80s", text)
	}
}

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]failure.Category{
		"openai.RateLimitError":              failure.RateLimit,
		"openai.APITimeoutError":             failure.Timeout,
		"openai.APIConnectionError":          failure.Connection,
		"openai.InternalServerError":         failure.Connection,
		"openai.BadRequestError":             failure.Unexpected,
		"openai.AuthenticationError":         failure.Unexpected,
		"openai.NotFoundError":               failure.Unexpected,
		"anthropic.OverloadedError":          failure.RateLimit,
		"anthropic.PermissionDeniedError":    failure.Unexpected,
		"google.api_core.ResourceExhausted":  failure.RateLimit,
		"google.api_core.DeadlineExceeded":   failure.Timeout,
		"google.api_core.ServiceUnavailable": failure.Connection,
		"requests.exceptions.ReadTimeout":    failure.Timeout,
		"httpx.ConnectError":                 failure.Connection,
		"http.client.IncompleteRead":         failure.Connection,
		"BrokenPipeError":                    failure.Connection,
		"asyncio.CancelledError":             failure.Unexpected,
		"OutputParserException":              failure.InvalidOutput,
		"subprocess.CalledProcessError":      failure.Sandbox,
		"rate_limit_error":                   failure.RateLimit,
		"encoding/json.SyntaxError":          failure.InvalidOutput,
		"SandboxSecurityError":               failure.Security,
		"SandboxTimeoutError":                failure.Sandbox,
		"ZeroDivisionError":                  failure.Unexpected,
		"":                                   failure.Unexpected,
		"...":                                failure.Unexpected,
	} {
		got := failure.ExplainSignal(failure.Signal{Type: name, Message: "something"})
		require.Equal(t, want, got.Category, name)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   failure.Signal
		want failure.Category
	}{
		{failure.Signal{Type: "TimeoutError", Message: "HTTP 429", Status: 429, Origin: failure.OriginTest}, failure.Sandbox},
		{failure.Signal{Type: "SecurityError", Origin: failure.OriginSandbox}, failure.Security},
		{failure.Signal{Type: "TimeoutError", Origin: failure.OriginPatch}, failure.PatchApply},
		{failure.Signal{Type: "ModelTimeoutError", Status: 401, Origin: failure.OriginModel}, failure.Unexpected},
		{failure.Signal{Type: "SandboxExecutionError", Status: 503}, failure.Sandbox},
		{failure.Signal{Message: "invalid json", Origin: failure.OriginBus}, failure.Unexpected},
		{failure.Signal{Type: "JSONDecodeError", Origin: failure.OriginWorkspace}, failure.Unexpected},
		{failure.Signal{Type: "JSONDecodeError", Origin: failure.OriginModel}, failure.InvalidOutput},
	} {
		require.Equal(t, c.want, failure.ExplainSignal(c.in).Category, "%+v", c.in)
	}
	deadline := failure.ConvertFrom(failure.OriginSandbox, context.DeadlineExceeded, "run")
	require.Equal(t, failure.Sandbox, deadline.Category)
	require.Equal(t, "origin sandbox", deadline.Reason)
	require.Equal(t, failure.OriginSandbox, failure.Convert(fmt.Errorf("outer: %w", deadline), "x").Origin)
	stopped := failure.ConvertFrom(failure.OriginSandbox, context.Canceled, "run")
	require.Equal(t, failure.Unexpected, stopped.Category, "a stop is no failure of the sandbox")
	busy := failure.ConvertFrom(failure.OriginBus, jsonError(t, "{", new(int)), "decode")
	require.Equal(t, failure.Unexpected, busy.Category)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	e := failure.Explain(errors.New("connection timeout while parsing json"))
	require.Equal(t, []failure.Category{failure.Timeout, failure.Connection, failure.InvalidOutput}, e.Matches)
	require.False(t, e.Structured)
	require.False(t, e.Unknown)
	require.Equal(t, "words of the message", e.Reason)

	e = failure.Explain(&refusal{status: 429})
	require.True(t, e.Structured)
	require.Equal(t, "HTTP status 429", e.Reason)
	require.Equal(t, []failure.Category{failure.RateLimit}, e.Matches)

	e = failure.Explain(errors.New("odd"))
	require.True(t, e.Unknown)
	require.Equal(t, []failure.Category{failure.Unexpected}, e.Matches)
	require.True(t, failure.Explain(nil).Unknown)
	require.Contains(t, failure.Explain(broken{}).Reason, "could not be read")
	require.Equal(t, "type name failure_test.RateLimitError", failure.Explain(RateLimitError{}).Reason)
}

func TestConvertKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	require.Nil(t, failure.Convert(nil, "x"))
	require.Equal(t, "x: an unreadable error of type failure_test.broken", failure.Convert(broken{}, "x").Error())
	cause := &refusal{status: 429, after: 7 * time.Second, exhausted: true, reset: time.Hour}
	e := failure.ConvertFrom(failure.OriginModel, cause, "llm: ask")
	require.Equal(t, 429, e.Status)
	require.Equal(t, 7*time.Second, e.RetryAfter)
	require.True(t, e.Exhausted)
	require.Equal(t, time.Hour, e.QuotaReset)

	outer := failure.Convert(fmt.Errorf("attempt 2: %w", e), "debugger")
	require.NotSame(t, e, outer)
	require.Equal(t, "debugger: attempt 2: llm: ask: "+cause.Error(), outer.Error())
	require.Equal(t, e.Reason, outer.Reason)
	require.Equal(t, e.RetryAfter, outer.RetryAfter)
	require.Equal(t, failure.OriginModel, outer.Origin)
	var r *refusal
	require.ErrorAs(t, outer, &r)

	require.Equal(t, failure.Failure{
		Category: failure.RateLimit, Again: 2, RetryAfter: 7 * time.Second, Exhausted: true,
		QuotaReset: time.Hour, Model: true, Status: 429, Run: "r", N: 4,
	}, outer.Failure("r", 4, 2))

	found, ok := failure.Of(fmt.Errorf("x: %w", e))
	require.True(t, ok)
	require.Same(t, e, found)
	_, ok = failure.Of(io.EOF)
	require.False(t, ok)
	require.Equal(t, "timeout", (&failure.Error{Category: failure.Timeout}).Error())
}

func TestStopped(t *testing.T) {
	t.Parallel()
	require.True(t, failure.Stopped(context.Canceled))
	require.True(t, failure.Stopped(failure.Convert(fmt.Errorf("x: %w", context.Canceled), "y")))
	require.False(t, failure.Stopped(failure.New(failure.Timeout, "x", context.Canceled)))
	require.False(t, failure.Stopped(context.DeadlineExceeded))
	require.False(t, failure.Stopped(nil))
}

func TestCategories(t *testing.T) {
	t.Parallel()
	all := failure.Categories()
	require.Len(t, all, 8)
	for _, c := range all {
		require.True(t, c.Valid())
		require.Equal(t, c, failure.ExplainSignal(failure.Signal{Type: c.TypeName()}).Category, "its own type name stands for %s", c)
	}
	require.False(t, failure.Category("flood").Valid())
	require.Equal(t, "UnexpectedSystemError", failure.Category("flood").TypeName())
}

func FuzzClassify(f *testing.F) {
	f.Add("RateLimitError", "HTTP 429", 429, "model")
	f.Add("*net.OpError", "接続に失敗\xff\x00", -1, "bus")
	f.Add("A.B.C_d", strings.Repeat("a.b/", 3000), 0, "")
	f.Fuzz(func(t *testing.T, typ, message string, status int, origin string) {
		sig := failure.Signal{Type: typ, Message: message, Status: status, Origin: failure.Origin(origin)}
		e := failure.ExplainSignal(sig)
		require.True(t, e.Category.Valid())
		require.Contains(t, e.Matches, e.Category)
		require.Equal(t, e, failure.ExplainSignal(sig))
		require.True(t, failure.Classify(errors.New(message)).Valid())
	})
}

func BenchmarkClassify(b *testing.B) {
	cause := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, err := range map[string]error{
		"structured/status": fmt.Errorf("ask: %w", &refusal{status: 429}),
		"structured/type":   fmt.Errorf("ask: %w", &url.Error{Op: "Post", URL: "http://x", Err: cause}),
		"structured/own":    fmt.Errorf("ask: %w", failure.New(failure.Timeout, "x", cause)),
		"words/short":       fmt.Errorf("ask: %w", errors.New("connection reset by peer while parsing JSON")),
		"words/long":        fmt.Errorf("ask: %w", errors.New(strings.Repeat("nothing here says what it was ", 200))),
		"words/japanese":    errors.New("レート制限に達しました。しばらく待ってから再試行してください"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				failure.Classify(err)
			}
		})
	}
}
