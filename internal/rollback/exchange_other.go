//go:build unix && !linux

package rollback

import (
	"errors"
	"os"
)

// exchange is known to Linux only; swap then checks before it renames.
func exchange(*os.File, string, string) error { return errors.ErrUnsupported }

// moveNew renames and fails with fs.ErrExist when the new name is taken.
func moveNew(dir *os.File, from, to string) error { return moveByLink(dir, from, to) }

// unnamed is known to Linux only.
func unnamed(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func giveName(_, _ *os.File, _ string) error { return errors.ErrUnsupported }
