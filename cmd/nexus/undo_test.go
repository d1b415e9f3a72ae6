package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// created is a fix that moves the work to a new file in a new folder.
const created = "Here it is:\n\nlib/ops.py\n```python\ndef plus(a, b):\n    return a + b\n```\n\ncalc.py\n```python\nfrom lib.ops import plus\n\n\ndef add(a, b):\n    return plus(a, b)\n\n\ndef mul(a, b):\n    return a * b\n```\n"

// TestUndo: a delivery is taken back byte for byte, folders that it made too,
// also when the process was killed in the middle of it.
func TestUndo(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"modify": fenced(calcFixed), "create": created} {
		for _, kill := range []string{"", "rollback.journal.begin.after", "rollback.swap.after", "rollback.clear.before"} {
			if name == "modify" && kill != "" {
				continue // a create has every kind of effect
			}
			t.Run(name+"/"+kill, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.script(answer(text))
				dir := w.project("calc")
				before := w.tree(dir)
				sum, r := w.heal(dir, modes[0].args...)
				require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
				w.write(dir, "mine.txt", "later")
				if kill != "" {
					r = w.with([]string{fault.EnvKill + "=" + kill}, "undo", sum.Run)
					require.Equal(t, -1, r.exit, "%s%s", r.out, r.err)
				}
				r = w.nexus("undo", sum.Run[:8], "--by", "ann", "--json")
				require.Zero(t, r.exit, r.err)
				var out undone
				require.NoError(t, json.Unmarshal([]byte(r.out), &out))
				require.False(t, out.Whole, "mine.txt is new")
				require.NoError(t, os.Remove(filepath.Join(dir, "mine.txt")))
				require.Equal(t, before, w.tree(dir))
				w.clean(dir)
				r = w.nexus("undo", sum.Run[:8])
				require.Zero(t, r.exit, "a second time is no error: %s", r.err)
				require.Contains(t, r.out, "the folder is as it was before run")
				require.Contains(t, w.nexus("run", "show", sum.Run).out, "undone    by")
			})
		}
	}
}

// TestHealAfterAKilledUndo: an undo that was killed in the middle, and is not
// repeated, is taken back by the next command; nothing stays half undone.
func TestHealAfterAKilledUndo(t *testing.T) {
	t.Parallel()
	for kill, next := range map[string]string{
		"rollback.stage.sync.after": "heal", "rollback.swap.after": "run",
		"rollback.clear.before": "heal", "rollback.journal.close.after": "heal",
	} {
		t.Run(kill+"/"+next, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script(answer(created))
			dir := w.project("calc")
			before := w.tree(dir)
			sum, r := w.heal(dir, modes[0].args...)
			require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
			fixed := w.tree(dir)
			r = w.with([]string{fault.EnvKill + "=" + kill}, "undo", sum.Run)
			require.Equal(t, -1, r.exit, "%s%s", r.out, r.err)
			if next == "run" { // of another folder
				_, r = w.heal(w.project("other"), "--source", "engine")
				require.Zero(t, r.exit, r.err)
			} else if kill != "rollback.journal.close.after" {
				_, r = w.heal(dir, modes[0].args...)
				require.Zero(t, r.exit, "%s\n%s", r.out, r.err)
			} else { // it was complete: the bug is there again
				_, r = w.heal(dir, "--source", "engine", "--dry-run")
				require.Zero(t, r.exit, "%s\n%s", r.out, r.err)
			}
			want := fixed
			if kill == "rollback.journal.close.after" {
				want = before
			}
			require.Equal(t, want, w.tree(dir))
			w.clean(dir)
		})
	}
}

// TestUndoRefuses: what somebody changed since is never overwritten, and then
// nothing is written at all; a run that wrote nothing cannot be undone.
func TestUndoRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(created), "answer times=* "+answer("no idea")[len("answer "):])
	dir := w.project("calc")
	sum, r := w.heal(dir, modes[0].args...)
	require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
	w.write(dir, "lib/ops.py", "mine\n")
	before := w.tree(dir)
	r = w.nexus("undo", sum.Run)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "lib/ops.py")
	require.Contains(t, r.err, "apply -R --3way")
	require.Equal(t, before, w.tree(dir))
	require.NotContains(t, w.nexus("run", "show", sum.Run).out, "undone")
	w.clean(dir)

	w.write(dir, "lib/ops.py", "def plus(a, b):\n    return a - b\n")
	sum, _ = w.heal(dir, modes[0].args...)
	require.Equal(t, run.NeedsHumanReview, sum.State)
	r = w.nexus("undo", sum.Run)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "wrote nothing to its folder")
}
