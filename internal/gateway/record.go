package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
)

// recorder remembers what was answered, for the access log.
type recorder struct {
	http.ResponseWriter
	// status is 0 until the answer begins.
	status int
	bytes  int64
	cause  error
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// logged writes a line for every request: no query and no header, for those
// may hold secrets.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, began := &recorder{ResponseWriter: w}, time.Now()
		defer func() {
			level := zerolog.InfoLevel
			if rec.status >= http.StatusInternalServerError {
				level = zerolog.WarnLevel
			}
			s.cfg.Log.WithLevel(level).Func(rec.why).Str("method", r.Method).Str("path", r.URL.Path).Int("status", rec.status).
				Int64("bytes", rec.bytes).Dur("ms", time.Since(began)).Str("peer", r.RemoteAddr).Msg("request")
		}()
		next.ServeHTTP(rec, r)
	})
}

// why adds the sentence of an error with what lies behind it.
func (r *recorder) why(line *zerolog.Event) {
	if r.cause == nil {
		return
	}
	text := r.cause.Error()
	var p *problem
	if errors.As(r.cause, &p) && p.cause != nil {
		text += ": " + p.cause.Error()
	}
	line.Str("error", text)
}

// recovered answers 500 when a handler panics; the stack goes to the log.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			s.cfg.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str("path", r.URL.Path).Msg("panic")
			if rec, ok := w.(*recorder); ok && rec.status != 0 {
				panic(http.ErrAbortHandler) // a cut connection, not a whole answer
			}
			s.fail(w, internal(fmt.Errorf("panic: %v", v)))
		}()
		next.ServeHTTP(w, r)
	})
}
