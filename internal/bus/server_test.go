package bus

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// foreign is a NATS server that is not ours.
func foreign(t *testing.T, opts server.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	opts.StoreDir = t.TempDir()
	ns, err := server.NewServer(&opts)
	require.NoError(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	require.True(t, ns.ReadyForConnections(patience))
	return ns.ClientURL()
}

func TestServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	_, err := Connect(t.Context(), foreign(t, server.Options{}), "t", zerolog.Nop())
	require.ErrorContains(t, err, "start it with -js")
}

func TestVersions(t *testing.T) {
	t.Parallel()
	require.True(t, atLeast("2.14.0", minServer))
	require.True(t, atLeast("2.15.2", minServer))
	require.True(t, atLeast("3.0.0-beta.1", minServer))
	require.False(t, atLeast("2.9.25", minServer))
	require.False(t, atLeast("", minServer))
}

// TestForeignServer heals on a server that is not ours, with a worker that
// has no home, by whose streams we do not trip.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := foreign(t, server.Options{JetStream: true})
	b, err := Connect(ctx, url, "t", zerolog.Nop())
	require.NoError(t, err)
	defer b.Close()
	for range 2 {
		require.NoError(t, b.Provision(ctx, 1))
	}
	other, err := Connect(ctx, url, "other", zerolog.Nop())
	require.NoError(t, err)
	defer other.Close()
	got := make(chan Job, 1)
	w := Worker{Name: run.Snapshot, Handle: stuck(got)}
	require.NoError(t, b.ProvisionWorker(ctx, w))
	c, err := NewConductor(b, ConductorConfig{Intake: anytime(accept)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 2)
	go func() { done <- c.Run(ctx) }()
	go func() { done <- other.Work(ctx, w) }()
	tb := &bench{tb: t, core: b}
	id := tb.submit("k")
	require.Equal(t, id, recv(t, got).Run)
	cancel()
	require.NoError(t, recv(t, done))
	require.NoError(t, recv(t, done))
}

func TestUnsuitableStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts server.Options
		make jetstream.StreamConfig
		want string
	}{
		"name is taken":      {make: jetstream.StreamConfig{Name: "TASKS", Subjects: []string{"jobs.>"}}, want: "is not ours: it holds [jobs.>]: use an account of its own"},
		"retention differs":  {make: jetstream.StreamConfig{Name: "OUTCOMES", Subjects: []string{"nexus.outcome.*.*.*"}}, want: "is not ours"},
		"subjects are taken": {make: jetstream.StreamConfig{Name: "LOG", Subjects: []string{"nexus.run.>"}}, want: "use an account of its own"},
		"newer format": {make: jetstream.StreamConfig{
			Name: "RUNS", Subjects: []string{"nexus.run.*.*.*"}, Metadata: map[string]string{formatKey: "2"},
		}, want: "newer nexus"},
		"small store": {opts: server.Options{JetStreamMaxStore: 1 << 30}, want: "raise the JetStream limits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c.opts.JetStream = true
			b, err := Connect(ctx, foreign(t, c.opts), "t", zerolog.Nop())
			require.NoError(t, err)
			defer b.Close()
			if c.make.Name != "" {
				_, err = b.js.CreateStream(ctx, c.make)
				require.NoError(t, err)
			}
			require.ErrorContains(t, b.Provision(ctx, 1), c.want)
			if c.make.Name != "" {
				s, err := b.js.Stream(ctx, c.make.Name)
				require.NoError(t, err)
				require.Equal(t, c.make.Subjects, s.CachedInfo().Config.Subjects, "it is left alone")
			}
		})
	}
}

func TestProvisionKeepsTheSize(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{noConductor: true, provision: []ProvisionOption{RunsBytes(1 << 20)}})
	require.NoError(t, b.core.Provision(ctx, 1))
	u, err := b.core.Usages(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, u[0].MaxBytes)
	require.NoError(t, b.core.Provision(ctx, 1, RunsBytes(2<<20)))
	u, err = b.core.Usages(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, u[0].MaxBytes)
	require.ErrorContains(t, b.core.Provision(ctx, 1, RunsBytes(5)), "64 KiB")
}

func TestPortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	began := time.Now()
	_, err = StartServer(ServerConfig{StateDir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port, Log: zerolog.Nop()})
	require.ErrorContains(t, err, "address already in use")
	require.Less(t, time.Since(began), startTimeout/2)
}

