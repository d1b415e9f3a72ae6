package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

const runID = "abcdefghijklmnopqrstuvwx23"

// names are all names of events, with the area that their subjects have.
var names = map[string]string{
	"snapshot": "run", "debugger": "agent", "validate": "patch", "apply": "patch", "test": "patch",
	"guardian": "agent", "policy": "agent", "deliver": "run", "rollback": "run", "report": "run",
	"opened": "run", "result": "run", "due": "run", "cancelling": "run", "ended": "run", "settled": "run", "closed": "run",
}

func TestEventSubjects(t *testing.T) {
	t.Parallel()
	for name, area := range names {
		subject := wire.EventSubject(runID, name, 7)
		require.Equal(t, "nexus."+area+"."+name+"."+runID+".7", subject)
		a, err := wire.ParseEvent(subject)
		require.NoError(t, err)
		require.Equal(t, wire.Address{Name: name, Run: runID, N: 7}, a)
		for _, filter := range []string{
			wire.AllEvents, wire.RunFilter(runID), wire.NameFilter(name), wire.NameOf(runID, name), "nexus." + area + ".*.*.*",
		} {
			require.True(t, matches(filter, subject), "%s does not match %s", filter, subject)
		}
		require.Contains(t, wire.RunSpaces(), "nexus."+area+".*.*.*")
		other := wire.EventSubject(strings.Repeat("z", 26), name, 7)
		require.False(t, matches(wire.RunFilter(runID), other))
		require.False(t, matches(wire.NameOf(runID, name), other))
	}
}

func TestOtherSubjects(t *testing.T) {
	t.Parallel()
	a, err := wire.ParseOutcome(wire.OutcomeSubject("operator", runID, 0))
	require.NoError(t, err)
	require.Equal(t, wire.Address{Name: "operator", Run: runID}, a)
	require.True(t, matches(wire.OutcomeSpace, wire.OutcomeSubject("test", runID, 3)))

	tenant, kind, err := wire.ParseTask(wire.TaskSubject("local", wire.KindHeal))
	require.NoError(t, err)
	require.Equal(t, []string{"local", "heal"}, []string{tenant, kind})
	require.True(t, matches(wire.TaskSpace, wire.TaskSubject("local", wire.KindHeal)))

	id, name, err := wire.ParseTimer(wire.TimerSubject(runID, run.TimerRetry))
	require.NoError(t, err)
	require.Equal(t, []string{runID, "retry"}, []string{id, name})
	require.True(t, matches(wire.TimerSpace, wire.TimerSubject(runID, run.TimerRetry)))
	require.True(t, matches(wire.LaterSpace, wire.LaterSubject(runID, run.TimerRetry)))
	require.True(t, matches(wire.TriedSpace, wire.TriedSubject("test", runID, 3)))
	require.True(t, matches(wire.BurstSpace, wire.BurstSubject("unexpected")))
	require.True(t, matches(wire.DeadFilter("poison"), wire.DeadSubject("poison", "none", 17)))
	require.True(t, matches(wire.DeadSpace, wire.DeadSubject("poison", "none", 17)))
}

// A subject of ours is one that this package would build, to the letter: the
// number is part of what makes an event the one with that number.
func TestForeignSubjects(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "nexus", "nexus.run.opened." + runID, "nexus.run.opened." + runID + ".1.2", "other.run.opened." + runID + ".1",
		"nexus.agent.opened." + runID + ".1", "nexus.run.debugger." + runID + ".1", "nexus.outcome.test." + runID + ".1",
		"nexus.run..%s.1", "nexus.run.*." + runID + ".1", "nexus.run.>." + runID + ".1", "nexus.run.a b." + runID + ".1",
		"nexus.run.opened." + runID + ".0", "nexus.run.opened." + runID + ".-1", "nexus.run.opened." + runID + ".+1",
		"nexus.run.opened." + runID + ".01", "nexus.run.opened." + runID + ".1e3", "nexus.run.opened." + runID + ".",
		"nexus.run.opened." + runID + ".99999999999999999999", "nexus.run.opened.UPPERCASEUPPERCASEUPPERCA2.1",
		"nexus.run.opened.short.1", "nexus.run.opened.abcdefghijklmnopqrstuvwx01.1",
	} {
		_, err := wire.ParseEvent(s)
		require.ErrorIs(t, err, wire.ErrSubject, s)
	}
	for _, s := range []string{
		"nexus.outcome.test." + runID + ".-1", "nexus.outcome.test." + runID + ".00", "nexus.outcome..." + runID + ".1",
		"nexus.outcome.*." + runID + ".1", "nexus.outcome.test.x.1", "nexus.outcome.test." + runID, "nexus.task.test." + runID + ".1",
	} {
		_, err := wire.ParseOutcome(s)
		require.ErrorIs(t, err, wire.ErrSubject, s)
	}
	for _, s := range []string{"nexus.task.local", "nexus.task..heal", "nexus.task.local.*", "nexus.task.local.heal.x", "x.task.local.heal"} {
		_, _, err := wire.ParseTask(s)
		require.ErrorIs(t, err, wire.ErrSubject, s)
	}
	for _, s := range []string{"nexus.timer." + runID, "nexus.timer.x.retry", "nexus.timer." + runID + ".>", "nexus.later." + runID + ".retry"} {
		_, _, err := wire.ParseTimer(s)
		require.ErrorIs(t, err, wire.ErrSubject, s)
	}
}

func TestRunIDs(t *testing.T) {
	t.Parallel()
	id := wire.RunID("local", "key", "01J")
	require.True(t, wire.ValidRun(id))
	require.Equal(t, id, wire.RunID("local", "key", "01J"))
	for _, other := range []string{
		wire.RunID("other", "key", "01J"), wire.RunID("local", "key0", "1J"), wire.RunID("local", "key01J"), wire.RunID("localkey", "01J"),
	} {
		require.NotEqual(t, id, other)
	}
}

// FuzzSubjects: what a parser accepts is exactly what its builder builds.
func FuzzSubjects(f *testing.F) {
	for name := range names {
		f.Add(wire.EventSubject(runID, name, 1))
	}
	f.Add(wire.OutcomeSubject("test", runID, 0))
	f.Add(wire.TaskSubject("local", "heal"))
	f.Add(wire.TimerSubject(runID, "retry"))
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := wire.ParseEvent(s); err == nil {
			require.Equal(t, s, wire.EventSubject(a.Run, a.Name, a.N))
			require.True(t, matches(wire.RunFilter(a.Run), s))
		}
		if a, err := wire.ParseOutcome(s); err == nil {
			require.Equal(t, s, wire.OutcomeSubject(a.Name, a.Run, a.N))
		}
		if tenant, kind, err := wire.ParseTask(s); err == nil {
			require.Equal(t, s, wire.TaskSubject(tenant, kind))
		}
		if id, name, err := wire.ParseTimer(s); err == nil {
			require.Equal(t, s, wire.TimerSubject(id, name))
		}
	})
}

// matches reports whether a filter with * matches the subject, as a server
// does it.
func matches(filter, subject string) bool {
	f, s := strings.Split(filter, "."), strings.Split(subject, ".")
	if len(f) != len(s) {
		return false
	}
	for i := range f {
		if f[i] != "*" && f[i] != s[i] {
			return false
		}
	}
	return true
}
