package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// TestRegistry: every worker of a run can be made; those that touch a project
// or its toolchain serve one home, and those that write it have a cap below
// the time that a stopped run waits for them.
func TestRegistry(t *testing.T) {
	t.Parallel()
	anywhere := map[run.Worker]bool{run.Guardian: true, run.Policy: true}
	writers := map[run.Worker]bool{run.Apply: true, run.Deliver: true, run.Rollback: true}
	seen := map[run.Worker]bool{}
	for _, name := range Names() {
		require.False(t, seen[name], name)
		seen[name] = true
		w, err := New(name, Config{Home: home, State: t.TempDir()}, nil)
		require.NoError(t, err)
		require.Equal(t, name, w.Name)
		require.NotNil(t, w.Handle, name)
		require.Equal(t, anywhere[name], w.Home == "", name)
		if writers[name] {
			require.Equal(t, writerCap, w.Cap, name)
		}
		if w.Close != nil {
			require.NoError(t, w.Close())
		}
	}
	_, err := New("nobody", Config{}, nil)
	require.ErrorContains(t, err, "nobody")
}
