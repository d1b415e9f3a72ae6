package validate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleWorkerEnds: a worker that nobody asks is not kept for ever, and the
// next question starts a new one.
func TestIdleWorkerEnds(t *testing.T) {
	t.Parallel()
	v, err := New(Config{idle: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	for range 2 {
		r, err := v.worker.Analyse(t.Context(), nil, []byte("x = 1\n"))
		require.NoError(t, err)
		require.True(t, r.OK)
		require.Eventually(t, func() bool {
			v.worker.mu.Lock()
			defer v.worker.mu.Unlock()
			return v.worker.proc == nil
		}, 20*time.Second, time.Millisecond)
	}
}
