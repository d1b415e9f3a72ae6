package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"nexuscore.dev/nexus/internal/wire"
)

// The streams.
const (
	streamRuns       = "RUNS"
	streamTasks      = "TASKS"
	streamOutcomes   = "OUTCOMES"
	streamTimers     = "TIMERS"
	streamDead       = "DEAD"
	streamAdvisories = "ADVISORIES"
	streamImported   = "IMPORTED"
	bucketReviews    = "REVIEWS"
	streamReviews    = "KV_" + bucketReviews
	bucketArtifacts  = "ARTIFACTS"
	streamArtifacts  = "OBJ_" + bucketArtifacts
)

// Sizes of the streams. RUNS has no age limit: a run leaves it only as a
// whole.
const (
	maxRuns       = 4 << 30
	maxTasks      = 256 << 20
	maxOutcomes   = 512 << 20
	maxTimers     = 256 << 20
	maxDead       = 512 << 20
	maxAdvisories = 64 << 20
	maxImported   = 512 << 20
	maxReviews    = 64 << 20
	maxArtifacts  = 12 << 30
	// dedupe is how long a stream remembers message ids.
	dedupe = 2 * time.Minute
	// advisoryAge is how long an advisory waits for the sweeper.
	advisoryAge = 7 * 24 * time.Hour
)

// formatKey marks a stream as ours; its value is the version of what it
// holds.
const formatKey, formatValue = "nexus-format", "1"

// streamConfigs are the streams of the system.
func streamConfigs(replicas int, runsBytes int64) []jetstream.StreamConfig {
	base := func(name string, size int64, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects, Storage: jetstream.FileStorage, Replicas: replicas,
			MaxBytes: size, Discard: jetstream.DiscardNew, AllowDirect: true, Duplicates: dedupe,
			Metadata: map[string]string{formatKey: formatValue},
		}
	}
	runs := base(streamRuns, runsBytes, wire.RunSpaces()...)
	runs.DenyDelete = true
	tasks := base(streamTasks, maxTasks, wire.TaskSpace)
	tasks.Retention = jetstream.WorkQueuePolicy
	outcomes := base(streamOutcomes, maxOutcomes, wire.OutcomeSpace)
	outcomes.Retention = jetstream.WorkQueuePolicy
	timers := base(streamTimers, maxTimers, wire.LaterSpace, wire.TimerSpace)
	timers.Discard = jetstream.DiscardOld // schedules and DiscardNew exclude each other
	timers.AllowMsgSchedules, timers.AllowMsgTTL = true, true
	advisories := base(streamAdvisories, maxAdvisories, advisoryMaxDeliveries, advisoryTerminated, wire.TriedSpace, wire.BurstSpace)
	advisories.Discard, advisories.MaxAge = jetstream.DiscardOld, advisoryAge
	dead := base(streamDead, maxDead, wire.DeadSpace)
	others := base(streamImported, maxImported, wire.ImportedSpace)
	return []jetstream.StreamConfig{runs, tasks, outcomes, timers, dead, advisories, others}
}

// ProvisionOption changes what Provision makes.
type ProvisionOption func(*provision) error

type provision struct{ runsBytes int64 }

// RunsBytes is the most bytes of the log of runs; default 4 GiB, at least
// 64 KiB. It changes an existing log.
func RunsBytes(n int64) ProvisionOption {
	return func(p *provision) error {
		if n < 64<<10 {
			return fmt.Errorf("bus: the log of runs needs at least 64 KiB, not %d bytes", n)
		}
		p.runsBytes = n
		return nil
	}
}

// Provision makes the streams and the conductor's consumers, or brings them
// up to date. replicas is 1 for an embedded server; a stream that has more
// keeps them. A stream of that name which is not ours is left alone, and the
// error says what to do. Nothing else may use the bus meanwhile.
func (b *Bus) Provision(ctx context.Context, replicas int, opts ...ProvisionOption) error {
	var p provision
	for _, o := range opts {
		if err := o(&p); err != nil {
			return err
		}
	}
	return b.allowed(ctx, func(ctx context.Context) error { return b.provision(ctx, replicas, p) })
}

func (b *Bus) provision(ctx context.Context, replicas int, p provision) error {
	runsBytes := p.runsBytes
	if runsBytes == 0 {
		runsBytes = maxRuns
	}
	for _, cfg := range streamConfigs(replicas, runsBytes) {
		keep := cfg.Name != streamRuns || p.runsBytes == 0
		if err := b.provisionStream(ctx, cfg, keep); err != nil {
			return unsuitable(cfg.Name, err)
		}
	}
	if err := b.provisionArtifacts(ctx, replicas); err != nil {
		return unsuitable(streamArtifacts, err)
	}
	if err := b.provisionReviews(ctx, replicas); err != nil {
		return unsuitable(streamReviews, err)
	}
	for _, c := range b.coreConsumers() {
		if err := b.consumer(ctx, c.stream, c.cfg); err != nil {
			return err
		}
	}
	return nil
}

