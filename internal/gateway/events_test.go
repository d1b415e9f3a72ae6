package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

func TestALogIsStreamedUntilItsRunIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, options{held: true})
	acc := b.submit(t, b.root)
	res := b.open(t.Context(), t, "GET", acc.Links.Events, "")
	defer func() { require.NoError(t, res.Body.Close()) }()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	first := messages(t, res.Body, func(m message) bool { return names(t, m) == "debugger" })
	require.Equal(t, "opened", names(t, first[0]))
	close(b.gate)
	rest := messages(t, res.Body, nil)
	all := append(first, rest...)
	for i, m := range all[:len(all)-1] {
		require.Equal(t, "event", m.event)
		require.Equal(t, fmt.Sprint(i+1), m.id)
		valid(t, "Event", []byte(m.data))
	}
	last := all[len(all)-1]
	require.Equal(t, "result", last.event)
	valid(t, "Run", []byte(last.data))
	var v view
	require.NoError(t, json.Unmarshal([]byte(last.data), &v))
	require.Equal(t, run.Approved, v.State)
	require.Equal(t, diff, v.Diff)
	require.Equal(t, "closed", names(t, all[len(all)-2]))

	again := b.call(t, "GET", acc.Links.Events, "", "Last-Event-ID", all[len(all)-4].id)
	require.Equal(t, http.StatusOK, again.status)
	require.Contains(t, string(again.body), "id: "+all[len(all)-3].id+"\n")
	require.NotContains(t, string(again.body), "id: "+all[len(all)-4].id+"\n")
	require.Equal(t, http.StatusNoContent, b.call(t, "GET", acc.Links.Events, "", "Last-Event-ID", last.id).status)
	b.call(t, "GET", acc.Links.Events, "", "Last-Event-ID", "x").problem(t, http.StatusBadRequest)
	require.Equal(t, http.StatusOK, b.call(t, "HEAD", acc.Links.Self, "").status)
}

// names is the name of a message's event in the log, "" for a comment.
func names(t *testing.T, m message) string {
	t.Helper()
	if m.event != "event" {
		return ""
	}
	var e entry
	require.NoError(t, json.Unmarshal([]byte(m.data), &e))
	return e.Event
}

func TestAQuietStreamOutlivesTheDeadlinesOfShortAnswers(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	b := setup(t, options{held: true, tweak: func(s *Server) {
		s.times.read, s.times.write, s.times.header, s.times.beat = short, short, short, short/4
	}})
	acc := b.submit(t, b.root)
	res := b.open(t.Context(), t, "GET", acc.Links.Events, "")
	defer func() { require.NoError(t, res.Body.Close()) }()
	began, beats := time.Now(), 0
	messages(t, res.Body, func(m message) bool {
		if m.event == ":" {
			beats++
		}
		return beats > 0 && time.Since(began) > 4*short
	})
	require.GreaterOrEqual(t, time.Since(began), 4*short)
	close(b.gate)
	rest := messages(t, res.Body, nil)
	require.Equal(t, "result", rest[len(rest)-1].event)
}

func TestStreamsAreLimitedAndEndWithTheirClient(t *testing.T) {
	t.Parallel()
	b := setup(t, options{held: true, tweak: func(s *Server) { s.streams = make(chan struct{}, 1) }})
	acc := b.submit(t, b.root)
	ctx, leave := context.WithCancel(t.Context())
	res := b.open(ctx, t, "GET", acc.Links.Events, "")
	messages(t, res.Body, func(message) bool { return true })
	b.call(t, "GET", acc.Links.Events, "").problem(t, http.StatusServiceUnavailable)
	leave()
	require.NoError(t, res.Body.Close())
	require.Eventually(t, func() bool {
		res := b.open(t.Context(), t, "HEAD", acc.Links.Events, "")
		return res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, 10*time.Second, 20*time.Millisecond)
}

func TestAStopEndsStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, options{held: true})
	acc := b.submit(t, b.root)
	res := b.open(t.Context(), t, "GET", acc.Links.Events, "")
	defer func() { require.NoError(t, res.Body.Close()) }()
	messages(t, res.Body, func(message) bool { return true })
	began := time.Now()
	require.NoError(t, b.stop())
	require.Less(t, time.Since(began), defaultTimes().grace)
	messages(t, res.Body, nil) // a clean end, no cut connection
}

func TestAStreamEndsWhenTheBusIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t, options{held: true})
	acc := b.submit(t, b.root)
	res := b.open(t.Context(), t, "GET", acc.Links.Events, "")
	defer func() { require.NoError(t, res.Body.Close()) }()
	messages(t, res.Body, func(message) bool { return true })
	b.kill()
	b.link.Close()
	rest := messages(t, res.Body, nil)
	for _, m := range rest {
		require.NotEqual(t, "result", m.event)
	}
}
