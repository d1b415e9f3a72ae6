package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

const token = "a-token-of-the-tests"

func TestWithATokenEveryCallOfTheAPINeedsIt(t *testing.T) {
	t.Parallel()
	b := setup(t, options{token: token})
	for _, c := range []struct {
		header string
		good   bool
	}{
		{"Bearer " + token, true},
		{"bearer " + token, true},
		{"", false},
		{token, false},
		{"Basic " + token, false},
		{"Bearer ", false},
		{"Bearer " + token[1:], false},
		{"Bearer " + token + "x", false},
		{"Bearer " + strings.ToUpper(token), false},
		{"Bearer " + token + " " + token, false},
	} {
		headers := []string{}
		if c.header != "" {
			headers = []string{"Authorization", c.header}
		}
		got := b.call(t, "GET", "/v1/runs", "", headers...)
		if c.good {
			require.Equal(t, http.StatusOK, got.status, c.header)
			continue
		}
		require.Contains(t, got.problem(t, http.StatusUnauthorized), "Authorization")
		require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
	}
	for _, rt := range (&Server{}).routes(nil) {
		path := strings.NewReplacer("{id}", strings.Repeat("a", 26), "{name}", "openapi.yaml").Replace(rt.path)
		got := b.call(t, rt.method, path, "")
		require.Equal(t, rt.public, got.status == http.StatusOK, "%s %s: %d", rt.method, path, got.status)
		if !rt.public {
			got.problem(t, http.StatusUnauthorized)
		}
	}
	got := b.call(t, "GET", "/v1/runs?token="+token, "")
	got.problem(t, http.StatusUnauthorized)
	require.Equal(t, http.StatusOK, b.call(t, "GET", "/v1/runs", "", "Authorization", "Bearer "+token, "Host", "nexus.example.org").status)
	require.NotContains(t, b.log.String(), token)
}

func TestWithoutATokenOtherSitesAreKeptOut(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	port := b.url[strings.LastIndex(b.url, ":"):]
	for _, c := range []struct {
		host, origin string
		good         bool
	}{
		{"localhost", "", true},
		{"LOCALHOST" + port, "", true},
		{"127.0.0.1" + port, "", true},
		{"127.8.9.1", "", true},
		{"[::1]" + port, "", true},
		{"[::1]", "", true},
		{"evil.example" + port, "", false},
		{"localhost.evil.example", "", false},
		{"10.0.0.1", "", false},
		{"127.0.0.1.evil.example", "", false},
		{"0.0.0.0" + port, "", false},
		{"[::]", "", false},
		{"localhost" + port, "http://localhost" + port, true},
		{"localhost" + port, "http://evil.example", false},
		{"localhost" + port, "http://localhost:1", false},
		{"localhost" + port, "null", false},
		{"localhost" + port, "https://localhost" + port, false},
		{"localhost" + port, "http://localhost" + port + ".evil.example", false},
	} {
		for _, path := range []string{"/v1/runs", "/healthz"} {
			headers := []string{"Host", c.host}
			if c.origin != "" {
				headers = append(headers, "Origin", c.origin)
			}
			got := b.call(t, "GET", path, "", headers...)
			if c.good {
				require.Equal(t, http.StatusOK, got.status, "%+v", c)
			} else {
				got.problem(t, http.StatusForbidden)
			}
		}
	}
	require.Equal(t, "HTTP/1.0 403 Forbidden", b.raw(t, "GET /v1/runs HTTP/1.0\r\n\r\n"))
	require.Equal(t, "HTTP/1.1 403 Forbidden", b.raw(t, "GET http://evil.example/v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

func TestOnlyLoopbackIsServedWithoutAToken(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0"} {
		_, err := Listen(t.Context(), addr, "")
		require.ErrorIs(t, err, ErrExposed, addr)
	}
	for _, addr := range []string{"127.0.0.1", "", "localhost:x"} {
		_, err := Listen(t.Context(), addr, token)
		require.Error(t, err, addr)
	}
	ln, err := Listen(t.Context(), "0.0.0.0:0", token)
	require.NoError(t, err)
	s, err := New(Config{Bus: noBus{}, Roots: []string{"/srv"}})
	require.NoError(t, err)
	require.ErrorIs(t, s.Run(t.Context(), ln), ErrExposed)
	_, err = ln.Accept()
	require.Error(t, err)
}

// noBus is a bus that is not asked.
type noBus struct{ Bus }

func TestAConfigurationMustBeComplete(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]Config{
		"no bus":             {Roots: []string{"/srv"}},
		"no allowed root":    {Bus: noBus{}},
		"not an absolute":    {Bus: noBus{}, Roots: []string{"/srv", "p"}},
		"at least 16":        {Bus: noBus{}, Roots: []string{"/srv"}, Token: "short"},
		"the token has 15 c": {Bus: noBus{}, Roots: []string{"/srv"}, Token: strings.Repeat("x", 15)},
	} {
		cfg.Log = zerolog.Nop()
		_, err := New(cfg)
		require.ErrorContains(t, err, says)
	}
}