// provisionStream makes a stream or updates ours. keepSize keeps the size
// that it has.
func (b *Bus) provisionStream(ctx context.Context, cfg jetstream.StreamConfig, keepSize bool) error {
	s, err := b.js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, cfg)
		return err
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	switch format := have.Metadata[formatKey]; {
	case format == "" && (!slices.Equal(have.Subjects, cfg.Subjects) || have.Retention != cfg.Retention):
		return fmt.Errorf("%w: it holds %v", errForeign, have.Subjects)
	case format > formatValue:
		return fmt.Errorf("it was made by a newer nexus (format %s, this one knows %s)", format, formatValue)
	}
	cfg.Replicas = max(cfg.Replicas, have.Replicas)
	if keepSize {
		cfg.MaxBytes = have.MaxBytes
	}
	if upToDate(have, cfg) {
		return nil
	}
	_, err = b.js.UpdateStream(ctx, cfg)
	return err
}

// upToDate compares what may differ between releases.
func upToDate(have, want jetstream.StreamConfig) bool {
	return have.Metadata[formatKey] == want.Metadata[formatKey] && slices.Equal(have.Subjects, want.Subjects) &&
		have.MaxBytes == want.MaxBytes && have.Replicas == want.Replicas && have.MaxAge == want.MaxAge &&
		have.Discard == want.Discard && have.Duplicates == want.Duplicates && have.AllowDirect == want.AllowDirect &&
		have.AllowMsgSchedules == want.AllowMsgSchedules && have.AllowMsgTTL == want.AllowMsgTTL
}

func (b *Bus) provisionArtifacts(ctx context.Context, replicas int) error {
	_, err := b.js.ObjectStore(ctx, bucketArtifacts)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: bucketArtifacts, Storage: jetstream.FileStorage, Replicas: replicas, MaxBytes: maxArtifacts,
			Metadata: map[string]string{formatKey: formatValue},
		})
	}
	return err
}

var errForeign = errors.New("a stream of that name is there and is not ours")

// Codes of the server for a stream that it cannot hold.
const (
	codeNoStorage    = 10047
	codeOverlap      = 10065
	codeNoPeers      = 10005
	codeFewPeers     = 10074
	codeMaxStreams   = 10027
	codeAccountSpace = 10028
)

// unsuitable says what to change on a server that cannot hold the streams.
func unsuitable(name string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, errForeign), isCode(err, codeOverlap):
		hint = ": use an account of its own for nexus, or remove the other stream"
	case isCode(err, codeNoStorage, codeMaxStreams, codeAccountSpace):
		hint = ": raise the JetStream limits of the server or the account (max_file, streams); nexus reserves about 19 GiB"
	case isCode(err, codeNoPeers, codeFewPeers):
		hint = ": the cluster has fewer servers than replicas are asked for"
	}
	return fmt.Errorf("bus: stream %s: %w%s", name, err, hint)
}

type coreConsumer struct {
	stream string
	cfg    jetstream.ConsumerConfig
}

const (
	durableConductor = "conductor"
	durableSweeper   = "sweeper"
)

// coreConsumers are shared by all conductors and sweepers.
func (b *Bus) coreConsumers() []coreConsumer {
	durable := func(stream, name string, filters ...string) coreConsumer {
		return coreConsumer{stream, jetstream.ConsumerConfig{
			Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.tune.ackWait,
			MaxAckPending: 256, FilterSubjects: filters,
		}}
	}
	return []coreConsumer{
		durable(streamTasks, durableConductor),
		durable(streamOutcomes, durableConductor),
		durable(streamTimers, durableConductor, wire.TimerSpace),
		durable(streamAdvisories, durableSweeper, advisoryMaxDeliveries, advisoryTerminated),
	}
}

// consumer makes a durable consumer or brings it up to date.
func (b *Bus) consumer(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) error {
	if _, err := b.js.CreateOrUpdateConsumer(ctx, stream, cfg); err != nil {
		return fmt.Errorf("bus: consumer %s of %s: %w", cfg.Durable, stream, err)
	}
	return nil
}

// ResetConsumers makes every durable consumer deliver at once what it had
// delivered to a process that is gone. Only the owner of a state folder may
// call it, before any worker runs: what is delivered again and was done
// before is recognised from the log.
func (b *Bus) ResetConsumers(ctx context.Context) error {
	for _, name := range []string{streamRuns, streamTasks, streamOutcomes, streamTimers, streamAdvisories} {
		s, err := b.stream(ctx, name)
		if err != nil {
			return err
		}
		list := s.ListConsumers(ctx)
		for info := range list.Info() {
			if info.Config.Durable == "" || info.NumAckPending == 0 {
				continue
			}
			if _, err := b.js.ResetConsumer(ctx, name, info.Name); err != nil {
				return fmt.Errorf("bus: reset %s of %s: %w", info.Name, name, err)
			}
		}
		if err := list.Err(); err != nil {
			return fmt.Errorf("bus: consumers of %s: %w", name, err)
		}
	}
	return nil
}
