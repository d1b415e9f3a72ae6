//go:build linux

package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where no cgroup can be had, the watchdog and the end of the tree are all
// there is. The bomb doubles nine times and then stays.
func TestForkBombWithoutCgroup(t *testing.T) {
	t.Parallel()
	spec, err := Spec{
		Dir: t.TempDir(), Temp: t.TempDir(), Timeout: 15 * time.Second, Limits: Limits{Processes: 60},
		Argv: []string{"/bin/sh", "-c", `b() { [ $1 -gt 0 ] || exec sleep 5; b $(($1-1)) & b $(($1-1)) & wait; }; b 8`},
	}.normalize()
	require.NoError(t, err)
	priv, err := newPrivate(spec.Temp)
	require.NoError(t, err)
	defer func() { require.NoError(t, removeTree(priv.root)) }()
	o, err := newOrder(spec, priv)
	require.NoError(t, err)
	start := time.Now()
	res, err := runAt(t.Context(), spec, o.at(LevelThin), "")
	require.NoError(t, err)
	require.Equal(t, LimitProcesses, res.Limit)
	require.Empty(t, res.Features.Cgroup)
	require.Less(t, time.Since(start), 4*time.Second)
}
