package failure

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Adapters implement these beside an SDK, so that this package imports none.
type (
	// HTTPStatuser is an error that knows the HTTP status it stands for.
	HTTPStatuser interface{ HTTPStatus() int }
	// RetryAfterer is an error that knows how long to wait.
	RetryAfterer interface{ RetryAfter() time.Duration }
	// QuotaExhausted is an error that knows of a used-up quota and the time
	// until it is renewed (0: unknown).
	QuotaExhausted interface {
		Quota() (exhausted bool, reset time.Duration)
	}
)

// maxDepth bounds the chain that is walked, so that a cycle ends.
const maxDepth = 32

// signals are the structured facts of a chain, each from its innermost error.
type signals struct {
	own       *Error
	status    int
	retry     time.Duration
	exhausted bool
	reset     time.Duration
	typed     Category
	canceled  bool
}

func gather(err error) (s signals) {
	defer func() {
		// A broken Unwrap leaves what was seen so far.
		_ = recover()
	}()
	s.walk(err, 0)
	return s
}

// walk sees the causes before the error itself, so the first fact is the
// innermost one.
func (s *signals) walk(err error, depth int) {
	if err == nil || depth > maxDepth {
		return
	}
	switch e := err.(type) { //nolint:errorlint // the walk looks at one link at a time
	case interface{ Unwrap() error }:
		s.walk(e.Unwrap(), depth+1)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			s.walk(inner, depth+1)
		}
	}
	s.see(err)
}

func (s *signals) see(err error) {
	if e, ok := err.(*Error); ok { //nolint:errorlint // see walk
		if s.own == nil && e != nil && e.Category != "" {
			s.own = e
		}
		return
	}
	if err == context.Canceled { //nolint:errorlint // see walk
		s.canceled = true
	}
	if s.status == 0 {
		if e, ok := err.(HTTPStatuser); ok {
			s.status = e.HTTPStatus()
		}
	}
	if s.retry == 0 {
		if e, ok := err.(RetryAfterer); ok {
			s.retry = e.RetryAfter()
		}
	}
	if !s.exhausted {
		if e, ok := err.(QuotaExhausted); ok {
			s.exhausted, s.reset = e.Quota()
		}
	}
	if s.typed == "" {
		s.typed = ofType(err)
	}
}

// fill copies what was seen into e.
func (s *signals) fill(e *Error) {
	e.Status, e.RetryAfter, e.Exhausted, e.QuotaReset = s.status, s.retry, s.exhausted, s.reset
	if o := s.own; o != nil {
		e.Status, e.RetryAfter, e.Exhausted, e.QuotaReset = o.Status, o.RetryAfter, o.Exhausted, o.QuotaReset
		e.Reason = o.Reason
		if o.Origin != "" {
			e.Origin = o.Origin
		}
	}
}

// causes are the errors that err wraps.
func causes(err error) []error {
	switch e := err.(type) { //nolint:errorlint // one link at a time
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	default:
		return nil
	}
}

// ofType answers the category of one link by its Go type, empty when the type
// says nothing.
func ofType(err error) Category {
	switch e := err.(type) { //nolint:errorlint // one link at a time
	case syscall.Errno:
		return ofErrno(e)
	case *json.SyntaxError, *json.UnmarshalTypeError:
		return InvalidOutput
	case *exec.ExitError:
		return Sandbox
	case *tls.CertificateVerificationError, *exec.Error, *fs.PathError, *os.LinkError:
		return Unexpected
	case *net.DNSError:
		if e.IsTimeout {
			return Timeout
		}
		return Connection
	case *net.OpError:
		if e.Timeout() {
			return Timeout
		}
		return Connection
	case interface{ Timeout() bool }:
		if e.Timeout() {
			return Timeout
		}
		return ""
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF || err == net.ErrClosed { //nolint:errorlint // one link at a time
		return Connection
	}
	return ""
}

func ofErrno(e syscall.Errno) Category {
	switch e {
	case syscall.ETIMEDOUT:
		return Timeout
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENOTCONN,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN:
		return Connection
	default:
		return ""
	}
}
