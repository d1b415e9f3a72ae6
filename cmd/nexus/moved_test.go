package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// movesSampled is how many points lie between two that `make test` tries.
const movesSampled = 7

// TestMovedAfterAKill: a delivery is killed, the user changes another file, and
// the folder is healed again. What the killed one wrote is never taken for the
// user's: the folder holds the fix, tested with the change, or is as it was.
func TestMovedAfterAKill(t *testing.T) {
	t.Parallel()
	movedAfterKills(t, movesSampled)
}

// movedAfterKills tries every n-th point of a delivery.
func movedAfterKills(t *testing.T, n int) {
	t.Helper()
	args := modes[0].args
	fix := life{"fix", []string{"answer times=* " + answer(fenced(calcFixed))[len("answer "):]}, run.Approved}
	var points []string
	for _, p := range fix.points(t, args) {
		// Once its outcome is stored the delivery is over, and what the user does is no move.
		if strings.HasPrefix(p, "rollback.") || slices.Contains([]string{"agents.deliver.applied", "bus.outcome.deliver"}, p) {
			points = append(points, p)
		}
	}
	require.Greater(t, len(points), 25)
	red := "import unittest\n\n\nclass Red(unittest.TestCase):\n    def test_red(self):\n        self.fail()\n"
	for i, p := range points {
		if i%n != 0 {
			continue
		}
		file, text, want := "notes.txt", "theirs", calcFixed
		if i%(2*n) != 0 {
			file, text, want = "test_more.py", red, calcBroken
		}
		t.Run(p+"/"+file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script(fix.script...)
			dir := w.project("calc")
			first := w.with([]string{fault.EnvKill + "=" + p}, append([]string{"heal", dir}, args...)...)
			require.Equal(t, -1, first.exit, "%s%s", first.out, first.err)
			w.write(dir, file, text)
			sum, r := w.heal(dir, args...)
			data, err := os.ReadFile(filepath.Join(dir, "calc.py"))
			require.NoError(t, err)
			require.Equal(t, want, string(data), "%s\n%s", sum.Reason, r.err)
			require.Equal(t, want == calcFixed, sum.State == run.Approved, sum.Reason)
			require.Equal(t, w.tree(dir), sum.FinalTree)
			data, err = os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			require.Equal(t, text, string(data))
			w.clean(dir)
		})
	}
}
