package bus

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestRunIsApproved(t *testing.T) {
	t.Parallel()
	settled := make(chan run.State, 10)
	b := start(t, setup{sync: true, workers: healers(), settled: func(s run.State) { settled <- s }})
	id := b.submit("k1")
	require.Equal(t, id, b.submit("k1"))
	s := b.finish(id)
	require.Equal(t, run.Approved, s.Ended.State)
	require.Equal(t, "t1", s.Settled.After)
	require.Equal(t, id, recv(t, settled).ID)
	runs, err := b.core.Runs(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]bool{id: true}, runs)
	found, err := b.core.FindRun(t.Context(), id[:5])
	require.NoError(t, err)
	require.Equal(t, id, found)
	diffs, err := run.Verify(id, b.log(id).Events)
	require.NoError(t, err)
	require.Empty(t, diffs)
}

// TestSameTaskIsOneRun publishes one task several times: in the window in
// which the server itself forgets repetitions, without it, and across a
// restart.
func TestSameTaskIsOneRun(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	publish := func(b *bench) {
		msg := nats.NewMsg("nexus.task.local.heal")
		msg.Header.Set("Idempotency-Key", "k")
		msg.Data = []byte(`{"dir":"/p"}`)
		_, err := b.core.js.PublishMsg(t.Context(), msg) // without a message id
		require.NoError(t, err)
	}
	id := b.submit("k")
	publish(b)
	b.finish(id)
	publish(b)
	n := len(b.log(id).Events)
	b.finish(b.submit("later"))
	b.stop()

	b = start(t, setup{dir: b.set.dir, workers: healers()})
	publish(b)
	b.finish(b.submit("last"))
	require.Len(t, b.log(id).Events, n)
	runs, err := b.core.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, runs, 3)
}

func TestRefusedTask(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers(), intake: func(tenant string, h wire.Heal) (run.Task, error) {
		if h.Dir == "/secret" {
			return run.Task{}, errTest
		}
		return accept(tenant, h)
	}})
	id, err := b.core.Submit(t.Context(), "local", "bad", wire.Heal{Dir: "/secret"})
	require.NoError(t, err)
	b.letter("", func(l Letter) bool { return l.Run == id })
	l, err := b.core.Refusal(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "refused", l.Category)
	require.Equal(t, errTest.Error(), l.Reason)
	good := b.submit("good")
	require.Equal(t, run.Approved, b.finish(good).Ended.State)
	l, err = b.core.Refusal(t.Context(), good)
	require.NoError(t, err)
	require.Nil(t, l)
}

// TestRefusalOfAnOpenRun: rules that changed since do not bury the task of a
// run that is open.
func TestRefusalOfAnOpenRun(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	id := b.submit("k")
	b.finish(id)
	b.stop()
	b = start(t, setup{dir: b.set.dir, workers: healers(), intake: func(tenant string, h wire.Heal) (run.Task, error) {
		if h.Dir == "/p" {
			return run.Task{}, errTest
		}
		return accept(tenant, h)
	}})
	msg := nats.NewMsg("nexus.task.local.heal")
	msg.Header.Set("Idempotency-Key", "k")
	msg.Data = []byte(`{"dir":"/p"}`)
	_, err := b.core.js.PublishMsg(t.Context(), msg)
	require.NoError(t, err)
	other, err := b.core.Submit(t.Context(), "local", "o", wire.Heal{Dir: "/o"})
	require.NoError(t, err)
	b.finish(other)
	l, err := b.core.Refusal(t.Context(), id)
	require.NoError(t, err)
	require.Nil(t, l)
}

