package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/llm/llmtest"
	"nexuscore.dev/nexus/internal/run"
)

var modes = []struct {
	name string
	args []string
}{
	{"isolated", []string{"--source", "model", "--test", "python3 -m unittest"}},
	{"in_place", []string{"--source", "model", "--test", "python3 -m unittest", "--in-place"}},
}

// life is a run that a drill interrupts: what the model says in it.
type life struct {
	name   string
	script []string
	state  run.Terminal
}

var (
	// healed is wrong first, so that there is something to take back, and
	// right then; handed is wrong to the end.
	healed = life{"healed", []string{answer(fenced(wrong)), "answer times=* " + strconv.Quote(fenced(calcFixed))}, run.Approved}
	handed = life{"handed", []string{"answer times=* " + strconv.Quote(fenced(wrong))}, run.NeedsHumanReview}
)

// points lists the fault points that a life reaches, in order.
func (l life) points(t *testing.T, args []string) []string {
	t.Helper()
	w := newWorld(t)
	w.script(l.script...)
	list := filepath.Join(w.dir, "points")
	sum, r := w.healWith([]string{fault.EnvList + "=" + list}, w.project("calc"), args...)
	require.Equal(t, l.state, sum.State, r.out)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	var names []string
	for _, n := range strings.Fields(string(text)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// killed heals with processes that die, one after the other, at the points, and
// then once more. It returns the points that no process came to.
func (l life) killed(t *testing.T, points, args []string) (missed []string) {
	w := newWorld(t)
	m := w.script(l.script...)
	dir := w.project("calc")
	before := w.tree(dir)
	for i, point := range points {
		r := w.with([]string{fault.EnvKill + "=" + point}, append([]string{"heal", dir}, args...)...)
		if r.exit == -1 {
			continue
		}
		missed = append(missed, point)
		if r.exit == l.state.Exit() && i > 0 {
			missed = append(missed, points[i+1:]...)
			break // the run has ended; another one would be about another folder
		}
	}
	w.mended(dir, before, m, len(points), args)
	return missed
}

// mended heals a folder whose last heals were killed, and checks that it is as
// it should be.
func (w *world) mended(dir, before string, m *llmtest.Server, kills int, args []string) {
	t := w.t
	t.Helper()
	sum, r := w.heal(dir, args...)
	text, err := os.ReadFile(filepath.Join(dir, "calc.py"))
	require.NoError(t, err)
	switch sum.State {
	case run.Approved:
		require.Equal(t, calcFixed, string(text))
	default:
		require.Equal(t, run.NeedsHumanReview, sum.State, "%s\n%s", r.out, r.err)
		require.Equal(t, before, w.tree(dir))
	}
	require.Equal(t, w.tree(dir), sum.FinalTree)
	require.LessOrEqual(t, m.Count(), 2*2+kills, "a kill made more than one model call twice")
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
	claims, err := os.ReadFile(filepath.Join(w.dir, "claims.json"))
	require.NoError(w.t, err)
	require.NotContains(w.t, string(claims), `"run"`)
}

// chained is how many kills one folder lives through in `make test`; in `make
// drill` each point has a folder of its own.
const chained = 6

// A process is killed at each write, fsync, rename, publish and
// acknowledgement; the next heal of the folder must get it right.
func TestKilledAtPoints(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			killEach(t, mode.args, chained)
		})
	}
}

// killEach kills at every point of a mode, n of them in one folder: points that
// lie far apart, in the order of a run. What a chain does not come to, because
// of an earlier kill, is tried alone.
func killEach(t *testing.T, args []string, n int) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range []life{healed, handed} {
		var points []string
		for _, p := range l.points(t, args) {
			if !seen[p] {
				seen[p] = true
				points = append(points, p)
			}
		}
		chains := (len(points) + n - 1) / n
		for i := range chains {
			var chain []string
			for k := i; k < len(points); k += chains {
				chain = append(chain, points[k])
			}
			t.Run(l.name+"/"+chain[0], func(t *testing.T) {
				t.Parallel()
				for _, p := range l.killed(t, chain, args) {
					require.Greater(t, len(chain), 1, "%s was not reached", p)
					require.Empty(t, l.killed(t, []string{p}, args), "not reached")
				}
			})
		}
	}
	require.Greater(t, len(seen), 80)
}
