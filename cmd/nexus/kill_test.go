package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

var modes = []struct {
	name string
	args []string
}{
	{"isolated", []string{"--source", "model", "--test", "python3 -m unittest"}},
	{"in_place", []string{"--source", "model", "--test", "python3 -m unittest", "--in-place"}},
}

// points lists the fault points that a heal reaches, in order, with how often.
func points(t *testing.T, args []string) ([]string, map[string]int) {
	t.Helper()
	w := newWorld(t)
	w.script("answer times=* " + strconv.Quote(fenced(wrong)))
	list := filepath.Join(w.dir, "points")
	w.healWith([]string{fault.EnvList + "=" + list}, w.project("a"), args...)
	w.script(answer(fenced(wrong)), "answer times=* "+strconv.Quote(fenced(calcFixed)))
	sum, r := w.healWith([]string{fault.EnvList + "=" + list}, w.project("b"), args...)
	require.Equal(t, run.Approved, sum.State, r.out)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	var names []string
	count := map[string]int{}
	for _, n := range strings.Fields(string(text)) {
		if count[n]++; count[n] == 1 {
			names = append(names, n)
		}
	}
	return names, count
}

// killed heals with a process that dies at the point, and then once more. The
// wrong answer comes first, so that there is something to take back.
func killed(t *testing.T, point string, args []string) {
	w := newWorld(t)
	m := w.script(answer(fenced(wrong)), "answer times=* "+strconv.Quote(fenced(calcFixed)))
	dir := w.project("calc")
	before := w.tree(dir)
	first := w.with([]string{fault.EnvKill + "=" + point}, append([]string{"heal", dir}, args...)...)
	require.NotContains(t, first.err, "panic")
	sum, r := w.heal(dir, args...)
	text, err := os.ReadFile(filepath.Join(dir, "calc.py"))
	require.NoError(t, err)
	switch {
	case sum.State == run.Approved:
		require.Equal(t, calcFixed, string(text))
	default:
		require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
		require.Equal(t, before, w.tree(dir))
	}
	require.Equal(t, w.tree(dir), sum.FinalTree)
	require.LessOrEqual(t, m.Count(), 3+1, "more than one model call was made twice")
	w.clean(dir)
	v := w.nexus("replay", sum.Run, "--verify")
	require.Zero(t, v.exit, "%s\n%s", v.out, v.err)
}

// clean checks that nothing of ours lies in the project or in the registry.
func (w *world) clean(dir string) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".nexus*"))
	require.NoError(w.t, err)
	require.Empty(w.t, names)
	claims, err := os.ReadFile(filepath.Join(w.dir, "xdg", "nexus-claims.json"))
	require.NoError(w.t, err)
	require.NotContains(w.t, string(claims), `"run"`)
}

// A process is killed at the first and at the last time that it reaches each
// write, fsync, rename, publish and acknowledgement; the next heal of the
// folder must get it right.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			names, count := points(t, mode.args)
			require.Greater(t, len(names), 30)
			for _, name := range names {
				at := []int{1}
				if n := count[name] / 2; n > 1 {
					at = append(at, n)
				}
				for _, n := range at {
					point := name + ":" + strconv.Itoa(n)
					t.Run(point, func(t *testing.T) {
						t.Parallel()
						killed(t, point, mode.args)
					})
				}
			}
		})
	}
}
