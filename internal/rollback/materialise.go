package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Materialise writes the tree of m into dir, which must not exist or be an
// empty folder: contents, permission bits, links as they are written, empty
// files and folders. Every content is verified first. The tree is not fsynced:
// it is staged, and made anew after a crash.
func Materialise(ctx context.Context, m Manifest, dir string, blobs Blobs) (err error) {
	if err := m.check(); err != nil {
		return err
	}
	if err := emptyFolder(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return stageError(dir, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, e := range m.Entries {
		if e.Type == TypeDir {
			if err := root.Mkdir(e.Path, 0o700); err != nil {
				return stageError(e.Path, err)
			}
		}
	}
	if err := writeFiles(ctx, root, m, blobs); err != nil {
		return err
	}
	return finish(root, m)
}

func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return stageError(dir, err)
	}
	found, err := os.ReadDir(dir)
	if err == nil && len(found) > 0 {
		err = errors.New("the folder for a staged tree is not empty")
	}
	if err != nil {
		return stageError(dir, err)
	}
	return nil
}

func writeFiles(ctx context.Context, root *os.Root, m Manifest, blobs Blobs) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, e := range m.Entries {
		if e.Type == TypeFile {
			group.Go(func() error { return writeFile(ctx, root, e, blobs) })
		}
	}
	return group.Wait()
}

func writeFile(ctx context.Context, root *os.Root, e Entry, blobs Blobs) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := Read(ctx, blobs, e.SHA256)
	if err != nil {
		return err
	}
	if int64(len(data)) != e.Size {
		return &Error{Kind: KindManifest, Paths: []string{e.Path}, Detail: fmt.Sprintf("size %d, content has %d", e.Size, len(data))}
	}
	f, err := root.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return stageError(e.Path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(fs.FileMode(e.Mode))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return stageError(e.Path, err)
	}
	return nil
}

// finish makes the links, and gives folders their mode from the deepest up,
// because one may be read-only.
func finish(root *os.Root, m Manifest) error {
	for _, e := range m.Entries {
		if e.Type == TypeLink {
			if err := root.Symlink(e.Target, e.Path); err != nil {
				return stageError(e.Path, err)
			}
		}
	}
	for _, e := range slices.Backward(m.Entries) {
		if e.Type == TypeDir {
			if err := root.Chmod(e.Path, fs.FileMode(e.Mode)); err != nil {
				return stageError(e.Path, err)
			}
		}
	}
	return nil
}

func stageError(path string, err error) error {
	return &Error{Kind: KindWrite, Paths: []string{path}, Detail: "staged tree", Err: err}
}
