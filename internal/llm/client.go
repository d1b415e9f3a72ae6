package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"nexuscore.dev/nexus/internal/failure"
)

// op is the operation that every error of the client names.
const op = "llm: ask"

// Client asks a server that speaks the OpenAI chat-completions protocol. It
// never tries again by itself, never follows a redirect, and sends its key to
// the configured address only.
type Client struct {
	cfg    Config
	chat   openai.ChatCompletionService
	http   *http.Client
	redact *Redactor
}

var _ Model = (*Client)(nil)

// New makes a Client; an error says what to set.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the process has replaced the default HTTP transport")
	}
	hc := &http.Client{
		Transport: shortErrors{transport.Clone()},
		// A redirect is answered as it is: following one could carry the key
		// to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// The service is made by itself: a whole openai.Client would read the
	// OPENAI_* variables and send a key that was meant for another server.
	opts := []option.RequestOption{
		option.WithBaseURL(cfg.BaseURL), option.WithHTTPClient(hc), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "nexus"),
	}
	if !cfg.APIKey.Empty() {
		opts = append(opts, option.WithAPIKey(cfg.APIKey.Reveal()))
	}
	return &Client{
		cfg: cfg, chat: openai.NewChatCompletionService(opts...), http: hc,
		redact: NewRedactor(cfg.APIKey.Reveal()),
	}, nil
}

// Name is the model's configured name.
func (c *Client) Name() string { return c.cfg.Model }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask sends req as a streamed chat completion. Errors are *failure.Error:
// rate_limit (429, 529; Exhausted for a used-up quota), timeout (408, 504,
// silence), connection (other 5xx, unreachable), invalid_output (the stream
// ended without a stop reason, or is no answer), unexpected (4xx, and a
// cancelled ctx, for which failure.Stopped is true).
func (c *Client) Ask(ctx context.Context, req Request) (Answer, error) {
	if req.Model == "" {
		req.Model = c.cfg.Model
	}
	w := newWatch(ctx, c.cfg.Timeout, c.cfg.Idle)
	defer w.stop()
	a, err := c.ask(w, req)
	if err == nil {
		return a, nil
	}
	return Answer{}, c.fail(w, err)
}

func (c *Client) ask(w *watch, req Request) (Answer, error) {
	var res *http.Response
	stream := c.chat.NewStreaming(w.ctx, c.params(req), option.WithResponseInto(&res))
	defer func() { _ = stream.Close() }() // what was read is judged; a failed close adds nothing
	if res != nil && res.StatusCode >= http.StatusMultipleChoices {
		return Answer{}, c.refusal(res)
	}
	if err := stream.Err(); err != nil {
		return Answer{}, err
	}
	if res == nil {
		return Answer{}, errors.New("the server sent no response")
	}
	w.quiet.Reset(w.idle)
	res.Body = w.watched(res.Body)
	a, err := c.read(res)
	if a.Model == "" {
		a.Model = req.Model
	}
	return a, err
}

func (c *Client) params(req Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		if m.Role == RoleAssistant {
			p.Messages = append(p.Messages, openai.AssistantMessage(m.Text))
		} else {
			p.Messages = append(p.Messages, openai.UserMessage(m.Text))
		}
	}
	p.Messages = append(p.Messages, openai.UserMessage(req.Prompt))
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	switch {
	case req.MaxTokens <= 0:
	case strings.HasPrefix(c.cfg.BaseURL, "https://api.openai.com/"):
		// Its newer models refuse max_tokens; other servers know only that.
		p.MaxCompletionTokens = openai.Int(int64(req.MaxTokens))
	default:
		p.MaxTokens = openai.Int(int64(req.MaxTokens))
	}
	return p
}

// fail gives an error its meaning. Nothing of the SDK's own error types
// leaves: they hold the request with its key.
func (c *Client) fail(w *watch, err error) error {
	if stop := w.parent.Err(); stop != nil {
		return failure.ConvertFrom(failure.OriginModel, fmt.Errorf("the model was not waited for: %w", stop), op)
	}
	if late := w.late(); late != nil {
		return failure.ConvertFrom(failure.OriginModel, late, op)
	}
	var status *StatusError
	var own *failure.Error
	switch {
	case errors.As(err, &own), errors.As(err, &status):
		return failure.ConvertFrom(failure.OriginModel, err, op)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // its text is the whole address again
	}
	err = c.redact.Error(fmt.Errorf("cannot reach the model at %s: %w", c.cfg.BaseURL, err))
	if failure.Classify(err) == failure.Unexpected {
		// What listens there speaks no HTTP, or the connection broke in a way
		// that has no type.
		return failure.New(failure.Connection, op, err)
	}
	return failure.ConvertFrom(failure.OriginModel, err, op)
}

// maxErrorBytes bounds what is read of a response that is no answer.
const maxErrorBytes = 64 << 10

// shortErrors cuts the bodies of responses that are no answers, which the SDK
// would read whole.
type shortErrors struct{ *http.Transport }

// RoundTrip sends req.
func (t shortErrors) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxErrorBytes), res.Body}
	}
	return res, nil
}

// watch ends a request that takes too long as a whole or falls silent.
type watch struct {
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
	idle        time.Duration
	quiet       *time.Timer
	whole       *time.Timer
}

// TimeoutError is the silence or the slowness of a server.
type TimeoutError struct {
	// What was waited for, and for how long.
	What string
	For  time.Duration
}

// Error says what did not come in time.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the model timed out: %s within %s", e.What, e.For)
}

// Timeout is true.
func (e *TimeoutError) Timeout() bool { return true }

func newWatch(parent context.Context, whole, idle time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{parent: parent, ctx: ctx, cancel: cancel, idle: idle}
	w.quiet = time.AfterFunc(idle, func() { cancel(&TimeoutError{"no byte came", idle}) })
	w.whole = time.AfterFunc(whole, func() { cancel(&TimeoutError{"no whole answer came", whole}) })
	return w
}

func (w *watch) stop() {
	w.quiet.Stop()
	w.whole.Stop()
	w.cancel(nil)
}

// late is the timeout that ended the request, if one did.
func (w *watch) late() error {
	var t *TimeoutError
	if errors.As(context.Cause(w.ctx), &t) {
		return t
	}
	return nil
}

// watched restarts the idle timer at each byte.
func (w *watch) watched(rc io.ReadCloser) io.ReadCloser { return &watchedBody{rc, w} }

type watchedBody struct {
	io.ReadCloser
	w *watch
}

// Read reads and notes that something came.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.w.quiet.Reset(b.w.idle)
	}
	return n, err
}
