package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// Artifacts is the store of blobs by content: a name is the SHA-256 of its
// bytes. It is safe for concurrent use.
type Artifacts struct {
	js jetstream.JetStream

	mu    sync.Mutex
	store jetstream.ObjectStore
	// recent holds blobs that this process put or read, up to cacheBytes;
	// they are immutable, so they never go stale.
	recent map[string][]byte
	order  []string
	size   int
}

// cacheBytes bounds the blobs that a process keeps in memory.
const cacheBytes = 64 << 20

// ErrNoArtifact says that the store does not hold the blob.
var ErrNoArtifact = errors.New("bus: no such artifact")

func (a *Artifacts) bucket(ctx context.Context) (jetstream.ObjectStore, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		s, err := a.js.ObjectStore(ctx, bucketArtifacts)
		if err != nil {
			return nil, fmt.Errorf("bus: artifacts: %w", err)
		}
		a.store = s
	}
	return a.store, nil
}

// Put stores data and returns its name. Data that is there already is not
// written again, so Put may be repeated.
func (a *Artifacts) Put(ctx context.Context, data []byte) (run.Ref, error) {
	sum := sha256.Sum256(data)
	ref := run.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	if a.cached(ref.SHA256) != nil {
		return ref, nil
	}
	s, err := a.bucket(ctx)
	if err != nil {
		return ref, err
	}
	switch _, err := s.GetInfo(ctx, ref.SHA256); {
	case err == nil:
		a.keep(ref.SHA256, data)
		return ref, nil
	case !errors.Is(err, jetstream.ErrObjectNotFound):
		return ref, fmt.Errorf("bus: artifact %s: %w", ref.SHA256, err)
	}
	fault.Point("bus.artifact.put")
	if _, err := s.Put(ctx, jetstream.ObjectMeta{Name: ref.SHA256}, bytes.NewReader(data)); err != nil {
		return ref, fmt.Errorf("bus: artifact %s: %w", ref.SHA256, err)
	}
	fault.Point("bus.artifact.stored")
	a.keep(ref.SHA256, data)
	return ref, nil
}

// Get reads a blob and verifies it against its name.
func (a *Artifacts) Get(ctx context.Context, sha256hex string) ([]byte, error) {
	if data := a.cached(sha256hex); data != nil {
		return data, nil
	}
	s, err := a.bucket(ctx)
	if err != nil {
		return nil, err
	}
	obj, err := s.Get(ctx, sha256hex)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoArtifact, sha256hex)
	}
	if err != nil {
		return nil, fmt.Errorf("bus: artifact %s: %w", sha256hex, err)
	}
	data, err := io.ReadAll(obj)
	if err = errors.Join(err, obj.Close()); err != nil {
		return nil, fmt.Errorf("bus: artifact %s: %w", sha256hex, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sha256hex {
		return nil, fmt.Errorf("bus: artifact %s is damaged: its bytes have another hash", sha256hex)
	}
	a.keep(sha256hex, data)
	return data, nil
}

func (a *Artifacts) cached(name string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.recent[name]
}

// keep remembers a blob; the oldest ones make room.
func (a *Artifacts) keep(name string, data []byte) {
	if len(data) == 0 || len(data) > cacheBytes/8 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recent == nil {
		a.recent = map[string][]byte{}
	}
	if _, ok := a.recent[name]; ok {
		return
	}
	a.recent[name] = bytes.Clone(data)
	a.order = append(a.order, name)
	a.size += len(data)
	for a.size > cacheBytes {
		a.size -= len(a.recent[a.order[0]])
		delete(a.recent, a.order[0])
		a.order = a.order[1:]
	}
}
