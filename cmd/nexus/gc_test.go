package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/archive"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// The tests of gc let it run at another moment than now, in a process of their
// own that can be killed: this test binary, built with its fault points.
const (
	envGCNow   = "NEXUS_TEST_GC_NOW"
	envGCState = "NEXUS_TEST_GC_STATE"
)

// gcChild is that process.
func gcChild(now string) int {
	at, err := time.Parse(time.RFC3339Nano, now)
	if err == nil {
		c := gcCmd{Older: age(day), JSON: true, Common: common{State: os.Getenv(envGCState)}}
		err = c.collect(context.Background(), &env{out: os.Stdout, err: os.Stderr}, at)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var gcBinary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(binary), "gc.test")
	out, err := exec.CommandContext(context.Background(), "go", "test", "-c", "-tags", "nexusfault", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return file, err
})

// gcAt runs gc --older 1d on a state folder at that moment.
func (w *world) gcAt(state string, now time.Time, env ...string) (collected, result) {
	w.t.Helper()
	file, err := gcBinary()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), file)
	cmd.Env = append(append(append([]string{}, w.env...), env...), envGCNow+"="+now.Format(time.RFC3339Nano), envGCState+"="+state)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	var got collected
	if cmd.ProcessState.Success() {
		require.NoError(w.t, json.Unmarshal(out.Bytes(), &got), out.String())
	}
	return got, result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// attic is a state folder with runs of every fate; half are older than now
// minus a day.
type attic struct {
	*world
	state string
	now   time.Time
	// gone are the runs that gc must remove, stay those that it must keep.
	gone, stay []string
	// others is how many more stay, and reasons why those stay that are old.
	others  int
	reasons map[string]int
	// parked is the folder of a run that was interrupted.
	parked string
}

func newAttic(t *testing.T) *attic {
	t.Helper()
	w := newWorld(t)
	a := &attic{world: w, state: filepath.Join(w.dir, "state")}
	fixed, none := answer(fenced(calcFixed)), answer("I have no idea.")
	w.script(fixed, fixed, fixed, none, none, none, none, none, `status 401 "bad key"`, fixed, answer(fenced(wrong)), fixed, fixed)
	elsewhere := filepath.Join(w.dir, "elsewhere")
	heal := func(name, state string, ends run.Terminal) string {
		sum, r := w.heal(w.project(name), append([]string{"--state", state}, modes[0].args...)...)
		require.Equal(t, ends, sum.State, "%s\n%s", r.out, r.err)
		return sum.Run
	}
	done := func(args ...string) {
		r := w.nexus(append(args, "--state", a.state)...)
		require.Zero(t, r.exit, r.err)
	}
	foreign := heal("foreign", elsewhere, run.Approved)
	tar := filepath.Join(w.dir, "run.tar")
	require.Zero(t, w.nexus("run", "export", foreign, "--out", tar, "--state", elsewhere).exit)
	done("run", "import", tar)
	approved := heal("approved", a.state, run.Approved)
	claimed := heal("claimed", a.state, run.Approved)
	require.NoError(t, rollback.Claims{Path: filepath.Join(w.dir, "claims.json")}.Hold(filepath.Join(w.dir, "claimed"), rollback.Claim{Run: claimed, State: a.state}))
	rejected := heal("rejected", a.state, run.NeedsHumanReview)
	done("review", "reject", rejected)
	asked := heal("asked", a.state, run.NeedsHumanReview)
	retry := func(env []string, id string, exit int) {
		r := w.with(env, "review", "retry", id, "--source", "model", "--state", a.state)
		require.Equal(t, exit, r.exit, "%s%s", r.out, r.err)
	}
	retry(nil, asked, run.NeedsHumanReview.Exit())
	parent := heal("parent", a.state, run.NeedsHumanReview)
	queued := heal("queued", a.state, run.NeedsHumanReview)
	lettered := heal("lettered", a.state, run.Failed)
	done("review", "reject", lettered)
	a.parked = w.project("parked")
	r := w.with([]string{fault.EnvKill + "=bus.append.guardian"}, append([]string{"heal", a.parked, "--state", a.state}, modes[0].args...)...)
	require.Equal(t, -1, r.exit)
	a.now = time.Now().Add(day)
	young := heal("young", a.state, run.Approved)
	retry(nil, parent, 0)
	retry([]string{fault.EnvKill + "=bus.submitted"}, queued, -1)
	done("review", "reject", queued)
	a.gone, a.stay = []string{foreign, approved, rejected}, []string{young, asked, lettered, parent, queued, claimed}
	a.others = 3 // two retries, and what was interrupted
	a.reasons = map[string]int{
		"it waits for a person": 2, "a dead letter names it": 1, "it has not ended": 1, "a run that stays came of it": 1,
		"a queued task names it": 1, "it keeps a folder claimed": 1,
	}
	return a
}

// runs lists the ids that `run ls` shows.
func (a *attic) runs(state string) (ids []string) {
	a.t.Helper()
	r := a.nexus("run", "ls", "--json", "--state", state)
	require.Zero(a.t, r.exit, r.err)
	for line := range strings.Lines(r.out) {
		var sum run.Summary
		require.NoError(a.t, json.Unmarshal([]byte(line), &sum))
		ids = append(ids, sum.Run)
	}
	return ids
}

// whole checks that a run can be read and carried away with all that it names.
func (a *attic) whole(state, id string) {
	a.t.Helper()
	r := a.nexus("run", "export", id, "--out", filepath.Join(state, "x.tar"), "--state", state)
	require.Zero(a.t, r.exit, r.err)
	require.NotContains(a.t, r.err, "are gone")
}

