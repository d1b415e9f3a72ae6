package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"nexuscore.dev/nexus/internal/failure"
)

// chunk is what is read of one event, or of a whole response from a server
// that does not stream. It is decoded strictly: a field of another type than
// the protocol's is an invalid answer, never a silently shorter one.
type chunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index   int    `json:"index"`
		Delta   speech `json:"delta"`
		Message speech `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

type speech struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
}

// invalid is the failure of an answer that is none.
func invalid(format string, args ...any) error {
	e := failure.New(failure.InvalidOutput, op, fmt.Errorf(format, args...))
	e.Origin = failure.OriginModel
	return e
}

// read reads the response of an accepted request.
func (c *Client) read(res *http.Response) (Answer, error) {
	b := building{c: c}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media == "application/json" {
		return b.whole(res.Body)
	}
	return b.stream(ssestream.NewDecoder(res))
}

// building collects an answer.
type building struct {
	c       *Client
	text    strings.Builder
	refusal strings.Builder
	finish  string
	answer  Answer
}

// whole reads a response that is one JSON document.
func (b *building) whole(body io.Reader) (Answer, error) {
	const overhead = 6 // the longest escape of one byte
	limit := int64(b.c.cfg.MaxAnswerBytes)*overhead + 1<<20
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return Answer{}, invalid("the answer is incomplete: %w", err)
	case int64(len(data)) > limit:
		return Answer{}, b.tooLong()
	}
	if err := b.add(data); err != nil {
		return Answer{}, err
	}
	return b.done(nil)
}

// stream reads server-sent events until [DONE], an error or the end.
func (b *building) stream(events ssestream.Decoder) (Answer, error) {
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			return b.done(nil)
		}
		if err := b.add(data); err != nil {
			return Answer{}, err
		}
	}
	return b.done(events.Err())
}

// add takes one event.
func (b *building) add(data []byte) error {
	var k chunk
	if err := json.Unmarshal(data, &k); err != nil {
		return invalid("the server sent something that is no answer: %w", b.c.redact.Error(err))
	}
	if e := bytes.TrimSpace(k.Error); len(e) > 0 && !bytes.Equal(e, []byte("null")) {
		return b.c.inStream(data)
	}
	if k.Model != "" {
		b.answer.Model = k.Model
	}
	if k.Usage != nil {
		b.answer.Usage = Usage{k.Usage.Prompt, k.Usage.Completion}
	}
	for _, choice := range k.Choices {
		if choice.Index != 0 {
			continue
		}
		b.text.WriteString(choice.Delta.Content + choice.Message.Content)
		b.refusal.WriteString(choice.Delta.Refusal + choice.Message.Refusal)
		if choice.Finish != "" {
			b.finish = choice.Finish
		}
	}
	if b.text.Len()+b.refusal.Len() > b.c.cfg.MaxAnswerBytes {
		return b.tooLong()
	}
	return nil
}

func (b *building) tooLong() error {
	return invalid("the answer is longer than %d bytes", b.c.cfg.MaxAnswerBytes)
}

// done judges what has come when the stream is over; err is why it ended.
// A stop reason that came before the end is a whole answer.
func (b *building) done(err error) (Answer, error) {
	if b.finish == "" {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return Answer{}, invalid("the answer is incomplete: the stream ended without a stop reason: %w", b.c.redact.Error(err))
	}
	finish, ok := finishOf(b.finish)
	if !ok {
		return Answer{}, b.unfinished()
	}
	b.answer.Text, b.answer.Finish = b.text.String(), finish
	if finish == FinishRefused || b.refusal.Len() > 0 {
		b.answer.Text, b.answer.Finish = "", FinishRefused
		b.answer.Reason = b.c.redact.Redact(strings.TrimSpace(b.refusal.String()))
		if b.answer.Reason == "" {
			b.answer.Reason = "the provider stopped the answer: " + b.finish
		}
	}
	return b.answer, nil
}

// unfinished is the failure behind a stop reason that is none.
func (b *building) unfinished() error {
	switch b.finish {
	case "tool_calls", "function_call":
		return invalid("the model called a tool, and none was offered")
	case "error", "network_error", "insufficient_system_resource", "engine_overloaded", "abort", "cancelled":
		e := failure.New(failure.Connection, op, errors.New("the provider gave up in the middle of the answer: "+b.finish))
		e.Origin = failure.OriginModel
		return e
	default:
		return invalid("the stop reason %q is not known", b.c.redact.Redact(b.finish))
	}
}