// TestStrangers publishes tasks with clients that are not ours.
func TestStrangers(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	t.Run("plain client", func(t *testing.T) {
		nc := b.stranger()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		msg := nats.NewMsg("nexus.task.local.heal")
		msg.Header = nats.Header{"ce-source": {"/ci"}, "ce-id": {"42"}, "ce-specversion": {"1.0"}, "ce-type": {"x"}}
		msg.Data = []byte(`{"dir":"/p"}`)
		_, err = js.PublishMsg(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, run.Approved, b.finish(wire.RunID("local", "event", "/ci", "42")).Ended.State)
	})
	t.Run("raw protocol", func(t *testing.T) {
		u, err := url.Parse(b.srv.URL())
		require.NoError(t, err)
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", u.Host)
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		pass, _ := u.User.Password()
		head := "NATS/1.0\r\nIdempotency-Key: raw\r\n\r\n"
		body := `{"dir":"/p"}`
		_, err = fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":false,\"headers\":true}\r\nHPUB nexus.task.local.heal %d %d\r\n%s%s\r\nPING\r\n",
			u.User.Username(), pass, len(head), len(head)+len(body), head, body)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "PONG"; {
			require.False(t, strings.HasPrefix(lines.Text(), "-ERR"), lines.Text())
		}
		require.Equal(t, run.Approved, b.finish(wire.RunID("local", "key", "raw")).Ended.State)
	})
	t.Run("without any key", func(t *testing.T) {
		opened := make(chan string, 1)
		sub, err := b.core.nc.Subscribe("nexus.run.opened.*.1", func(m *nats.Msg) {
			opened <- strings.Split(m.Subject, ".")[3]
		})
		require.NoError(t, err)
		require.NoError(t, b.core.nc.Flush())
		require.NoError(t, b.stranger().Publish("nexus.task.local.heal", []byte(`{"dir":"/p"}`)))
		require.Equal(t, run.Approved, b.finish(recv(t, opened)).Ended.State)
		require.NoError(t, sub.Unsubscribe())
	})
}

// TestPoison publishes what nobody can read: each becomes a dead letter with
// its reason, and the next task works.
func TestPoison(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := start(t, setup{workers: healers()})
	unknown := strings.Repeat("a", 26)
	for name, c := range map[string]struct{ subject, body, reason string }{
		"task: no JSON":           {"nexus.task.local.heal", `{`, "not JSON"},
		"task: schema":            {"nexus.task.local.heal", `{"dir":7}`, "dir"},
		"task: unknown kind":      {"nexus.task.local.dance", `{}`, "dance"},
		"task: bad tenant":        {"nexus.task.lo$cal.heal", `{}`, "subject"},
		"outcome: no JSON":        {"nexus.outcome.test." + unknown + ".3", `nonsense`, "malformed"},
		"outcome: two answers":    {"nexus.outcome.test." + unknown + ".4", `{"answer":{"test":{},"debug":{}}}`, "one worker"},
		"outcome: bad run":        {"nexus.outcome.test.RUN.3", `{}`, "subject"},
		"outcome: forged order":   {"nexus.outcome.test." + unknown + ".5", `{"order":{"kind":"cancel"}}`, "operator"},
		"outcome: numbered order": {"nexus.outcome.operator." + unknown + ".6", `{"order":{"kind":"cancel"}}`, "answers no ask"},
		"event: no JSON":          {"nexus.agent.debugger." + unknown + ".2", `nonsense`, "malformed"},
		"event: no ask":           {"nexus.patch.test." + unknown + ".2", `{"decider":1}`, "no body"},
		"event: other ask":        {"nexus.agent.guardian." + unknown + ".2", `{"decider":1,"ask":{"worker":"policy"}}`, "no body"},
	} {
		_, err := b.core.js.Publish(ctx, c.subject, []byte(c.body))
		require.NoError(t, err, name)
		l := b.letter(name, func(l Letter) bool {
			return l.Category == "poison" && l.Subject == c.subject && string(l.Payload) == c.body
		})
		require.Contains(t, l.Reason, c.reason, name)
	}
	require.Equal(t, run.Approved, b.finish(b.submit("next")).Ended.State)
}

// TestFiredTimerOfNoRun: the server alone can publish there, which a schedule
// of ours with a wrong name makes it do.
func TestFiredTimerOfNoRun(t *testing.T) {
	t.Parallel()
	b := start(t, setup{workers: healers()})
	msg := &nats.Msg{Subject: "nexus.later.x.y", Header: nats.Header{
		jetstream.ScheduleHeader:       {"@at " + time.Now().UTC().Format(time.RFC3339Nano)},
		jetstream.ScheduleTargetHeader: {"nexus.timer.x.y"},
	}}
	_, err := b.core.js.PublishMsg(t.Context(), msg)
	require.NoError(t, err)
	require.Contains(t, b.letter("", func(l Letter) bool { return l.Subject == "nexus.timer.x.y" }).Reason, "subject")
	require.NoError(t, b.core.arm(t.Context(), strings.Repeat("b", 26), run.Timer{Name: "deadline", At: time.Now()}))
	require.Equal(t, run.Approved, b.finish(b.submit("next")).Ended.State)
}
