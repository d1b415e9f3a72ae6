package gateway

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestATaskBecomesARun(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	dir := b.project(t, "calc")
	body := heal(t, dir)
	got := b.call(t, "POST", "/v1/tasks", body, "Idempotency-Key", "one")
	var acc accepted
	got.into(t, http.StatusAccepted, &acc)
	require.Equal(t, wire.RunID("local", "key", "one"), acc.Run)
	require.Equal(t, acc.Links.Self, got.header.Get("Location"))
	require.NotEqual(t, stateQueued, acc.State)
	b.finish(t, acc.Run)

	var v view
	b.call(t, "GET", acc.Links.Self, "").into(t, http.StatusOK, &v)
	require.Equal(t, run.Approved, v.State)
	require.True(t, v.Terminal)
	require.True(t, v.Closed)
	require.Equal(t, dir, v.Dir)
	require.Equal(t, []string{"calc.py"}, v.Files)
	require.Equal(t, diff, v.Diff)
	require.Equal(t, []string{"t0", "t1"}, []string{v.BaseTree, v.FinalTree})
	require.Len(t, v.Tries, 1)
	require.Equal(t, run.StatusPytestPass, v.Tries[0].Status)
	require.False(t, v.Opened.IsZero())
	require.NotNil(t, v.Settled)

	b.call(t, "POST", "/v1/tasks", body, "Idempotency-Key", "one").into(t, http.StatusAccepted, &acc)
	require.Equal(t, run.Approved, acc.State)
	require.Equal(t, v.Run, acc.Run)
	runs, err := b.link.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

func TestWithoutAKeyEveryTaskIsARunOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	dir := b.project(t, "calc")
	first, second := b.submit(t, dir), b.submit(t, dir)
	require.NotEqual(t, first.Run, second.Run)
}

func TestAKeyStandsForOneTask(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	b.submit(t, b.project(t, "a"), "Idempotency-Key", "k")
	got := b.call(t, "POST", "/v1/tasks", heal(t, b.project(t, "b")), "Idempotency-Key", "k")
	require.Contains(t, got.problem(t, http.StatusConflict), "another task")
}

func TestTheSameCloudEventIsTheSameRun(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	dir := b.project(t, "calc")
	body := event(`"data":{"dir":"` + dir + `"}`)
	var first, second, third accepted
	b.call(t, "POST", "/v1/tasks", body, "Content-Type", mediaStructured).into(t, http.StatusAccepted, &first)
	b.call(t, "POST", "/v1/tasks", body, "Content-Type", mediaStructured).into(t, http.StatusAccepted, &second)
	require.Equal(t, first.Run, second.Run)
	b.call(t, "POST", "/v1/tasks", heal(t, dir), "Ce-Id", "8", "Ce-Source", "/ci").into(t, http.StatusAccepted, &third)
	require.NotEqual(t, first.Run, third.Run)
}

func TestWhatTheRulesRefuseIsRefusedHere(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	dir := b.project(t, "calc")
	body := `{"kind":"heal","dir":"` + dir + `","test":"rm -rf"}`
	for range 2 { // a refused key stays refused
		got := b.call(t, "POST", "/v1/tasks", body, "Idempotency-Key", "bad")
		require.Contains(t, got.problem(t, http.StatusUnprocessableEntity), "the test command is not allowed")
	}
	id := wire.RunID("local", "key", "bad")
	got := b.call(t, "GET", "/v1/runs/"+id, "")
	require.Contains(t, got.problem(t, http.StatusNotFound), "the test command is not allowed")
	letters, err := b.link.DeadLetters(t.Context())
	require.NoError(t, err)
	require.Len(t, letters, 1)
}

func TestOnlyFoldersBelowARootAreHealed(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	outside := t.TempDir()
	link := func(name, target string) string {
		path := filepath.Join(b.root, name)
		require.NoError(t, os.Symlink(target, path))
		return path
	}
	out := link("out", outside)
	dangling := link("dangling", filepath.Join(outside, "none"))
	loop := link("loop", filepath.Join(b.root, "loop"))
	for _, dir := range []string{
		outside, b.root + "x", b.root + "/..", b.root + "/../x", "//", out, out + "/new", dangling, dangling + "/new", loop,
	} {
		got := b.call(t, "POST", "/v1/tasks", heal(t, dir))
		got.problem(t, http.StatusForbidden)
	}
	inside := link("in", b.project(t, "calc"))
	for _, dir := range []string{inside, b.root, b.root + "/missing/folder", inside + "/../calc"} {
		b.submit(t, dir)
	}
	runs, err := b.link.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, runs, 4)
}

func TestBadRequestsAreRefusedOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	post := func(body string, headers ...string) reply { return b.call(t, "POST", "/v1/tasks", body, headers...) }
	require.Contains(t, post("{").problem(t, http.StatusBadRequest), "not JSON")
	require.Contains(t, post(`{"kind":"heal","dir":"p"}`).problem(t, http.StatusBadRequest), "/dir")
	post("dir=/p", "Content-Type", "application/x-www-form-urlencoded").problem(t, http.StatusUnsupportedMediaType)
	post(heal(t, b.root), "Content-Encoding", "gzip").problem(t, http.StatusUnsupportedMediaType)
	post(strings.Repeat(" ", maxBody+1)).problem(t, http.StatusRequestEntityTooLarge)
	chunked := "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"110000\r\n" + strings.Repeat(" ", 0x110000) + "\r\n0\r\n\r\n"
	require.Equal(t, "HTTP/1.1 413 Request Entity Too Large", b.raw(t, chunked))
	runs, err := b.link.Runs(t.Context())
	require.NoError(t, err)
	require.Empty(t, runs)
}

func TestATaskThatNobodyTakesIsQueued(t *testing.T) {
	t.Parallel()
	b := setup(t, options{idle: true})
	got := b.submit(t, b.project(t, "calc"))
	require.Equal(t, stateQueued, got.State)
	require.Contains(t, b.call(t, "GET", got.Links.Self, "").problem(t, http.StatusNotFound), "still queued")
}

func TestNoTaskIsTakenWhenTheLogOfTheRunsIsNearlyFull(t *testing.T) {
	t.Parallel()
	b := setup(t, options{alone: true, room: 128 << 10, tweak: func(s *Server) { s.cfg.AdmitWait = 50 * time.Millisecond }})
	large := `{"kind":"heal","dir":"` + b.root + `","targets":["` + many(10, strings.Repeat("x", 1000)) + `"]}`
	first := b.call(t, "POST", "/v1/tasks", large, "Idempotency-Key", "first")
	require.Equal(t, http.StatusAccepted, first.status)
	var got reply
	require.Eventually(t, func() bool {
		got = b.call(t, "POST", "/v1/tasks", large)
		return got.status != http.StatusAccepted
	}, 60*time.Second, time.Millisecond)
	require.Contains(t, got.problem(t, http.StatusServiceUnavailable), "full")
	require.Equal(t, "5", got.header.Get("Retry-After"))
	again := b.call(t, "POST", "/v1/tasks", large, "Idempotency-Key", "first")
	require.Equal(t, http.StatusAccepted, again.status, "what was taken is still known")
}

func TestWhenTheBusIsGoneTheAnswerIs503(t *testing.T) {
	t.Parallel()
	b := setup(t, options{tweak: func(s *Server) { s.times.bus, s.times.ready = 3*time.Second, 3*time.Second }})
	dir := b.project(t, "calc")
	id := b.submit(t, dir).Run
	b.finish(t, id)
	require.Equal(t, http.StatusOK, b.call(t, "GET", "/readyz", "").status)
	b.kill()
	began := time.Now()
	b.call(t, "GET", "/v1/runs/"+id, "").problem(t, http.StatusServiceUnavailable)
	require.Less(t, time.Since(began), 10*time.Second)
	b.link.Close() // what it does by itself after some seconds
	for _, path := range []string{"/v1/runs", "/v1/runs/" + id, "/v1/runs/" + id[:5], "/v1/runs/" + id + "/events", "/readyz"} {
		require.Contains(t, b.call(t, "GET", path, "").problem(t, http.StatusServiceUnavailable), "the bus does not answer", path)
	}
	b.call(t, "POST", "/v1/tasks", heal(t, dir)).problem(t, http.StatusServiceUnavailable)
	b.call(t, "POST", "/v1/tasks", heal(t, dir), "Idempotency-Key", "k").problem(t, http.StatusServiceUnavailable)
	b.call(t, "POST", "/v1/runs/"+id+"/cancel", "").problem(t, http.StatusServiceUnavailable)
	require.Equal(t, http.StatusOK, b.call(t, "GET", "/healthz", "").status)
}