// verified checks that a run is decided in the same way again.
func (a *attic) verified(state, id string) {
	a.t.Helper()
	r := a.nexus("replay", id, "--verify", "--state", state)
	require.Zero(a.t, r.exit, "%s%s", r.out, r.err)
}

// swept checks what a gc leaves that was not killed, or was completed.
func (a *attic) swept(state string) {
	a.t.Helper()
	ids := a.runs(state)
	require.Len(a.t, ids, len(a.stay)+a.others)
	require.Subset(a.t, ids, a.stay)
	for _, id := range a.stay {
		a.whole(state, id)
	}
	for _, folder := range archive.Folders() {
		entries, err := os.ReadDir(filepath.Join(state, folder))
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(a.t, err)
		}
		for _, e := range entries {
			require.NotContains(a.t, a.gone, archive.RunOfFile(e.Name()), "%s/%s", folder, e.Name())
		}
	}
}

func (a *attic) copied(t *testing.T) string {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	out, err := exec.CommandContext(t.Context(), "cp", "-a", a.state, state).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return state
}

// TestGC: old runs go with all that is theirs, at whatever moment gc is killed;
// every other run stays whole, and the next gc finishes the work.
func TestGC(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	list := filepath.Join(a.dir, "points")
	state := a.copied(t)
	got, r := a.gcAt(state, a.now, fault.EnvList+"="+list)
	require.Zero(t, r.exit, r.err)
	require.ElementsMatch(t, a.gone, append(got.Runs, got.Imported...))
	require.Positive(t, got.Artifacts)
	require.Positive(t, got.Files)
	require.Equal(t, a.reasons, got.Stay)
	for _, s := range got.Streams {
		if slices.Contains([]string{"RUNS", "IMPORTED", "OBJ_ARTIFACTS", "KV_REVIEWS"}, s.Name) {
			require.Less(t, s.After, s.Before, s.Name)
		}
	}
	a.swept(state)
	again, r := a.gcAt(state, a.now)
	require.Zero(t, r.exit, r.err)
	require.Zero(t, len(again.Runs)+len(again.Imported)+again.Artifacts+again.Files, "nothing is left: %s", r.out)

	text, err := os.ReadFile(list)
	require.NoError(t, err)
	seen := map[string]int{}
	for _, p := range strings.Fields(string(text)) {
		if strings.HasPrefix(p, "bus.remove") || strings.HasPrefix(p, "bus.artifact.") || strings.HasPrefix(p, "archive.") {
			seen[p]++
		}
	}
	for _, own := range []string{"bus.remove.rest", "bus.removed.run", "bus.remove.imported.rest", "bus.remove.note", "bus.artifact.undescribed", "archive.sweep.file"} {
		require.Contains(t, seen, own)
	}
	t.Run("killed", func(t *testing.T) {
		for i, point := range slices.Sorted(maps.Keys(seen)) {
			n := 1 // the first time that gc comes by, or the last
			if i%2 == 1 {
				n = seen[point]
			}
			t.Run(fmt.Sprintf("%s:%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := *a
				w := *a.world
				w.t, b.world = t, &w
				b.killed(fmt.Sprintf("%s:%d", point, n))
			})
		}
	})

	_, r = a.gcAt(a.state, a.now)
	require.Zero(t, r.exit, r.err)
	a.swept(a.state)
	sum, r := a.heal(a.parked, append([]string{"--state", a.state}, modes[0].args...)...)
	require.Equal(t, run.Approved, sum.State, "what was interrupted goes on: %s\n%s", r.out, r.err)
	for _, id := range append(a.stay, sum.Run) {
		a.verified(a.state, id)
	}
	r = a.nexus("undo", a.stay[0], "--state", a.state)
	require.Zero(t, r.exit, r.err)
	r = a.nexus("undo", a.gone[1], "--state", a.state)
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "no run")
}

func (a *attic) killed(point string) {
	a.t.Helper()
	state := a.copied(a.t)
	_, r := a.gcAt(state, a.now, fault.EnvKill+"="+point)
	require.Equal(a.t, -1, r.exit, "%s was not reached: %s", point, r.err)
	for _, id := range a.runs(state) {
		if slices.Contains(a.gone, id) {
			a.whole(state, id)
			a.verified(state, id)
		}
	}
	_, r = a.gcAt(state, a.now)
	require.Zero(a.t, r.exit, r.err)
	a.swept(state)
}

// What gc does not do, and what it says then.
func TestGCRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--older", "23h"}, "at least 1d"},
		{[]string{"--older", "soon"}, "30d or 36h"},
		{[]string{"--older=-2d"}, "30d or 36h"},
		{[]string{"--nats", "nats://127.0.0.1:1"}, "cannot be known"},
	} {
		r := w.nexus(append([]string{"gc"}, c.args...)...)
		require.Equal(t, 1, r.exit, "%v", c.args)
		require.Contains(t, strings.ReplaceAll(r.err, "\n", " "), c.says)
	}
	w.script(answer(fenced(calcFixed)))
	sum, _ := w.heal(w.project("calc"), modes[0].args...)
	r := w.nexus("gc", "--older", "0d", "--dry-run")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "would go: 1 run(s)")
	require.Contains(t, r.out, sum.Run)
	r = w.nexus("gc")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "gone: 0 run(s)")
	require.Contains(t, w.nexus("run", "ls").out, sum.Run[:8])
	r = w.nexus("doctor")
	require.Regexp(t, `streams: .*RUNS .*OBJ_ARTIFACTS`, r.out)
	require.Regexp(t, `folders: journal .*recordings`, r.out)
	require.NotContains(t, r.out, "nexus gc", "nothing is old")
	_, stop := w.up()
	defer stop()
	r = w.nexus("gc", "--dry-run")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "gc must be alone")
}
