package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heal is the body of a task for the folder.
func heal(t *testing.T, dir string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"kind": "heal", "dir": dir})
	require.NoError(t, err)
	return string(body)
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// problem is the sentence of an error of that status.
func (r reply) problem(t *testing.T, status int) string {
	t.Helper()
	require.Equal(t, status, r.status, string(r.body))
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"), string(r.body))
	var p problem
	require.NoError(t, json.Unmarshal(r.body, &p))
	require.Equal(t, r.status, p.Status)
	require.NotContains(t, p.Detail, "\n")
	return p.Detail
}

// into decodes the answer, whose status must be the expected one.
func (r reply) into(t *testing.T, status int, dst any) {
	t.Helper()
	require.Equal(t, status, r.status, string(r.body))
	require.NoError(t, json.Unmarshal(r.body, dst))
}

// open makes a request; headers are names and values in turn.
func (b *bench) open(ctx context.Context, t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; name {
		case "Host":
			req.Host = value
		case "Content-Type":
			req.Header.Set(name, value)
		default:
			req.Header.Add(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	return res
}

// call makes a request and reads the answer, which is held against
// openapi.yaml.
func (b *bench) call(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res := b.open(ctx, t, method, path, body, headers...)
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	got := reply{res.StatusCode, res.Header, text}
	described(t, method, path, got)
	return got
}

// submit posts a task and returns its run.
func (b *bench) submit(t *testing.T, dir string, headers ...string) accepted {
	t.Helper()
	var got accepted
	b.call(t, "POST", "/v1/tasks", heal(t, dir), headers...).into(t, http.StatusAccepted, &got)
	return got
}

// message is one server-sent event; a comment has the event ":".
type message struct{ id, event, data string }

// messages reads an event stream to its end, or until done says so.
func messages(t *testing.T, body io.Reader, done func(message) bool) []message {
	t.Helper()
	var all []message
	var m message
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			require.Empty(t, line)
			return all
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n":
			all = append(all, m)
			if done != nil && done(m) {
				return all
			}
			m = message{}
		case name == "id":
			m.id = value
		case name == "event":
			m.event = value
		case name == "data":
			m.data = value
		default:
			m.event = ":"
		}
	}
}

// raw sends bytes as they are and returns the first line of the answer.
func (b *bench) raw(t *testing.T, text string) string {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = conn.Write([]byte(text))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	return strings.TrimSpace(line)
}
