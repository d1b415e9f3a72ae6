package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/run"
)

func TestArtifacts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	writer, err := b.srv.Connect(ctx, "snapshot", b.core.log)
	require.NoError(t, err)
	defer writer.Close()
	for name, data := range map[string][]byte{
		"empty": {}, "small": []byte("x"), "10 MiB": bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16), "one chunk": make([]byte, 128<<10),
	} {
		ref, err := writer.Artifacts().Put(ctx, data)
		require.NoError(t, err, name)
		sum := sha256.Sum256(data)
		require.Equal(t, run.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}, ref, name)
		got, err := b.fresh().Get(ctx, ref.SHA256)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(data, got), name)
		again, err := b.fresh().Put(ctx, data)
		require.NoError(t, err, name)
		require.Equal(t, ref, again, name)
	}
	store, err := b.core.js.ObjectStore(ctx, bucketArtifacts)
	require.NoError(t, err)
	ref, err := writer.Artifacts().Put(ctx, []byte("for everybody"))
	require.NoError(t, err)
	plain, err := store.GetBytes(ctx, ref.SHA256)
	require.NoError(t, err, "any object store client can read it")
	require.Equal(t, "for everybody", string(plain))
	require.NoError(t, store.Delete(ctx, ref.SHA256))
	_, err = b.fresh().Get(ctx, ref.SHA256)
	require.ErrorIs(t, err, ErrNoArtifact)
	_, err = b.fresh().Put(ctx, []byte("for everybody"))
	require.NoError(t, err)
	plain, err = b.fresh().Get(ctx, ref.SHA256)
	require.NoError(t, err, "what was removed can be put again")
	require.Equal(t, "for everybody", string(plain))
	require.NoError(t, store.Delete(ctx, ref.SHA256))
	_, err = writer.Artifacts().Get(ctx, strings.Repeat("0", 64))
	require.ErrorIs(t, err, ErrNoArtifact)
	s, err := b.core.stream(ctx, streamArtifacts)
	require.NoError(t, err)
	info, err := s.Info(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4+1+1+20+1, info.State.Msgs, "a blob that is there is not written again")
	require.Eventually(t, func() bool { // the plain client's own consumer goes behind its back
		info, err := s.Info(ctx)
		return err == nil && info.State.Consumers == 0
	}, patience, 5*time.Millisecond)
}

// fresh is a view of the store by a process that remembers nothing.
func (b *bench) fresh() *Artifacts { return &Artifacts{bus: b.core, cache: newBlobs()} }

func TestDamagedArtifact(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	ref, err := b.core.Artifacts().Put(ctx, bytes.Repeat([]byte("x"), 1100<<10))
	require.NoError(t, err)
	s, err := b.core.stream(ctx, streamArtifacts)
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(ctx, 2)) // the middle one of three chunks
	got, err := b.core.Artifacts().Get(ctx, ref.SHA256)
	require.NoError(t, err, "this process remembers it")
	require.Len(t, got, 1100<<10)
	_, err = b.fresh().Get(ctx, ref.SHA256)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, ref.SHA256)
}

// TestConcurrentPut puts one blob from many connections of this process, and
// from processes that know nothing of each other, while others read it.
func TestConcurrentPut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true})
	data := bytes.Repeat([]byte("y"), 1100<<10)
	var g errgroup.Group
	for i := range 8 {
		a := b.core.Artifacts()
		if i%2 == 0 {
			a = b.fresh()
		}
		g.Go(func() error { _, err := a.Put(ctx, data); return err })
	}
	require.NoError(t, g.Wait())
	s, err := b.core.stream(ctx, streamArtifacts)
	require.NoError(t, err)
	info, err := s.Info(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4, info.State.Msgs, "three chunks and their description")

	store, err := b.core.js.ObjectStore(ctx, bucketArtifacts)
	require.NoError(t, err)
	ref, err := b.core.Artifacts().Put(ctx, data)
	require.NoError(t, err)
	done := make(chan struct{})
	g.Go(func() error { // a client that is not ours puts it again and again
		defer close(done)
		for range 8 {
			if _, err := store.Put(ctx, jetstream.ObjectMeta{Name: ref.SHA256}, bytes.NewReader(data)); err != nil {
				return err
			}
		}
		return nil
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got, err := b.fresh().Get(ctx, ref.SHA256)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	}
	require.NoError(t, g.Wait())
}

func TestCacheStaysSmall(t *testing.T) {
	t.Parallel()
	c := newBlobs()
	c.keep("large", make([]byte, cacheBytes/8+1))
	require.Nil(t, c.get("large"), "it would crowd out the others")
	for i := range 20 {
		c.keep(strings.Repeat("a", i+1), make([]byte, cacheBytes/10))
	}
	require.LessOrEqual(t, c.size, cacheBytes)
	require.Len(t, c.order, 10)
	oldest, newest := len(c.get("a")), len(c.get(strings.Repeat("a", 20))) // not the bytes, should it fail
	require.Zero(t, oldest)
	require.Equal(t, cacheBytes/10, newest)
}
