package rollback

import (
	"path"
	"strings"
)

const maxLinks = 40 // as many links as Linux follows in one path

// resolve follows the links of a path inside the project and returns the path
// of the real file. readlink tells the target of a link, and false for what is
// no link or does not exist. A link that leaves the project, by an absolute
// target too, and a loop are refused.
func resolve(p string, readlink func(string) (target string, isLink bool, err error)) (string, error) {
	rest := strings.Split(p, "/")
	var done []string
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", unsafePath(p, "a link leaves the project")
			}
			done = done[:len(done)-1]
			continue
		}
		here := path.Join(path.Join(done...), part)
		target, isLink, err := readlink(here)
		if err != nil {
			return "", err
		}
		if !isLink {
			done = append(done, part)
			continue
		}
		if links++; links > maxLinks {
			return "", unsafePath(p, "a loop of links")
		}
		if path.IsAbs(target) {
			return "", unsafePath(p, "a link leaves the project")
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if len(done) == 0 {
		return "", unsafePath(p, "a link to the project itself")
	}
	return path.Join(done...), nil
}

// Resolve follows the links of a path as Apply will on the disk, and returns
// the path whose content an edit of p changes. A path without an entry is
// returned with the links among its folders followed.
func (m Manifest) Resolve(p string) (string, error) {
	return resolve(p, func(q string) (string, bool, error) {
		e, ok := m.Lookup(q)
		return e.Target, ok && e.Type == TypeLink, nil
	})
}
