package gateway

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// allowed refuses a folder that lies below none of the roots, whole path
// elements compared and links followed on both sides.
func (s *Server) allowed(dir string) error {
	dir = filepath.Clean(dir)
	target, err := resolve(dir)
	if err != nil {
		p := refuse(http.StatusForbidden, nameOutside, "%s can't be followed to a folder", dir)
		p.cause = err
		return p
	}
	for _, root := range s.cfg.Roots {
		if root, err = resolve(root); err != nil {
			return internal(err)
		}
		if rel, err := filepath.Rel(root, target); err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	return refuse(http.StatusForbidden, nameOutside, "%s lies below none of the allowed folders %s", dir, strings.Join(s.cfg.Roots, ", "))
}

// resolve follows the links of path. What does not exist has none; whether a
// folder must exist is for the run to find out, perhaps on another host.
func resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) || path == filepath.Dir(path) {
		return target, err
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return "", errors.Join(errors.New("a link that leads nowhere: "+path), err)
	}
	up, err := resolve(filepath.Dir(path))
	return filepath.Join(up, filepath.Base(path)), err
}
