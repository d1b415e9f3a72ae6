//go:build drill

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// drillKills is how many random moments are tried in each mode; the
// environment may set another number.
func drillKills(t *testing.T) int {
	t.Helper()
	n := 200
	if v := os.Getenv("NEXUS_DRILL_KILLS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	return n
}

// A process is killed at random moments of its life; the next heal of the
// folder must get it right.
func TestDrillRandomKills(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script(healed.script...)
			start := time.Now()
			w.heal(w.project("calc"), mode.args...)
			whole := time.Since(start)
			for i := range drillKills(t) {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					killedAt(t, time.Duration(rand.Int64N(int64(whole))), mode.args)
				})
			}
		})
	}
}

// A process is killed at each point in both modes.
func TestDrillEveryPoint(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			killEach(t, mode.args, 1)
		})
	}
}

// A delivery is killed at each of its points, and the user goes on working.
func TestDrillMovedAfterAKill(t *testing.T) {
	t.Parallel()
	movedAfterKills(t, 1)
}

func killedAt(t *testing.T, after time.Duration, args []string) {
	w := newWorld(t)
	m := w.script(healed.script...)
	dir := w.project("calc")
	before := w.tree(dir)
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"heal", dir}, args...)...)
	cmd.Env = w.env
	require.NoError(t, cmd.Start())
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // it may have ended by itself
	defer kill.Stop()
	if err := cmd.Wait(); err == nil {
		return // it was done before the moment came
	}
	w.mended(dir, before, m, 1, args)
}
