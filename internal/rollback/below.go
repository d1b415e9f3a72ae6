package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Below reports whether dir is one of the roots or lies below one, whole path
// elements compared and links followed on both sides. What does not exist has
// no links; whether a folder must exist is for the run to find out, perhaps on
// another host. A path that cannot be followed is an error, of a root too:
// nobody knows what lies below it.
func Below(roots []string, dir string) (bool, error) {
	target, err := follow(filepath.Clean(dir))
	if err != nil {
		return false, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	for _, root := range roots {
		if root, err = follow(root); err != nil {
			return false, &Error{Kind: KindUnreadable, Detail: root, Err: err}
		}
		if Within(root, target) {
			return true, nil
		}
	}
	return false, nil
}

// Within reports whether dir is root or lies below it, by their names alone.
func Within(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// follow follows the links of a path, as far as it exists.
func follow(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return target, err
	}
	switch _, err := os.Lstat(path); {
	case err == nil: // a link that leads nowhere, or somebody has just made it
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return path, fmt.Errorf("a link that leads nowhere: %w", err)
		}
		return target, nil
	case !errors.Is(err, fs.ErrNotExist):
		return path, err
	}
	up, err := follow(filepath.Dir(path))
	return filepath.Join(up, filepath.Base(path)), err
}
