package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Request is one request as the server saw it.
type Request struct {
	Path   string
	Header http.Header
	Body   string
	// Model and Messages are what the body says.
	Model    string
	Messages []Message
	// Stream is true when a stream was asked for.
	Stream bool
}

// Message is one message of a request.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Last is the text of the last message, empty when there is none.
func (r Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Content
}

// Handler answers chat completions from a script. It is safe for concurrent
// use: each request takes one step.
type Handler struct {
	mu       sync.Mutex
	steps    []Step
	requests []Request
	excess   int
	arrived  chan struct{}
}

// NewHandler answers with steps, in order.
func NewHandler(steps ...Step) *Handler {
	return &Handler{steps: append([]Step(nil), steps...), arrived: make(chan struct{}, 1)}
}

// Add appends steps to the script.
func (h *Handler) Add(steps ...Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, steps...)
}

// Requests are the requests so far, in the order of their arrival.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.requests...)
}

// Count is the number of requests so far.
func (h *Handler) Count() int { return len(h.Requests()) }

// Excess is the number of requests for which the script had no step.
func (h *Handler) Excess() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.excess
}

// Left is the number of steps that were not used up; a step that answers for
// ever does not count.
func (h *Handler) Left() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.steps {
		if s.Times != Forever {
			n++
		}
	}
	return n
}

// Arrived is signalled after a request was taken in, so that a test can wait
// for it instead of sleeping. Signals are not counted: several requests
// between two receives are one signal.
func (h *Handler) Arrived() <-chan struct{} { return h.arrived }

// ServeHTTP answers one request with the next step.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body)}
	var said struct {
		Model    string    `json:"model"`
		Messages []Message `json:"messages"`
		Stream   bool      `json:"stream"`
	}
	if err := json.Unmarshal(body, &said); err == nil {
		req.Model, req.Messages, req.Stream = said.Model, said.Messages, said.Stream
	}
	step, ok := h.take(req)
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	switch {
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions"):
		fail(w, http.StatusNotFound, "no such address: "+r.Method+" "+r.URL.Path)
	case !ok:
		fail(w, http.StatusInternalServerError, "the script is over")
	default:
		play(w, r, step, req)
	}
}

func (h *Handler) take(req Request) (Step, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, req)
	i := h.find(req.Body)
	if i < 0 {
		h.excess++
		return Step{}, false
	}
	s := h.steps[i]
	switch {
	case s.Times == Forever:
	case s.Times > 1:
		h.steps[i].Times--
	default:
		h.steps = append(h.steps[:i:i], h.steps[i+1:]...)
	}
	return s, true
}

// find prefers a step with a condition that holds over the next one without.
func (h *Handler) find(body string) int {
	plain := -1
	for i, s := range h.steps {
		if s.If == "" && plain < 0 {
			plain = i
		}
		if s.If != "" && (strings.Contains(body, s.If) || strings.Contains(body, inJSON(s.If))) {
			return i
		}
	}
	return plain
}

// inJSON is how s is spelled inside a JSON string.
func inJSON(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(data[1 : len(data)-1])
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	write(w, fmt.Sprintf(`{"error":{"message":%q,"type":"test"}}`, message))
}

// write sends text; a client that has left is no failure of the script.
func write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		panic(http.ErrAbortHandler)
	}
}
