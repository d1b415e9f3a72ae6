package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// play answers one request with one step.
func play(w http.ResponseWriter, r *http.Request, s Step, req Request) {
	if s.Kind == Echo {
		s.Text = req.Last()
	}
	switch s.Kind {
	case Status:
		refuse(w, s)
	case JSON:
		document(w, s, req)
	case Raw:
		open(w)
		write(w, s.Text)
	default:
		stream(w, r, s, req)
	}
}

func refuse(w http.ResponseWriter, s Step) {
	for name, values := range s.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if w.Header().Get("Content-Type") == "" && json.Valid([]byte(s.Text)) {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(s.Status)
	write(w, s.Text)
}

func open(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush(w)
}

func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// stream sends the text in chunks, as far as the step goes.
func stream(w http.ResponseWriter, r *http.Request, s Step, req Request) {
	broken := s.Kind == Cut || s.Kind == Hang || s.Kind == Error
	if broken && s.After == AfterNone {
		breakOff(w, r, s)
		return
	}
	open(w)
	event(w, delta(req.Model, map[string]any{"role": "assistant", "content": ""}, ""))
	parts := split(s)
	if s.Kind == Error {
		parts = nil
	}
	for i, part := range parts {
		if broken && s.After != AfterAll && i >= s.After {
			break
		}
		event(w, delta(req.Model, map[string]any{"content": part}, ""))
	}
	if broken {
		breakOff(w, r, s)
		return
	}
	if s.Finish != "" {
		event(w, delta(req.Model, map[string]any{}, s.Finish))
	}
	event(w, usage(req, s.Text))
	if !s.NoDone {
		write(w, "data: [DONE]\n\n")
	}
}

// breakOff ends a stream the way the step says.
func breakOff(w http.ResponseWriter, r *http.Request, s Step) {
	if s.Kind == Error {
		if s.After == AfterNone {
			open(w)
		}
		body := s.Text
		if !json.Valid([]byte(body)) {
			body = encode(map[string]any{"error": map[string]any{"message": s.Text, "type": "server_error"}})
		}
		write(w, "data: "+body+"\n\n")
		return
	}
	if s.Kind == Hang {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler) // closes the connection without an end
}

// split cuts the text at byte positions that keep characters whole.
func split(s Step) []string {
	const size = 16
	n := size
	if s.Chunks > 0 {
		n = max(1, (len(s.Text)+s.Chunks-1)/s.Chunks)
	}
	var parts []string
	var part strings.Builder
	for _, c := range s.Text {
		part.WriteRune(c)
		if part.Len() >= n {
			parts = append(parts, part.String())
			part.Reset()
		}
	}
	if part.Len() > 0 {
		parts = append(parts, part.String())
	}
	return parts
}

func event(w http.ResponseWriter, v any) {
	write(w, "data: "+encode(v)+"\n\n")
	flush(w)
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	return string(data)
}

func envelope(model, object string) map[string]any {
	return map[string]any{"id": "chatcmpl-test", "object": object, "created": 1, "model": model}
}

func delta(model string, d map[string]any, finish string) map[string]any {
	var reason any
	if finish != "" {
		reason = finish
	}
	e := envelope(model, "chat.completion.chunk")
	e["choices"] = []any{map[string]any{"index": 0, "delta": d, "finish_reason": reason}}
	return e
}

// usage counts four bytes as a token, as a rough server does.
func usage(req Request, text string) map[string]any {
	e := envelope(req.Model, "chat.completion.chunk")
	e["choices"] = []any{}
	e["usage"] = tokens(req, text)
	return e
}

func tokens(req Request, text string) map[string]any {
	const bytesPerToken = 4
	prompt := 0
	for _, m := range req.Messages {
		prompt += len(m.Content)
	}
	p, c := prompt/bytesPerToken, len(text)/bytesPerToken
	return map[string]any{"prompt_tokens": p, "completion_tokens": c, "total_tokens": p + c}
}

func document(w http.ResponseWriter, s Step, req Request) {
	e := envelope(req.Model, "chat.completion")
	e["choices"] = []any{map[string]any{
		"index": 0, "message": map[string]any{"role": "assistant", "content": s.Text}, "finish_reason": s.Finish,
	}}
	e["usage"] = tokens(req, s.Text)
	w.Header().Set("Content-Type", "application/json")
	write(w, encode(e))
}
