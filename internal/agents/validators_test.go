package agents

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/testrun"
)

// TestValidatorsAreFew: the ones in use and the last ones stay, no more.
func TestValidatorsAreFew(t *testing.T) {
	t.Parallel()
	pool := &validators{cfg: Config{Model: &Model{Secrets: []string{"key-of-the-model"}}}}
	t.Cleanup(func() { require.NoError(t, pool.close()) })
	python := func(n int) *testrun.Interpreter {
		return &testrun.Interpreter{Path: fmt.Sprint("/python", n), ReadOnly: []string{"/lib"}}
	}
	first, release, err := pool.borrow(python(0))
	require.NoError(t, err)
	for n := range 3 * maxWarm {
		_, done, err := pool.borrow(python(n + 1))
		require.NoError(t, err)
		done()
		require.LessOrEqual(t, len(pool.list), maxWarm)
	}
	again, done, err := pool.borrow(python(0))
	require.NoError(t, err)
	require.Same(t, first, again, "it was in use all the time")
	done()
	release()
	last, done, err := pool.borrow(python(3 * maxWarm))
	require.NoError(t, err)
	done()
	for n := range maxWarm {
		_, done, err := pool.borrow(python(100 + n))
		require.NoError(t, err)
		done()
	}
	fresh, done, err := pool.borrow(python(3 * maxWarm))
	require.NoError(t, err)
	done()
	require.NotSame(t, last, fresh)
	require.Equal(t, []string{"key-of-the-model"}, pool.cfg.GateConfig(nil).Secrets)
}
