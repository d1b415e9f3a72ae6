package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/archive"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// age is a duration that may be given in days.
type age time.Duration

const (
	day = 24 * time.Hour
	// gcAge is the default of --older.
	gcAge = 30 * day
)

// UnmarshalText reads 30d, 36h and the like.
func (a *age) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			*a = age(time.Duration(n) * day)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no age: give days or hours, such as 30d or 36h", s)
	}
	*a = age(d)
	return nil
}

type gcCmd struct {
	Older  age    `default:"30d" placeholder:"AGE" help:"Remove runs that ended longer ago than this, such as 7d or 36h; at least 1d (default: ${default}). Less is allowed with --dry-run."`
	DryRun bool   `help:"Say what would go, remove nothing."`
	JSON   bool   `name:"json" help:"As JSON."`
	Common common `embed:""`
}

// Help implements kong's help provider.
func (gcCmd) Help() string {
	return `A run goes with its log, its artifacts that nothing else names, its journal, model answers, patch, report and log file;
after that 'nexus undo', 'run show' and 'replay' know it no more. An imported run goes that long after its import.

What waits stays: runs that have not ended or wait for a person ('nexus review ls', up to 30 days), runs that a dead
letter ('nexus dead ls'), a queued task or a claim on a folder names, and the runs that a run which stays came of.

It works when no other nexus uses the state folder, and not with --nats: nobody can know what workers elsewhere need.
Killed in the middle it leaves every other run whole; the next one completes it. The disk is freed little by little.

Examples:
  nexus gc --dry-run
  nexus gc --older 7d`
}

// collected is what --json prints.
type collected struct {
	DryRun bool      `json:"dry_run"`
	Before time.Time `json:"before"`
	// Runs and Imported are the ids of the runs that went.
	Runs          []string       `json:"runs"`
	Imported      []string       `json:"imported"`
	Artifacts     int            `json:"artifacts"`
	ArtifactBytes int64          `json:"artifact_bytes"`
	Files         int            `json:"files"`
	FileBytes     int64          `json:"file_bytes"`
	Leftovers     int            `json:"leftovers"`
	Stay          map[string]int `json:"stay"`
	Streams       []streamChange `json:"streams"`
}

// streamChange is what a stream held before and after, in bytes.
type streamChange struct {
	Name   string `json:"name"`
	Before uint64 `json:"before"`
	After  uint64 `json:"after"`
}

// Run removes old runs.
func (c *gcCmd) Run(ctx context.Context, e *env) error {
	ctx, stop := signal.NotifyContext(ctx, node.Signals()...)
	defer stop()
	return c.collect(ctx, e, time.Now())
}

// collect is Run at a moment.
func (c *gcCmd) collect(ctx context.Context, e *env, now time.Time) (err error) {
	switch {
	case c.Common.NATS != "":
		return errors.New("gc works on the state folder of this machine only: which artifacts the runs under way on other hosts need cannot be known; leave --nats (NEXUS_NATS) out")
	case time.Duration(c.Older) < day && !c.DryRun:
		return fmt.Errorf("--older %s is less than a day, within which somebody may still look at a run: give at least 1d, or --dry-run", time.Duration(c.Older))
	}
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	cfg.Busy = "removes old runs"
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if pid, attached := n.Attached(); attached {
		return fmt.Errorf("process %d runs the bus on %s: gc must be alone on it; wait until that process has ended, or end it (Ctrl-C, kill %d), and try again", pid, cfg.State, pid)
	}
	out := collected{DryRun: c.DryRun, Before: now.Add(-time.Duration(c.Older)).UTC()}
	before, err := n.Bus().Usages(ctx)
	if err != nil {
		return err
	}
	s, err := archive.PlanSweep(ctx, n.Bus(), archive.Request{
		State: cfg.State, Before: out.Before,
		Waits: func(ctx context.Context, states []run.State) (map[string]string, error) {
			return waiting(ctx, n.Bus(), cfg.Claims, states, now)
		},
	})
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := s.Run(ctx); err != nil {
			return fmt.Errorf("%w; 'nexus gc' again completes it", err)
		}
		if out.Leftovers, err = n.SweepTemp(); err != nil {
			return err
		}
	}
	after, err := n.Bus().Usages(ctx)
	if err != nil {
		return err
	}
	out.fill(s, before, after)
	return out.tell(e, c.JSON)
}

// waiting names the runs that wait for a person or keep a folder claimed, and
// why they stay.
func waiting(ctx context.Context, b *bus.Bus, claims rollback.Claims, states []run.State, now time.Time) (map[string]string, error) {
	out := map[string]string{}
	all, err := itemsOf(ctx, b, states)
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if st := i.statusAt(now); st == "waiting" || st == "in work" {
			for _, st := range append([]run.State{i.state}, i.children...) {
				out[st.ID] = "it waits for a person"
			}
		}
	}
	list, err := claims.List()
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		out[x.Run] = "it keeps a folder claimed"
	}
	return out, nil
}

func (o *collected) fill(s *archive.Sweep, before, after []bus.Usage) {
	o.Runs, o.Imported = append([]string{}, s.Runs...), append([]string{}, s.Imported...)
	o.Artifacts, o.ArtifactBytes, o.Files, o.FileBytes = len(s.Artifacts), s.Bytes, len(s.Files), s.FileBytes
	o.Stay = s.Stay
	for i, u := range before {
		o.Streams = append(o.Streams, streamChange{u.Name, u.Bytes, after[i].Bytes})
	}
}

func (o *collected) tell(e *env, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(e.out).Encode(o)
	}
	word := "gone"
	if o.DryRun {
		word = "would go"
	}
	fmt.Fprintf(e.out, "%s: %d run(s) that ended before %s, %d imported run(s), %d artifact(s) of %s, %d file(s) of %s\n", word,
		len(o.Runs), o.Before.Local().Format(time.DateTime), len(o.Imported), o.Artifacts, size(o.ArtifactBytes), o.Files, size(o.FileBytes))
	for _, id := range append(slices.Clone(o.Runs), o.Imported...) {
		fmt.Fprintf(e.out, "  run     %s\n", id)
	}
	for _, why := range slices.Sorted(maps.Keys(o.Stay)) {
		fmt.Fprintf(e.out, "  stays   %d: %s\n", o.Stay[why], why)
	}
	for _, st := range o.Streams {
		if st.Before != st.After {
			fmt.Fprintf(e.out, "  stream  %s: %s -> %s\n", st.Name, size(int64(st.Before)), size(int64(st.After))) //nolint:gosec // no stream is that large
		}
	}
	if o.Leftovers > 0 {
		fmt.Fprintf(e.out, "  left-overs of %d dead process(es) are gone\n", o.Leftovers)
	}
	return nil
}