// TestRoles tries what each role must not and must be able to publish.
func TestRoles(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 26)
	b := start(t, setup{noConductor: true})
	for role, c := range map[string]struct{ may, mayNot []string }{
		roleCore: {
			may:    []string{"nexus.run.opened." + id + ".1", "nexus.later." + id + ".retry", "nexus.outcome.sweeper." + id + ".3"},
			mayNot: []string{"nexus.timer." + id + ".deadline"},
		},
		"test": {
			may: []string{"nexus.outcome.test." + id + ".4", "nexus.dead.poison." + id + ".4", "nexus.tried.test." + id + ".4"},
			mayNot: []string{
				"nexus.outcome.deliver." + id + ".4", "nexus.outcome.operator." + id + ".0", "nexus.outcome.sweeper." + id + ".4",
				"nexus.run.ended." + id + ".5", "nexus.patch.test." + id + ".5", "nexus.timer." + id + ".deadline",
				"nexus.later." + id + ".deadline", "nexus.task.local.heal", "nexus.dead.refused." + id + ".0", "nexus.tried.deliver." + id + ".4",
				"$JS.API.STREAM.DELETE.RUNS", "$JS.API.STREAM.PURGE.RUNS", "$JS.API.CONSUMER.DELETE.RUNS.worker-test-here",
				"$JS.API.CONSUMER.CREATE.RUNS.mine", "$JS.API.CONSUMER.MSG.NEXT.OUTCOMES.conductor", "$JS.ACK.OUTCOMES.conductor.1.1.1.1.1",
				"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.RUNS.x",
			},
		},
		RoleLocal: {
			may: []string{"nexus.task.local.heal", "nexus.outcome.operator." + id + ".0"},
			mayNot: []string{
				"nexus.task.other.heal", "nexus.outcome.operator." + id + ".7", "nexus.outcome.test." + id + ".4",
				"nexus.run.opened." + id + ".1", "nexus.agent.debugger." + id + ".2", "nexus.timer." + id + ".deadline",
				"nexus.later." + id + ".deadline", "nexus.dead.poison." + id + ".4", "$O.ARTIFACTS.C.x", "$JS.ACK.RUNS.worker-test-here.1.1.1.1.1",
				"$JS.API.STREAM.DELETE.RUNS", "$JS.API.CONSUMER.MSG.NEXT.TASKS.conductor", "$JS.API.CONSUMER.RESET.RUNS.worker-test-here",
				"$JS.API.CONSUMER.DELETE.RUNS.worker-test-here", "$JS.API.CONSUMER.CREATE.RUNS.worker-test-here", "$JS.API.CONSUMER.CREATE.RUNS",
				"$JS.API.CONSUMER.DURABLE.CREATE.RUNS.worker-test-here", "$JS.API.CONSUMER.MSG.NEXT.RUNS.worker-test-here",
				"$JS.API.CONSUMER.PAUSE.RUNS.worker-test-here", "$JS.API.CONSUMER.UNPIN.RUNS.worker-test-here",
			},
		},
	} {
		bus := b.connect(role)
		for _, s := range append(c.may, c.mayNot...) {
			require.NoError(t, bus.nc.Publish(s, []byte("{}")))
		}
		for _, s := range c.mayNot {
			require.Eventually(t, func() bool { _, denied := bus.denied.Load(s); return denied }, patience, time.Millisecond, "%s published %s", role, s)
		}
		for _, s := range c.may {
			_, denied := bus.denied.Load(s)
			require.False(t, denied, "%s may publish %s", role, s)
		}
	}
	_, err := b.srv.Connect(t.Context(), "nobody", zerolog.Nop())
	require.ErrorContains(t, err, "nobody")
}

// TestDeniedPublish: the refusal is an error of its own, not a timeout that
// nobody understands.
func TestDeniedPublish(t *testing.T) {
	t.Parallel()
	b := start(t, setup{noConductor: true})
	local := b.connect(RoleLocal)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := local.publishOutcome(ctx, "test", strings.Repeat("a", 26), 4, outcomeOf(Worker{}, run.Answer{}, errTest))
	require.ErrorIs(t, err, errDenied)
}

// TestRolesHear: no role hears another one's answers.
func TestRolesHear(t *testing.T) {
	t.Parallel()
	b := start(t, setup{noConductor: true})
	for role, subject := range map[string]string{RoleLocal: "_NEXUS.>", "test": "_INBOX.>", "deliver": "_NEXUS.test.>"} {
		bus := b.connect(role)
		_, err := bus.nc.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, bus.nc.Flush())
		require.Eventually(t, func() bool { return bus.nc.LastError() != nil }, patience, time.Millisecond, role)
		require.ErrorContains(t, bus.nc.LastError(), "permissions violation", role)
	}
}

// TestWatchSeesThatTheStreamsAreGone: a server whose files were removed answers
// as if nothing had happened, and stores nothing.
func TestWatchSeesThatTheStreamsAreGone(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	srv, err := StartServer(ServerConfig{StateDir: state, Log: zerolog.Nop()})
	require.NoError(t, err)
	defer srv.Stop()
	require.NoError(t, os.MkdirAll(filepath.Join(state, "jetstream", "jetstream", ".backup.tmp"), 0o700))
	require.NoError(t, srv.broken(), "a foreign folder hinders nobody")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, srv.Watch(ended))
	require.NoError(t, os.RemoveAll(filepath.Join(state, "jetstream")))
	require.ErrorContains(t, srv.Watch(t.Context()), "were removed while the server ran")
}
