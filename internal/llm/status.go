package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/failure"
)

// StatusError is a server's refusal, without the request and its key.
type StatusError struct {
	// Status is the HTTP status of the response; 200 when the refusal came
	// inside an accepted stream.
	Status int
	// Inner is the status of the cause that a gateway wrapped, else 0.
	Inner int
	// Code and Message are what the server said, masked and shortened.
	Code    string
	Message string
	// Hint says what to change, empty where nothing is known.
	Hint string
	// ContextLength is true when the request was too long for the model: it
	// may be shrunk once, and is never repeated as it is.
	ContextLength bool
	// Exhausted is true for a used-up quota.
	Exhausted  bool
	retryAfter time.Duration
	quotaReset time.Duration
}

// Error is one sentence.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP %d", e.Status)
	if e.Inner != 0 && e.Inner != e.Status {
		text += fmt.Sprintf(" (the cause is HTTP %d)", e.Inner)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// HTTPStatus is the status that decides: the inner cause wins.
func (e *StatusError) HTTPStatus() int {
	if e.Inner != 0 {
		return e.Inner
	}
	return e.Status
}

// RetryAfter is the wait that the server asked for, 0 for none.
func (e *StatusError) RetryAfter() time.Duration { return e.retryAfter }

// Quota reports a used-up quota and the time until its renewal, 0 when unknown.
func (e *StatusError) Quota() (bool, time.Duration) { return e.Exhausted, e.quotaReset }

// ContextTooLong reports whether err is the refusal of a request that was too
// long for the model, so that the caller may shrink it once.
func ContextTooLong(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && s.ContextLength
}

// refusal reads a response that is no answer.
func (c *Client) refusal(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil && len(body) == 0 {
		body = []byte("its body could not be read: " + err.Error())
	}
	e := c.statusError(res.StatusCode, body)
	e.waits(res.Header, string(body), time.Now())
	e.Hint = c.hint(e, res.Header.Get("Location"))
	return e
}

// inStream reads an error object that came inside an accepted stream. Where
// nothing says what it is, it counts as the server's own failure.
func (c *Client) inStream(body []byte) error {
	e := c.statusError(http.StatusOK, body)
	if e.Inner == 0 {
		e.Inner = http.StatusInternalServerError
	}
	e.waits(http.Header{}, string(body), time.Now())
	e.Hint = c.hint(e, "")
	return e
}

// said is what servers put into the body of an error, in its several shapes.
type said struct {
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    string          `json:"type"`
	Status  json.RawMessage `json:"status"`
	Code    json.RawMessage `json:"code"`
	Error   json.RawMessage `json:"error"`
}

func (c *Client) statusError(status int, body []byte) *StatusError {
	s := decodeSaid(body)
	code, kind := plain(s.Code), s.Type
	text := s.Message
	if text == "" {
		text = plain(s.Detail)
	}
	if text == "" {
		text = strings.TrimSpace(string(body))
	}
	e := &StatusError{Status: status, Code: code, Message: c.redact.Redact(oneLine(text))}
	if e.Code == "" {
		e.Code = kind
	}
	e.ContextLength = status != http.StatusTooManyRequests && tooLongContext(code+" "+kind+" "+text)
	e.Exhausted = exhausted(code) || exhausted(kind)
	if status < 400 || status >= 500 {
		e.Inner = innerStatus(e.ContextLength, []string{code, kind, plain(s.Status)}, text)
	}
	e.Exhausted = e.Exhausted && e.HTTPStatus() == http.StatusTooManyRequests
	return e
}

// decodeSaid finds the innermost error object of a body; a body that is no
// JSON says nothing.
func decodeSaid(body []byte) said {
	var s said
	for range 3 {
		var next said
		if json.Unmarshal(body, &next) != nil {
			if text := plain(body); text != "" && s.Message == "" {
				s.Message = text
			}
			return s
		}
		s = next
		if len(s.Error) == 0 || string(s.Error) == "null" {
			return s
		}
		body = s.Error
	}
	return s
}

// plain is the text of a JSON string or number, empty for anything else.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// codes are the statuses behind the names that providers use.
var codes = map[string]int{
	"rate_limit_exceeded": 429, "rate_limit_error": 429, "too_many_requests": 429, "resource_exhausted": 429,
	"insufficient_quota": 429, "billing_hard_limit_reached": 429, "quota_exceeded": 429,
	"overloaded_error": 529, "engine_overloaded": 529, "overloaded": 529,
	"timeout": 408, "timeout_error": 408, "request_timeout": 408, "deadline_exceeded": 504,
	"server_error": 500, "internal_error": 500, "internal_server_error": 500, "api_error": 500, "unavailable": 503,
	"invalid_request_error": 400, "bad_request": 400, "badrequesterror": 400, "invalid_argument": 400,
	"context_length_exceeded": 400, "content_filter": 400, "content_policy_violation": 400, "string_above_max_length": 400,
	"authentication_error": 401, "invalid_api_key": 401, "authenticationerror": 401, "unauthenticated": 401,
	"permission_error": 403, "permission_denied": 403, "not_found_error": 404, "model_not_found": 404, "not_found": 404,
}

var (
	wrapped = regexp.MustCompile(`(?i)\b(?:error code|status code|status|http|httperror)[:= ]{1,2}(4\d\d)\b`)
	tooLong = regexp.MustCompile(`(?i)context_length_exceeded|(?:maximum|max|model'?s?) context (?:length|window)|context (?:length|window|size) (?:of|is|exceeded|limit)|exceeds?(?: the)?(?: available| model'?s?)* context|prompt is too long|too many tokens|input (?:is )?too long|maximum prompt length`)
)

func tooLongContext(text string) bool { return tooLong.MatchString(text) }

// innerStatus finds the status of the cause that a gateway wrapped: a name or
// number in the error object, else what the text says. 0 when it says nothing.
func innerStatus(contextLength bool, names []string, text string) int {
	if contextLength {
		return http.StatusBadRequest
	}
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 400 && n <= 599 {
			return n
		}
		if n, ok := codes[strings.ToLower(name)]; ok {
			return n
		}
	}
	if m := wrapped.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err == nil {
			return n
		}
	}
	if strings.Contains(text, "BadRequestError") || strings.Contains(text, "invalid_request_error") {
		return http.StatusBadRequest
	}
	return 0
}

