package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// Artifacts is the store of blobs by content: a name is the SHA-256 of its
// bytes. It is safe for concurrent use. On the server it is an object store,
// so that other clients can read it; reading and writing are done here,
// because a name is written once and for all, whoever else is writing it.
type Artifacts struct {
	bus   *Bus
	cache *blobs
}

var (
	// ErrNoArtifact says that the store does not hold the blob.
	ErrNoArtifact = errors.New("bus: no such artifact")
	// ErrDamaged says that the stored bytes are not those of the name.
	ErrDamaged = errors.New("bus: the artifact is damaged")
)

// maxChunk is the largest part of a blob that is one message.
const maxChunk = 512 << 10

func chunkSubject(id string) string { return "$O." + bucketArtifacts + ".C." + id }

// metaSpace holds the descriptions of all blobs.
const metaSpace = "$O." + bucketArtifacts + ".M.*"

func metaSubject(name string) string {
	return metaSpace[:len(metaSpace)-1] + base64.URLEncoding.EncodeToString([]byte(name))
}

// Put stores data and returns its name. Data that is there already is not
// written again, so Put may be repeated.
func (a *Artifacts) Put(ctx context.Context, data []byte) (run.Ref, error) {
	sum := sha256.Sum256(data)
	ref := run.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	if a.cache.get(ref.SHA256) != nil {
		return ref, nil
	}
	done, err := a.cache.claim(ctx, ref.SHA256)
	if err != nil {
		return ref, err
	}
	defer done()
	if err := a.put(ctx, ref, sum[:], data); err != nil {
		return ref, fmt.Errorf("bus: artifact %s: %w", ref.SHA256, err)
	}
	a.cache.keep(ref.SHA256, data)
	return ref, nil
}

// put writes the chunks, then the description, by compare-and-set: should
// another process have been faster, its chunks stay and ours go.
func (a *Artifacts) put(ctx context.Context, ref run.Ref, sum, data []byte) error {
	info, last, err := a.info(ctx, ref.SHA256)
	if err != nil || info != nil {
		return err
	}
	id, err := newToken()
	if err != nil {
		return err
	}
	size := min(maxChunk, int(a.bus.nc.MaxPayload())-headRoom)
	fault.Point("bus.artifact.put")
	chunks := uint32(0)
	for chunk := range slices.Chunk(data, size) {
		if _, err := a.bus.publish(ctx, &nats.Msg{Subject: chunkSubject(id), Data: chunk}); err != nil {
			return err
		}
		chunks++
	}
	body, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: ref.SHA256, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}}, //nolint:gosec // at most maxChunk
		Bucket:     bucketArtifacts, NUID: id, Size: uint64(len(data)), Chunks: chunks,
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum),
	})
	if err != nil {
		return err
	}
	meta := &nats.Msg{
		Subject: metaSubject(ref.SHA256), Data: body,
		Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}},
	}
	fault.Point("bus.artifact.describe")
	_, err = a.bus.publish(ctx, meta, jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithRetryAttempts(0))
	fault.Point("bus.artifact.stored")
	if isCode(err, codeWrongLast, codeWrongLastConstant) {
		return a.purge(ctx, id)
	}
	return err
}

// purge takes away chunks that nothing describes.
func (a *Artifacts) purge(ctx context.Context, id string) error {
	s, err := a.bus.stream(ctx, streamArtifacts)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(chunkSubject(id)))
}

// info reads the description of a blob, nil when there is none, and the
// sequence that a new description must follow.
func (a *Artifacts) info(ctx context.Context, name string) (*jetstream.ObjectInfo, uint64, error) {
	s, err := a.bus.stream(ctx, streamArtifacts)
	if err != nil {
		return nil, 0, err
	}
	msg, err := s.GetLastMsgForSubject(ctx, metaSubject(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := readInfo(msg.Data)
	if err != nil {
		return nil, 0, err
	}
	if info.Deleted {
		return nil, msg.Sequence, nil
	}
	return &info, 0, nil
}

func readInfo(body []byte) (info jetstream.ObjectInfo, err error) {
	if err := json.Unmarshal(body, &info); err != nil {
		return info, fmt.Errorf("%w: its description: %w", ErrDamaged, err)
	}
	return info, nil
}

// rereads bounds how often a blob is looked up again that came incomplete:
// its chunks move when a client that is not ours puts it again. A blob that
// stayed where it was is damaged.
const rereads = 20

// Get reads a blob and verifies it against its name.
func (a *Artifacts) Get(ctx context.Context, sha256hex string) ([]byte, error) {
	if data := a.cache.get(sha256hex); data != nil {
		return bytes.Clone(data), nil
	}
	last := ""
	for n := 1; ; n++ {
		data, place, err := a.read(ctx, sha256hex)
		if err == nil {
			a.cache.keep(sha256hex, data)
			return data, nil
		}
		if !errors.Is(err, ErrDamaged) || place == last || n == rereads {
			return nil, err
		}
		last = place
	}
}

// read gathers the chunks of a blob, which takes one request and leaves
// nothing behind on the server. It also returns where they lay.
func (a *Artifacts) read(ctx context.Context, name string) (data []byte, place string, err error) {
	info, _, err := a.info(ctx, name)
	if err != nil {
		return nil, "", fmt.Errorf("bus: artifact %s: %w", name, err)
	}
	if info == nil {
		return nil, "", fmt.Errorf("%w: %s", ErrNoArtifact, name)
	}
	if info.Size > 0 {
		err = a.bus.each(ctx, streamArtifacts, chunkSubject(info.NUID), func(m *jetstream.RawStreamMsg) error {
			data = append(data, m.Data...)
			return nil
		})
	}
	if err != nil {
		return nil, info.NUID, fmt.Errorf("bus: artifact %s: %w", name, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != name {
		return nil, info.NUID, fmt.Errorf("%w: %s", ErrDamaged, name)
	}
	return data, info.NUID, nil
}
