package rollback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"nexuscore.dev/nexus/internal/run"
)

// Blobs keeps contents by their hash. It is used from several goroutines.
type Blobs interface {
	// Put stores data durably before it returns. Content that is already
	// there is not written again.
	Put(ctx context.Context, data []byte) (run.Ref, error)
	// Get returns the content whose lower-case hex SHA-256 is given. Readers
	// verify the hash themselves.
	Get(ctx context.Context, sha256 string) ([]byte, error)
}

// emptySHA is the hash of no bytes. Empty content is never stored or fetched.
const emptySHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Read fetches a content and verifies that it hashes to sha.
func Read(ctx context.Context, blobs Blobs, sha string) ([]byte, error) {
	if sha == emptySHA {
		return nil, nil
	}
	if !isSHA(sha) {
		return nil, &Error{Kind: KindBlob, Detail: fmt.Sprintf("%q names no content", sha)}
	}
	data, err := blobs.Get(ctx, sha)
	if err != nil {
		return nil, &Error{Kind: KindBlob, Detail: sha, Err: err}
	}
	if got := hashOf(data); got != sha {
		return nil, &Error{Kind: KindBlob, Detail: fmt.Sprintf("%s holds content with hash %s", sha, got)}
	}
	return data, nil
}

// Store keeps the manifest itself as a blob and returns the tree that names it.
func (m Manifest) Store(ctx context.Context, blobs Blobs) (run.Tree, error) {
	data, err := m.Encode()
	if err != nil {
		return run.Tree{}, err
	}
	ref, err := blobs.Put(ctx, data)
	if err != nil {
		return run.Tree{}, &Error{Kind: KindBlob, Detail: "manifest", Err: err}
	}
	return m.Tree(ref), nil
}

// Load reads the manifest of a tree back and verifies its tree hash.
func Load(ctx context.Context, blobs Blobs, tree run.Tree) (Manifest, error) {
	data, err := Read(ctx, blobs, tree.Manifest.SHA256)
	if err != nil {
		return Manifest{}, err
	}
	m, err := Decode(data)
	if err != nil {
		return Manifest{}, err
	}
	if got := m.Hash(); got != tree.Hash {
		return Manifest{}, &Error{Kind: KindManifest, Detail: fmt.Sprintf("tree hash %s, want %s", got, tree.Hash)}
	}
	return m, nil
}
