package bus

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// refusing lets every task in but those for /secret.
func refusing(tenant string, h wire.Heal) (run.Task, error) {
	if h.Dir == "/secret" {
		return run.Task{}, errTest
	}
	return accept(tenant, h)
}

// TestRequeue: a task that nobody could read is mended by a person, gets a
// new id, and its letter is gone; before that nothing is lost.
func TestRequeue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers(), intake: refusing})
	client := b.attach()
	require.NoError(t, b.stranger().Publish("nexus.task.local.heal", []byte(`{"dir":7}`)))
	l := b.letter("", func(l Letter) bool { return l.Category == "poison" })
	got, err := client.DeadLetter(ctx, l.ID)
	require.NoError(t, err)
	require.Equal(t, l, got)
	tenant, body, err := client.LetterTask(ctx, l)
	require.NoError(t, err)
	require.Equal(t, "local", tenant)
	require.JSONEq(t, `{"dir":7}`, string(body))

	_, err = client.Requeue(ctx, l, tenant, body)
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = client.DeadLetter(ctx, l.ID)
	require.NoError(t, err, "a refused requeue keeps the letter")

	id, err := client.Requeue(ctx, l, tenant, []byte(`{"dir":"/p"}`))
	require.NoError(t, err)
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
	again, err := client.Requeue(ctx, l, tenant, []byte(`{"dir":"/p"}`))
	require.NoError(t, err)
	require.Equal(t, id, again, "the same letter with the same body is one run")
	_, err = client.DeadLetter(ctx, l.ID)
	require.ErrorIs(t, err, ErrNoLetter)
	require.ErrorIs(t, client.DropLetter(ctx, l.ID), ErrNoLetter)
}

// TestATaskWithAnUnknownField: nothing is healed, and the letter says which
// field was meant.
func TestATaskWithAnUnknownField(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	require.NoError(t, b.stranger().Publish("nexus.task.local.heal", []byte(`{"dir":"/p","dry_run":true}`)))
	l := b.letter("", func(l Letter) bool { return l.Category == "poison" })
	require.Contains(t, l.Reason, `unknown field "dry_run": a task says "deliver": "none"`)
}

// TestRequeueOfARun: the letter of a run that broke starts the run's task
// anew, with the task's own settings.
func TestRequeueOfARun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers()})
	three := 3
	first, err := b.core.Submit(ctx, "local", "k", wire.Heal{Dir: "/p", Limits: &wire.HealLimits{DebugAttempts: &three}})
	require.NoError(t, err)
	b.finish(first)
	require.NoError(t, b.core.bury(ctx, Letter{Category: "unexpected", Reason: "it broke", Run: first, Ask: 2, Worker: "test"}))
	l := b.letter("", func(l Letter) bool { return l.Run == first })
	tenant, body, err := b.core.LetterTask(ctx, l)
	require.NoError(t, err)
	var h wire.Heal
	require.NoError(t, json.Unmarshal(body, &h))
	require.Equal(t, "/p", h.Dir)
	require.Equal(t, 3, *h.Limits.DebugAttempts)
	id, err := b.core.Requeue(ctx, l, tenant, body)
	require.NoError(t, err)
	require.NotEqual(t, first, id)
	require.Equal(t, run.Approved, b.finish(id).Ended.State)
}

// TestLettersThatStartNothing: what is about no task can be read and dropped,
// and one that cannot be read does not hide the others.
func TestLettersThatStartNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers()})
	unknown := strings.Repeat("a", 26)
	for subject, body := range map[string]string{
		"nexus.dead.poison.none.9":            "no letter at all",
		"nexus.outcome.test.RUN.3":            `{}`,
		wire.EventSubject(unknown, "test", 2): "nonsense",
	} {
		_, err := b.core.js.Publish(ctx, subject, []byte(body))
		require.NoError(t, err)
	}
	for _, ok := range []func(Letter) bool{
		func(l Letter) bool { return l.Category == "unreadable" && string(l.Payload) == "no letter at all" },
		func(l Letter) bool { return l.Subject == "nexus.outcome.test.RUN.3" },
		func(l Letter) bool { return l.Subject == wire.EventSubject(unknown, "test", 2) },
	} {
		l := b.letter("", ok)
		_, _, err := b.core.LetterTask(ctx, l)
		require.ErrorIs(t, err, ErrNoTask)
		require.NoError(t, b.core.DropLetter(ctx, l.ID))
	}
	left, err := b.core.DeadLetters(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestCutLetter: a message that is longer than its letter is not started from
// its beginning alone.
func TestCutLetter(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	long := `{"dir":7,"x":"` + strings.Repeat("x", maxPayload) + `"}`
	require.NoError(t, b.stranger().Publish("nexus.task.local.heal", []byte(long)))
	l := b.letter("", func(l Letter) bool { return l.Cut })
	require.Len(t, l.Payload, maxPayload)
	_, _, err := b.core.LetterTask(t.Context(), l)
	require.ErrorIs(t, err, ErrCut)
}
