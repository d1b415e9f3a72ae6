//go:build drill

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// testFiles is how many test files a large project has.
const testFiles = 9_000

// TestDrillLargeProject: a run of a project with thousands of test files
// ends as that of a small one does, whether it is healed or handed over.
func TestDrillLargeProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(wrong)), answer(fenced(calcFixed)))
	dir := w.project("calc")
	for i := range testFiles {
		w.write(dir, fmt.Sprintf("tests/group_%02d/test_case_number_%05d.py", i%90, i), "def test():\n    pass\n")
	}
	before := w.tree(dir)
	args := []string{"--test", "python3 -m unittest test_calc", "--dry-run"}
	sum, r := w.heal(dir, append(args, "--source", "model")...)
	require.Equal(t, run.Approved, sum.State, "%.3000s\n%s", r.out, r.err)
	require.Len(t, sum.Tries, 2)
	sum, r = w.heal(dir, append(args, "--source", "engine")...)
	require.Equal(t, run.Approved, sum.State, "%.3000s\n%s", r.out, r.err)
	require.Equal(t, before, w.tree(dir))
	for line := range strings.SplitSeq(r.out, "\n") {
		require.Less(t, len(line), 64<<10, "an event of the log")
	}
}

// TestDrillManyRedTests: neither the ids of 20,000 red tests nor the
// output about them fit into an event, and the run hands over as any other.
func TestDrillManyRedTests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "NEXUS_DEBUG_MAX_RETRIES=1")
	w.script("answer times=* " + answer(fenced(wrong))[len("answer "):])
	dir := w.project("calc")
	w.write(dir, "test_many.py", `import unittest

from calc import add


class Many(unittest.TestCase):
    pass


for i in range(20_000):
    def check(self, i=i):
        if add(i, 1) != i + 1:
            raise AssertionError("<" * 40)
    setattr(Many, "test_with_a_rather_long_name_that_says_what_it_is_about_%05d" % i, check)
`)
	before := w.tree(dir)
	sum, r := w.heal(dir, "--test", "python3 -m unittest", "--source", "model")
	require.Equal(t, run.NeedsHumanReview, sum.State, "%.3000s\n%s", r.out, r.err)
	require.Equal(t, run.StatusPytestFail, sum.Tries[0].Status)
	require.NotEmpty(t, sum.Tries[0].FailedTests)
	require.Equal(t, before, w.tree(dir))
}
