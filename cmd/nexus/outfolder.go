package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/validate"
)

// outFolder is where accepted files go: a folder that is new or empty, so that
// what it holds afterwards is one answer and nothing else.
type outFolder struct{ path string }

// newOutFolder checks the place before any work is done.
func newOutFolder(dir, base string) (*outFolder, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	parent, err := resolved(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	path = filepath.Join(parent, filepath.Base(path))
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--out %s: %w", dir, cause(err))
	case !info.IsDir():
		return nil, fmt.Errorf("--out %s is not a folder", dir)
	default:
		names, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("--out %s: %w", dir, cause(err))
		}
		if len(names) > 0 {
			return nil, fmt.Errorf("--out %s is not empty: name a new or an empty folder", dir)
		}
	}
	if rollback.Within(base, path) || rollback.Within(path, base) {
		return nil, fmt.Errorf("--out %s and --base %s lie in one another: the base is only read", dir, base)
	}
	if err := unix.Access(parent, unix.W_OK); err != nil {
		return nil, fmt.Errorf("--out: %s cannot be written: %w", parent, err)
	}
	return &outFolder{path}, nil
}

// write puts the new files there, all or none: they are written and flushed
// beside it, and the finished folder takes its name.
func (o *outFolder) write(v validate.Verdict) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(o.path), ".nexus-out-")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--out: %w", err), os.RemoveAll(tmp))
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // a folder of the user's own, like any other
		return err
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	for _, ch := range v.Candidate.Changes {
		if ch.New == "" {
			continue
		}
		mode := os.FileMode(ch.Mode & 0o777)
		if mode == 0 {
			mode = 0o644
		}
		if err := writeSynced(root, ch.Path, v.Contents[ch.New], mode); err != nil {
			return errors.Join(err, root.Close())
		}
	}
	if err := root.Close(); err != nil {
		return err
	}
	err = filepath.WalkDir(tmp, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = rollback.SyncFolders(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	// Takes the place of an empty folder, and of nothing else.
	if err := unix.Rename(tmp, o.path); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	return rollback.SyncFolders(o.path)
}

func writeSynced(root *os.Root, path string, data []byte, mode os.FileMode) (err error) {
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Sync())
}
