package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// Artifacts is the store of blobs by content: a name is the SHA-256 of its
// bytes. It is safe for concurrent use.
type Artifacts struct {
	bus   *Bus
	cache *blobs

	mu    sync.Mutex
	store jetstream.ObjectStore
}

var (
	// ErrNoArtifact says that the store does not hold the blob.
	ErrNoArtifact = errors.New("bus: no such artifact")
	// ErrDamaged says that the stored bytes are not those of the name.
	ErrDamaged = errors.New("bus: the artifact is damaged")
)

func (a *Artifacts) bucket(ctx context.Context) (jetstream.ObjectStore, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		s, err := a.bus.js.ObjectStore(ctx, bucketArtifacts)
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
	if a.cache.get(ref.SHA256) != nil {
		return ref, nil
	}
	// A second writer of the same name would take the first one's chunks
	// away; across processes readers get over that by reading again.
	done, err := a.cache.claim(ctx, ref.SHA256)
	if err != nil {
		return ref, err
	}
	defer done()
	s, err := a.bucket(ctx)
	if err != nil {
		return ref, err
	}
	_, err = s.GetInfo(ctx, ref.SHA256)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		fault.Point("bus.artifact.put")
		_, err = s.Put(ctx, jetstream.ObjectMeta{Name: ref.SHA256}, bytes.NewReader(data))
		fault.Point("bus.artifact.stored")
	}
	if err != nil {
		return ref, fmt.Errorf("bus: artifact %s: %w", ref.SHA256, err)
	}
	a.cache.keep(ref.SHA256, data)
	return ref, nil
}

// rereads is how often a blob is looked up again that came incomplete: its
// chunks move when two processes put it at the same time.
const rereads = 3

// Get reads a blob and verifies it against its name.
func (a *Artifacts) Get(ctx context.Context, sha256hex string) ([]byte, error) {
	if data := a.cache.get(sha256hex); data != nil {
		return bytes.Clone(data), nil
	}
	s, err := a.bucket(ctx)
	if err != nil {
		return nil, err
	}
	for range rereads {
		var data []byte
		if data, err = a.read(ctx, s, sha256hex); err == nil {
			a.cache.keep(sha256hex, data)
			return data, nil
		}
		if !errors.Is(err, ErrDamaged) {
			break
		}
	}
	return nil, err
}

// read gathers the chunks of a blob, which takes one request and leaves
// nothing behind on the server.
func (a *Artifacts) read(ctx context.Context, s jetstream.ObjectStore, name string) ([]byte, error) {
	info, err := s.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoArtifact, name)
	}
	if err != nil {
		return nil, fmt.Errorf("bus: artifact %s: %w", name, err)
	}
	var data bytes.Buffer
	if info.Size > 0 {
		err = a.bus.each(ctx, streamArtifacts, "$O."+bucketArtifacts+".C."+info.NUID, func(m *jetstream.RawStreamMsg) error {
			_, err := data.Write(m.Data)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("bus: artifact %s: %w", name, err)
	}
	if sum := sha256.Sum256(data.Bytes()); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("%w: %s", ErrDamaged, name)
	}
	return data.Bytes(), nil
}
