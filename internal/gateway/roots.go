package gateway

import (
	"net/http"
	"path/filepath"
	"strings"

	"nexuscore.dev/nexus/internal/rollback"
)

// allowed refuses a folder that lies below none of the roots.
func (s *Server) allowed(dir string) error {
	ok, err := rollback.Below(s.cfg.Roots, dir)
	switch {
	case ok:
		return nil
	case err != nil:
		p := refuse(http.StatusForbidden, nameOutside, "%s can't be followed to a folder", filepath.Clean(dir))
		p.cause = err
		return p
	}
	return refuse(http.StatusForbidden, nameOutside, "%s lies below none of the allowed folders %s", filepath.Clean(dir), strings.Join(s.cfg.Roots, ", "))
}
