// Package rollbacktest has what tests of a project tree need: contents in a
// plain folder.
package rollbacktest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/run"
)

// Blobs keeps every content in a file of Dir named by its hash.
type Blobs struct{ Dir string }

// Put writes data unless it is there.
func (b Blobs) Put(_ context.Context, data []byte) (run.Ref, error) {
	sum := sha256.Sum256(data)
	ref := run.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	file := filepath.Join(b.Dir, ref.SHA256)
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return ref, err
	}
	return ref, renameio.WriteFile(file, data, 0o600)
}

// Get reads a content without verifying it.
func (b Blobs) Get(_ context.Context, sha string) ([]byte, error) {
	return os.ReadFile(filepath.Join(b.Dir, sha))
}
