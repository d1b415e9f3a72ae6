package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// local keeps strangers out where no token does: a web page that the user
// visits can make the browser send requests to loopback, under a name of its
// own (DNS rebinding) or from another site.
func (s *Server) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		switch {
		case s.cfg.Token != "":
		case !loopback(hostOf(r.Host)):
			s.fail(w, refuse(http.StatusForbidden, nameForeign,
				"the Host header names %q, but without a token only loopback names are served", r.Host))
			return
		case !sameOrigin(r):
			s.fail(w, refuse(http.StatusForbidden, nameForeign,
				"the request comes from a page of %q, which is another site", strings.Join(r.Header.Values("Origin"), ", ")))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is the name in a Host header, without port and brackets.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

// sameOrigin reports whether no page sent the request, or one of this very
// gateway.
func sameOrigin(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// authorise holds the bearer token against the configured one, in a time that
// tells nothing about it.
func (s *Server) authorise(r *http.Request) error {
	if s.cfg.Token == "" {
		return nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(s.cfg.Token))
	if subtle.ConstantTimeCompare(given[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	return refuse(http.StatusUnauthorized, nameUnauthorized, "the header Authorization must be Bearer and the gateway's token")
}
