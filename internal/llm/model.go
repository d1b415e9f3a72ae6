package llm

import (
	"context"
	"strings"
)

// Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Ask sends one request and returns the whole answer. An empty text is
	// an answer, not an error. Every error is a *failure.Error.
	Ask(ctx context.Context, req Request) (Answer, error)
}

// Func is a Model made of a function.
type Func func(ctx context.Context, req Request) (Answer, error)

// Ask calls f.
func (f Func) Ask(ctx context.Context, req Request) (Answer, error) { return f(ctx, req) }

// Roles of a Message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Message is one earlier turn of a conversation.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Request is one question. Its JSON form is canonical: equal requests have
// equal bytes.
type Request struct {
	// Model overrides the model of the configuration when not empty.
	Model  string `json:"model,omitempty"`
	System string `json:"system,omitempty"`
	// Messages are earlier turns, oldest first; Prompt is the last one.
	Messages []Message `json:"messages,omitempty"`
	Prompt   string    `json:"prompt"`
	// MaxTokens bounds the answer; 0 leaves it to the server.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Temperature is sent only when set: some models refuse it.
	Temperature *float64 `json:"temperature,omitempty"`
}

// Stop reasons of an Answer.
const (
	// FinishStop: the model was done.
	FinishStop = "stop"
	// FinishLength: the answer was cut at a token limit and must never be
	// applied, whatever the text looks like.
	FinishLength = "length"
	// FinishRefused: a filter or the model itself refused. The text is
	// empty and Answer.Reason says why.
	FinishRefused = "refused"
)

// Usage counts tokens as the server reported them; zero when it did not.
type Usage struct {
	Prompt     int `json:"prompt"`
	Completion int `json:"completion"`
}

// Answer is what a model said.
type Answer struct {
	Text string `json:"text"`
	// Finish is FinishStop, FinishLength or FinishRefused.
	Finish string `json:"finish"`
	// Reason explains FinishRefused.
	Reason string `json:"reason,omitempty"`
	Usage  Usage  `json:"usage"`
	// Model is the model that answered, as the server names it.
	Model string `json:"model,omitempty"`
}

// finishOf translates a provider's stop reason; ok is false for one that no
// provider is known to use for a finished answer.
func finishOf(reason string) (finish string, ok bool) {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed":
		return FinishStop, true
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return FinishLength, true
	case "content_filter", "sensitive", "safety", "refusal", "recitation", "prohibited_content", "blocklist":
		return FinishRefused, true
	default:
		return "", false
	}
}
