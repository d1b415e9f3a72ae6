package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// problem is an error that the caller is told: application/problem+json of
// RFC 9457, with one sentence that says what is wrong.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// cause is for the log alone.
	cause error
}

// Error implements error.
func (p *problem) Error() string { return p.Detail }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

// problems is where the types of problems are named; the last element is one
// of the names below.
const problems = "https://nexuscore.dev/problems/"

// The names of problems.
const (
	nameMalformed    = "malformed"
	nameUnauthorized = "unauthorized"
	nameOutside      = "outside-roots"
	nameForeign      = "foreign-request"
	nameNotFound     = "not-found"
	nameMethod       = "method-not-allowed"
	nameReused       = "key-reused"
	nameEnded        = "run-ended"
	nameTooLarge     = "too-large"
	nameMedia        = "media-type"
	nameRefused      = "refused"
	nameDamaged      = "damaged-log"
	nameInternal     = "internal"
	nameBus          = "bus"
	nameFull         = "full"
	nameBusy         = "busy"
)

// maxDetail is the most bytes of a sentence that quotes input.
const maxDetail = 500

func refuse(status int, name, format string, args ...any) *problem {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
	}
	return &problem{Type: problems + name, Title: http.StatusText(status), Status: status, Detail: detail}
}

// busError is the answer when a call to the bus failed.
func busError(cause error) *problem {
	p := refuse(http.StatusServiceUnavailable, nameBus, "the bus does not answer; try again")
	p.cause = cause
	return p
}

func internal(cause error) *problem {
	p := refuse(http.StatusInternalServerError, nameInternal, "something went wrong here; the log of the gateway says what")
	p.cause = cause
	return p
}

func (p *problem) write(w http.ResponseWriter) error {
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="nexus"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	}
	return send(w, "application/problem+json", p.Status, p)
}

// send answers with v as JSON. Its error means that the caller is gone.
func send(w http.ResponseWriter, media string, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}

func sendJSON(w http.ResponseWriter, status int, v any) error {
	return send(w, "application/json", status, v)
}

// isBus reports whether err is a busError.
func isBus(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Type == problems+nameBus
}

// isDamaged reports whether err says that a log can't be read.
func isDamaged(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Type == problems+nameDamaged
}
