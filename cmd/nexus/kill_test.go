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

// killed heals with a process that dies at the point, and then once more.
func (l life) killed(t *testing.T, point string, args []string) {
	w := newWorld(t)
	m := w.script(l.script...)
	dir := w.project("calc")
	before := w.tree(dir)
	first := w.with([]string{fault.EnvKill + "=" + point}, append([]string{"heal", dir}, args...)...)
	require.Equal(t, -1, first.exit, "the point was not reached: %s%s", first.out, first.err)
	w.mended(dir, before, m, args)
}

// mended heals a folder whose last heal was killed, and checks that it is as
// it should be.
func (w *world) mended(dir, before string, m *llmtest.Server, args []string) {
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
	require.LessOrEqual(t, m.Count(), 2*2+1, "more than one model call was made twice")
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

// sampled is how many points lie between two that `make test` tries; `make
// drill` tries them all. The modes begin at different ones.
const sampled = 4

// A process is killed at writes, fsyncs, renames, publishes and
// acknowledgements; the next heal of the folder must get it right.
func TestKilledAtPoints(t *testing.T) {
	t.Parallel()
	for i, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			killEach(t, mode.args, sampled, i*sampled/2)
		})
	}
}

// killEach kills at every n-th point of a mode, from the given one on.
func killEach(t *testing.T, args []string, n, from int) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range []life{healed, handed} {
		for _, point := range l.points(t, args) {
			if seen[point] {
				continue
			}
			seen[point] = true
			if (len(seen)+from)%n != 0 {
				continue
			}
			t.Run(l.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				l.killed(t, point, args)
			})
		}
	}
	require.Greater(t, len(seen), 80)
}
