package gateway

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPanicIsA500WithoutAStack(t *testing.T) {
	t.Parallel()
	b := setup(t, options{over: func(b Bus) Bus { return panicking{b} }})
	got := b.call(t, "GET", "/v1/runs", "")
	require.NotContains(t, got.problem(t, http.StatusInternalServerError), "secret")
	require.NotContains(t, string(got.body), "goroutine")
	require.Contains(t, b.log.String(), "the secret of a panic")
	require.Contains(t, b.log.String(), "list.go")
	require.Equal(t, http.StatusOK, b.call(t, "GET", "/healthz", "").status)
}

// panicking panics when the runs are listed.
type panicking struct{ Bus }

func (panicking) Runs(context.Context) (map[string]bool, error) { panic("the secret of a panic") }

func TestWhatIsNotThereAndWhatIsNotPossible(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	for _, path := range []string{"/", "/v1", "/v1/tasks/x", "/v1/runs/a/b", "/metrics", "/favicon.ico"} {
		require.Contains(t, b.call(t, "GET", path, "").problem(t, http.StatusNotFound), "openapi.yaml")
	}
	for path, allow := range map[string]string{"/v1/tasks": "POST", "/v1/runs": "GET, HEAD", "/v1/runs/a/cancel": "POST", "/healthz": "GET, HEAD"} {
		got := b.call(t, "DELETE", path, "")
		got.problem(t, http.StatusMethodNotAllowed)
		require.Equal(t, allow, got.header.Get("Allow"))
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	got := b.call(t, "GET", "/schemas/openapi.yaml", "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "application/yaml", got.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(string(got.body), "openapi: 3.1"))
	got = b.call(t, "GET", "/schemas/heal.json", "")
	require.Equal(t, "application/schema+json", got.header.Get("Content-Type"))
	for _, name := range []string{"none.json", "..", "schemas.go", "%2e%2e%2fgo.mod"} {
		got = b.call(t, "GET", "/schemas/"+name, "")
		require.Equal(t, http.StatusNotFound, got.status, name)
	}
}

func TestTheAccessLogHoldsNoQuery(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	got := b.call(t, "GET", "/v1/runs?limit=1&token=hidden-in-the-query", "", "Authorization", "Bearer hidden-in-the-header")
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
	require.NoError(t, b.stop())
	require.NotContains(t, b.log.String(), "hidden")
	require.Contains(t, b.log.String(), `"method":"GET","path":"/v1/runs","status":200`)
}

func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	const short = 150 * time.Millisecond
	b := setup(t, options{tweak: func(s *Server) { s.times.header, s.times.read, s.times.idle = short, 2*short, short }})
	b.raw(t, "GET /healthz HT") // an end, not a time-out of the test
	line := b.raw(t, "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
	require.Contains(t, []string{"", "HTTP/1.1 400 Bad Request"}, line)
	large := b.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", maxHeader+8<<10)+"\r\n\r\n")
	require.Equal(t, "HTTP/1.1 431 Request Header Fields Too Large", large)
}

// slow lets a test hold a request.
type slow struct {
	Bus
	entered, leave chan struct{}
}

func (s slow) Runs(ctx context.Context) (map[string]bool, error) {
	close(s.entered)
	select {
	case <-s.leave:
	case <-ctx.Done():
	}
	return s.Bus.Runs(ctx)
}

func TestAStopLetsARequestFinish(t *testing.T) {
	t.Parallel()
	hold := slow{entered: make(chan struct{}), leave: make(chan struct{})}
	b := setup(t, options{over: func(b Bus) Bus { hold.Bus = b; return hold }})
	stopped := make(chan error, 1)
	go func() {
		<-hold.entered
		go refused(t.Context(), b.url, hold.leave)
		stopped <- b.stop()
	}()
	require.JSONEq(t, `{"runs":[],"total":0}`, string(b.call(t, "GET", "/v1/runs", "").body))
	require.NoError(t, <-stopped)
}

// refused closes then as soon as nobody listens at url any more.
func refused(ctx context.Context, url string, then chan<- struct{}) {
	defer close(then)
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil || conn.Close() != nil {
			return
		}
	}
}
