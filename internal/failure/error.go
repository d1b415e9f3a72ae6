package failure

import (
	"errors"
	"fmt"
	"time"
)

// Error is a failure with a meaning. The innermost Error of a chain is the
// authority on its category: whoever made it saw the cause. errors.Is and
// errors.As look through it.
type Error struct {
	Category Category
	// Op is the step that failed, as a path: "llm: ask".
	Op string
	// Err is the cause; its message is kept.
	Err error
	// Status is the HTTP status of the cause, 0 where there was none.
	Status int
	// RetryAfter is the wait that the other side asked for, 0 for none.
	RetryAfter time.Duration
	// Exhausted is true when a quota is used up, not merely a rate exceeded;
	// QuotaReset is the time until it is renewed, 0 when unknown.
	Exhausted  bool
	QuotaReset time.Duration
	// Origin is the part that raised it.
	Origin Origin
	// Reason says which signal decided the category.
	Reason string
}

// New makes an Error of a category that the caller knows.
func New(c Category, op string, err error) *Error {
	return &Error{Category: c, Op: op, Err: err, Reason: "stated by " + op}
}

// Error is the operation and the cause's own message.
func (e *Error) Error() string {
	text := string(e.Category)
	if e.Err != nil {
		text = e.Err.Error()
	}
	if e.Op == "" {
		return text
	}
	return e.Op + ": " + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failure is what Dispose needs to know of e: again counts the redeliveries of
// this category so far for the ask n of a run.
func (e *Error) Failure(run string, n, again int) Failure {
	return Failure{
		Category: e.Category, Again: again, RetryAfter: e.RetryAfter,
		Exhausted: e.Exhausted, QuotaReset: e.QuotaReset,
		Model: e.Origin == OriginModel, Status: e.Status, Run: run, N: n,
	}
}

// Convert wraps any error as *Error and keeps its message; nil stays nil. An
// *Error is returned as it is, so Convert is idempotent; an error that wraps
// one takes over what that one knows. Assign the result to a variable of type
// error only when it is not nil.
func Convert(err error, op string) *Error { return ConvertFrom("", err, op) }

// ConvertFrom is Convert for an error whose origin is known.
func ConvertFrom(origin Origin, err error, op string) *Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok && e != nil { //nolint:errorlint // only the outermost one is returned as it is
		return e
	}
	s := gather(err)
	why := explain(err, s, origin)
	e := &Error{Category: why.Category, Op: op, Err: readable(err), Origin: origin, Reason: why.Reason}
	s.fill(e)
	return e
}

// readable is err, or a stand-in for an error whose text cannot be read, such
// as a nil pointer of an error type.
func readable(err error) (safe error) {
	defer func() {
		if recover() != nil {
			safe = fmt.Errorf("an unreadable error of type %T", err)
		}
	}()
	_ = err.Error()
	return err
}

// Of answers the innermost *Error of a chain.
func Of(err error) (*Error, bool) {
	s := gather(err)
	return s.own, s.own != nil
}

// Is reports whether err is of category c.
func Is(err error, c Category) bool { return err != nil && Classify(err) == c }

// Stopped reports whether err is nothing but a stop: a cancelled context. It
// is of category Unexpected and no failure.
func Stopped(err error) bool {
	s := gather(err)
	return s.canceled && (s.own == nil || s.own.Category == Unexpected)
}

var errNil = errors.New("no error")
