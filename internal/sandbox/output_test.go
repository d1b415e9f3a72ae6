package sandbox

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		head, tail := rapid.IntRange(1, 20).Draw(t, "head"), rapid.IntRange(1, 20).Draw(t, "tail")
		var all []byte
		c := newCapture(head, tail)
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "writes") {
			all = append(all, p...)
			n, err := c.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)
		}
		o := c.output()
		require.Equal(t, int64(len(all)), o.Total)
		require.True(t, bytes.HasPrefix(all, o.Head))
		require.True(t, bytes.HasSuffix(all, o.Tail))
		require.Equal(t, min(len(all), head+tail), len(o.Head)+len(o.Tail))
		require.Equal(t, int64(len(all)-len(o.Head)-len(o.Tail)), o.Dropped)
	})
}

func TestDrainReportsOverflowOnce(t *testing.T) {
	t.Parallel()
	calls := 0
	var log bytes.Buffer
	c := newCapture(4, 4)
	err := drain(bytes.NewReader(make([]byte, 300<<10)), c, &log, 100<<10, func() { calls++ })
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	require.Equal(t, 100<<10, log.Len())
	require.Equal(t, int64(300<<10), c.output().Total)
	require.ErrorIs(t, drain(iotestReader{}, c, nil, 1, func() {}), io.ErrUnexpectedEOF)
}

type iotestReader struct{}

func (iotestReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
