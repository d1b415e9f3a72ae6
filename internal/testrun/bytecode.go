package testrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// forgetBytecode removes every __pycache__ of the staged tree. Python takes a
// cached module for current when the source has the same size and the same
// second, so an edit could otherwise be answered by the old code.
func forgetBytecode(root string) error {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case d.Name() == "__pycache__" && path != root:
			found = append(found, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	for _, path := range found {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}
