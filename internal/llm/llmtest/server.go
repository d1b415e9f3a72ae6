package llmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Server is a Handler behind a socket of the loopback.
type Server struct {
	*Handler
	// URL is the base URL for clients; it ends in /v1.
	URL string
}

// New starts a server that answers with steps and ends with the test.
func New(tb testing.TB, steps ...Step) *Server {
	tb.Helper()
	h := NewHandler(steps...)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // aborted streams are meant
	s.Start()
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &Server{Handler: h, URL: s.URL + "/v1"}
}

// Script is New for a script in text form; a mistake in it ends the test.
func Script(tb testing.TB, script string) *Server {
	tb.Helper()
	steps, err := Parse(script)
	if err != nil {
		tb.Fatal(err)
	}
	return New(tb, steps...)
}

// Env is the environment under which the product uses s as its model.
func (s *Server) Env() map[string]string {
	return map[string]string{"NEXUS_MODEL_BASE_URL": s.URL, "NEXUS_MODEL": "scripted"}
}

// Serve answers a script on addr until ctx ends, for a process of its own. It
// writes the base URL as the first line to out and one line for each request.
func Serve(ctx context.Context, addr, script string, out io.Writer) error {
	steps, err := Parse(script)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	h := NewHandler(steps...)
	say := &lines{w: out}
	srv := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { say.printf("%s %s (request %d)\n", r.Method, r.URL.Path, h.Count()) }()
			h.ServeHTTP(w, r)
		}),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // Serve below reports how it ended
	defer stop()
	say.printf("http://%s/v1\n", l.Addr())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// lines writes whole lines from several requests at once.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format, args...)
}