func exhausted(code string) bool {
	switch strings.ToLower(code) {
	case "insufficient_quota", "billing_hard_limit_reached", "quota_exceeded":
		return true
	}
	return false
}

// waits reads how long to wait from the headers, else from the sentence. A
// wait that is longer than a run stays active for is a quota's renewal.
func (e *StatusError) waits(h http.Header, body string, now time.Time) {
	if d, ok := failure.ParseRetryAfter(h.Get("Retry-After"), now); ok {
		e.retryAfter = d
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		if d, ok := failure.ParseRetryAfter(strconv.FormatFloat(ms/1000, 'f', -1, 64), now); ok {
			e.retryAfter = d
		}
	}
	if c, _ := failure.OfStatus(e.HTTPStatus()); c != failure.RateLimit {
		return
	}
	wait, ok := failure.ParseReset(body, now)
	if !ok {
		wait = e.retryAfter
	}
	switch {
	case wait > failure.ParkAfter:
		e.Exhausted, e.quotaReset = true, max(wait, e.retryAfter)
	case e.retryAfter == 0:
		e.retryAfter = wait
	}
}

// hint says what the reader can change.
func (c *Client) hint(e *StatusError, location string) string {
	switch status := e.HTTPStatus(); {
	case e.Exhausted:
		return "the quota is used up: check the plan and billing of the account behind " + EnvAPIKey
	case status == http.StatusUnauthorized && c.cfg.APIKey.Empty():
		return "the server wants a key: set " + EnvAPIKey
	case status == http.StatusUnauthorized:
		return "the server does not accept the key: check " + EnvAPIKey
	case status == http.StatusForbidden:
		return fmt.Sprintf("the key may not use model %s: check %s and %s", c.cfg.Model, EnvAPIKey, EnvModel)
	case status == http.StatusPaymentRequired:
		return "the account has no credit left: check the billing of the account behind " + EnvAPIKey
	case status == http.StatusNotFound:
		return fmt.Sprintf("check %s (%s) and %s (%s, usually ending in /v1)", EnvModel, c.cfg.Model, EnvBaseURL, c.cfg.BaseURL)
	case e.ContextLength:
		return "the request is longer than the model can read"
	case e.Status >= 300 && e.Status < 400:
		return fmt.Sprintf("the server redirects to %s, and the key is sent nowhere else: set %s to that address", hostOf(location), EnvBaseURL)
	}
	return ""
}

func hostOf(location string) string {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		return "another address"
	}
	return u.Scheme + "://" + u.Host
}

// maxMessage is the most of a server's message that an error keeps.
const maxMessage = 300

func oneLine(s string) string {
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " "))
	if len(r) > maxMessage {
		return string(r[:maxMessage]) + "…"
	}
	return string(r)
}
