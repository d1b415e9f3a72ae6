package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/bus"
)

func TestMain(m *testing.M) {
	for _, name := range []string{envToken, "NEXUS_NATS", "NEXUS_STATE"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

const secret = "a-token-of-the-tests"

// embedded starts a bus on a state folder and announces it there.
func embedded(t *testing.T) (dir string, srv *bus.Server) {
	t.Helper()
	dir = t.TempDir()
	owner, err := bus.Own(dir)
	require.NoError(t, err)
	srv, err = bus.StartServer(bus.ServerConfig{StateDir: dir, NoSync: true, Log: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(func() {
		srv.Stop()
		require.NoError(t, owner.Release())
	})
	core, err := srv.Core(t.Context(), zerolog.Nop())
	require.NoError(t, err)
	require.NoError(t, core.Provision(t.Context(), 1))
	core.Close()
	require.NoError(t, owner.Announce(bus.Address{URL: srv.URL(), PID: os.Getpid()}))
	return dir, srv
}

// started is a command that serves.
type started struct {
	url  string
	stop context.CancelFunc
	code chan int
	errs *bytes.Buffer
}

// start runs the command and waits until it serves.
func start(t *testing.T, args ...string) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &started{stop: cancel, code: make(chan int, 1), errs: &bytes.Buffer{}}
	read, write := io.Pipe()
	go func() {
		s.code <- execute(ctx, args, write, s.errs)
		if err := write.Close(); err != nil {
			panic(err)
		}
	}()
	line := make([]byte, 200)
	n, err := read.Read(line)
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "gateway: serving ")
	require.True(t, ok, "%s", line[:n])
	s.url = url
	t.Cleanup(cancel)
	return s
}

// end waits for the exit status.
func (s *started) end(t *testing.T) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	select {
	case code := <-s.code:
		return code
	case <-time.After(30 * time.Second):
		require.Fail(t, "the command did not end")
		return -1
	}
}

func get(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

func TestItServesUntilItIsStopped(t *testing.T) {
	state, srv := embedded(t)
	root := filepath.Join(t.TempDir(), "with,comma")
	require.NoError(t, os.Mkdir(root, 0o700))
	for _, where := range [][]string{{"--state", state}, {"--nats", srv.URL()}} {
		s := start(t, append(where, "--root", root, "--listen", "127.0.0.1:0")...)
		require.Equal(t, http.StatusOK, get(t, s.url+"/readyz", ""))
		require.Equal(t, http.StatusOK, get(t, s.url+"/v1/runs", ""))
		s.stop()
		require.Equal(t, 0, s.end(t), s.errs)
		require.Contains(t, s.errs.String(), `"path":"/readyz","status":200`)
	}
}

func TestAFlagGoesBeforeTheEnvironment(t *testing.T) {
	state, srv := embedded(t)
	root := t.TempDir()
	t.Setenv("NEXUS_NATS", "nats://127.0.0.1:1")
	s := start(t, "--state", state, "--root", root, "--listen", "localhost:0")
	s.stop()
	require.Equal(t, 0, s.end(t), s.errs)
	t.Setenv("NEXUS_NATS", srv.URL())
	s = start(t, "--root", root, "--listen", "localhost:0")
	require.Equal(t, http.StatusOK, get(t, s.url+"/readyz", ""))
	s.stop()
	require.Equal(t, 0, s.end(t), s.errs)
}

func TestATokenOpensOtherInterfaces(t *testing.T) {
	state, _ := embedded(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	t.Setenv(envToken, "another-token-of-the-tests")
	s := start(t, "--state", state, "--root", t.TempDir(), "--listen", "0.0.0.0:0", "--token-file", file, "-q")
	url := "http://127.0.0.1" + s.url[strings.LastIndex(s.url, ":"):]
	require.Equal(t, http.StatusUnauthorized, get(t, url+"/v1/runs", ""))
	require.Equal(t, http.StatusUnauthorized, get(t, url+"/v1/runs", "another-token-of-the-tests"))
	require.Equal(t, http.StatusOK, get(t, url+"/v1/runs", secret))
	s.stop()
	require.Equal(t, 0, s.end(t))
	require.Empty(t, s.errs.String())
}

func TestItEndsWhenTheBusIsGone(t *testing.T) {
	state, srv := embedded(t)
	s := start(t, "--state", state, "--root", t.TempDir(), "--listen", "127.0.0.1:0")
	srv.Stop()
	require.Equal(t, 1, s.end(t))
	require.Contains(t, s.errs.String(), "the process that runs the bus has ended")
}

func TestUsageErrorsAreOneSentence(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "token")
	require.NoError(t, os.WriteFile(file, []byte("short\n"), 0o600))
	t.Setenv("XDG_STATE_HOME", filepath.Join(root, "none"))
	for says, args := range map[string][]string{
		"as in 'gateway --root /srv/projects'":  {},
		"unexpected argument x; see":            {"--root", root, "x"},
		"no such file":                          {"--root", root + "/none"},
		"is no folder":                          {"--root", file},
		"only loopback can be served without":   {"--root", root, "--listen", "0.0.0.0:8080"},
		"missing port":                          {"--root", root, "--listen", "127.0.0.1"},
		"has 5 characters, at least 16":         {"--root", root, "--token-file", file},
		"--token-file: open":                    {"--root", root, "--token-file", root + "/none"},
		"start 'nexus up' first":                {"--root", root},
		"--nats and --state can't be used":      {"--root", root, "--nats", "nats://127.0.0.1:1", "--state", root},
		"no NATS server answers at 127.0.0.1:1": {"--root", root, "--nats", "nats://127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 1, execute(t.Context(), args, &out, &errs), says)
		require.Contains(t, errs.String(), says)
		require.Empty(t, out.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		require.Equal(t, 1, strings.Count(errs.String(), "gateway: "), errs.String())
	}
	t.Setenv(envToken, "")
	var errs bytes.Buffer
	require.Equal(t, 1, execute(t.Context(), []string{"--root", root}, io.Discard, &errs))
	require.Contains(t, errs.String(), envToken+" has 0 characters")
}

func TestAStaleAddressIsSaid(t *testing.T) {
	dir := t.TempDir()
	owner, err := bus.Own(dir)
	require.NoError(t, err)
	require.NoError(t, owner.Announce(bus.Address{URL: "nats://127.0.0.1:1", PID: 4194304}))
	var errs bytes.Buffer
	require.Equal(t, 1, execute(t.Context(), []string{"--root", dir, "--state", dir}, io.Discard, &errs))
	require.Contains(t, errs.String(), "process 4194304")
	require.NoError(t, errors.Join(owner.Release()))
}

func TestHelpShowsExamples(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, execute(t.Context(), []string{"--help"}, &out, &errs))
	require.Empty(t, errs.String())
	for _, text := range []string{"Examples:", "gateway --root /srv/projects", "curl ", "--token-file=FILE", envToken, "127.0.0.1:8080"} {
		require.Contains(t, out.String(), text)
	}
}

func TestTheVersionIsTold(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, execute(t.Context(), []string{"--version"}, &out, &errs))
	require.Regexp(t, `^gateway .*\(decider \d+\)\n$`, out.String())
	require.Empty(t, errs.String())
}
