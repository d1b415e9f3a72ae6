package bus

import (
	"context"
	"errors"
	"fmt"
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
	bucketArtifacts  = "ARTIFACTS"
)

// Sizes of the streams. RUNS has no age limit: a run leaves it only as a
// whole.
const (
	maxRuns       = 8 << 30
	maxTasks      = 256 << 20
	maxOutcomes   = 1 << 30
	maxTimers     = 256 << 20
	maxDead       = 1 << 30
	maxAdvisories = 64 << 20
	maxArtifacts  = 32 << 30
	// dedupe is how long a stream remembers message ids.
	dedupe = 2 * time.Minute
	// advisoryAge is how long an advisory waits for the sweeper.
	advisoryAge = 7 * 24 * time.Hour
)

// streamConfigs are the streams of the system.
func streamConfigs(replicas int) []jetstream.StreamConfig {
	base := func(name string, size int64, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects, Storage: jetstream.FileStorage, Replicas: replicas,
			MaxBytes: size, Discard: jetstream.DiscardNew, AllowDirect: true, Duplicates: dedupe,
		}
	}
	runs := base(streamRuns, maxRuns, wire.RunSpaces()...)
	runs.DenyDelete = true
	tasks := base(streamTasks, maxTasks, wire.TaskSpace)
	tasks.Retention = jetstream.WorkQueuePolicy
	outcomes := base(streamOutcomes, maxOutcomes, wire.OutcomeSpace)
	outcomes.Retention = jetstream.WorkQueuePolicy
	timers := base(streamTimers, maxTimers, wire.LaterSpace, wire.TimerSpace)
	timers.Discard = jetstream.DiscardOld // schedules and DiscardNew exclude each other
	timers.AllowMsgSchedules, timers.AllowMsgTTL = true, true
	advisories := base(streamAdvisories, maxAdvisories,
		"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+streamRuns+".*",
		"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."+streamRuns+".*")
	advisories.Discard, advisories.MaxAge = jetstream.DiscardOld, advisoryAge
	dead := base(streamDead, maxDead, wire.DeadSpace)
	return []jetstream.StreamConfig{runs, tasks, outcomes, timers, dead, advisories}
}

// Provision makes the streams and the conductor's consumers, or brings them
// up to date. replicas is 1 for an embedded server.
func (b *Bus) Provision(ctx context.Context, replicas int) error {
	for _, cfg := range streamConfigs(replicas) {
		if _, err := b.js.CreateOrUpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("bus: stream %s: %w", cfg.Name, err)
		}
	}
	_, err := b.js.ObjectStore(ctx, bucketArtifacts)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: bucketArtifacts, Storage: jetstream.FileStorage, Replicas: replicas, MaxBytes: maxArtifacts,
		})
	}
	if err != nil {
		return fmt.Errorf("bus: artifacts: %w", err)
	}
	for _, c := range coreConsumers() {
		if err := b.consumer(ctx, c.stream, c.cfg); err != nil {
			return err
		}
	}
	return nil
}

type coreConsumer struct {
	stream string
	cfg    jetstream.ConsumerConfig
}

const durableConductor = "conductor"

// coreConsumers are shared by all conductors and sweepers.
func coreConsumers() []coreConsumer {
	durable := func(stream, name string, filters ...string) coreConsumer {
		return coreConsumer{stream, jetstream.ConsumerConfig{
			Durable: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
			MaxAckPending: 256, FilterSubjects: filters,
		}}
	}
	return []coreConsumer{
		durable(streamTasks, durableConductor),
		durable(streamOutcomes, durableConductor),
		durable(streamTimers, durableConductor, wire.TimerSpace),
		durable(streamAdvisories, "sweeper"),
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
		s, err := b.js.Stream(ctx, name)
		if err != nil {
			return fmt.Errorf("bus: stream %s: %w", name, err)
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
