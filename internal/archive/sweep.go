package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

// Folders lists the folders of a state folder that hold what belongs to one
// run, each under the run's id.
func Folders() []string {
	return []string{journals, "saved", "patches", "reports", "recordings", "logs"}
}

const journals = "journal"

// Request says what a sweep may remove.
type Request struct {
	// State is the state folder.
	State string
	// Before is when a run must have ended, or have been imported, to go.
	Before time.Time
	// Waits names runs that must stay, and why; it is asked with the runs of
	// this bus that can be read.
	Waits func(context.Context, []run.State) (map[string]string, error)
}

// Sweep is what goes from a state folder. Nothing else may work on its bus
// from PlanSweep on until Run has returned.
type Sweep struct {
	// Runs and Imported are the runs that go, Notes the runs whose notes go.
	Runs, Imported, Notes []string
	// Artifacts are the blobs that nothing names which stays, and Bytes their
	// sizes together.
	Artifacts []string
	Bytes     int64
	// Files are the files and folders that go, below the state folder.
	Files     []string
	FileBytes int64
	// Stay counts the runs that are old enough and stay, by reason.
	Stay map[string]int

	bus   *bus.Bus
	state string
	// remnants are runs whose removal was cut short.
	remnants []string
	stored   map[string]bus.Stored
	loose    []string
}

// Why a run stays, beside what Request.Waits says.
const (
	becauseLetter = "a dead letter names it"
	becauseTask   = "a queued task names it"
	becauseOpen   = "it has not ended"
	becauseChild  = "a run that stays came of it"
	becauseBroken = "its log cannot be read"
)

// survey is what a plan is made of.
type survey struct {
	Request
	bus *bus.Bus
	// known are the runs of this bus; states those that can be read.
	known  map[string]bool
	states []run.State
	// held says why a run must stay that may be old enough.
	held map[string]string
	// gone are the runs of this bus that go.
	gone map[string]bool
}

// PlanSweep finds what can go. It changes nothing.
func PlanSweep(ctx context.Context, b *bus.Bus, r Request) (*Sweep, error) {
	v := &survey{Request: r, bus: b, held: map[string]string{}, gone: map[string]bool{}}
	s := &Sweep{bus: b, state: r.State, Stay: map[string]int{}}
	imported, err := v.hold(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.read(ctx, s); err != nil {
		return nil, err
	}
	v.decide(s)
	s.Imported = imported
	names, err := v.names(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := v.artifacts(ctx, s, names); err != nil {
		return nil, err
	}
	return s, v.files(s)
}

// hold reads what names runs that must stay, and which imported runs are old
// enough.
func (v *survey) hold(ctx context.Context) (old []string, err error) {
	newest := map[string]time.Time{}
	err = v.bus.Traces(ctx, func(t bus.Trace) error {
		if t.Place == bus.InImported {
			newest[t.Run] = t.At
			return nil
		}
		reason := becauseLetter
		if t.Place == bus.InTasks {
			reason = becauseTask
			v.held[t.Run] = reason
		}
		tokens(t.Body, isRunByte, runLength, func(id string) { v.held[id] = reason })
		return nil
	}, bus.InImported, bus.InDead, bus.InTasks)
	for id, at := range newest {
		if at.Before(v.Before) && v.held[id] == "" {
			old = append(old, id)
		}
	}
	slices.Sort(old)
	return old, err
}

// read folds every run of this bus. One that cannot be read stays.
func (v *survey) read(ctx context.Context, s *Sweep) (err error) {
	if v.known, err = v.bus.Runs(ctx); err != nil {
		return err
	}
	for id := range v.known {
		log, err := v.bus.ReadLog(ctx, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		state := run.State{}
		if err == nil {
			state, err = log.State()
		}
		if err != nil {
			s.Stay[becauseBroken]++
			continue
		}
		v.states = append(v.states, state)
	}
	slices.SortFunc(v.states, func(a, b run.State) int { return a.OpenedAt.Compare(b.OpenedAt) })
	waits, err := v.Waits(ctx, v.states)
	if err != nil {
		return err
	}
	maps.Copy(v.held, waits)
	return nil
}

// decide says which runs go. Those that a run which stays came of stay too: a
// person who looks at it must find them.
func (v *survey) decide(s *Sweep) {
	parents := map[string]string{}
	for _, st := range v.states {
		if st.Task.Child != nil {
			parents[st.ID] = st.Task.Child.Parent
		}
		switch why := v.held[st.ID]; {
		case !st.Closed:
			s.Stay[becauseOpen]++
		case !st.EndedAt.Before(v.Before):
		case why != "":
			s.Stay[why]++
		default:
			v.gone[st.ID] = true
		}
	}
	for _, st := range v.states {
		if v.gone[st.ID] {
			continue
		}
		for id := parents[st.ID]; v.gone[id]; id = parents[id] {
			delete(v.gone, id)
			s.Stay[becauseChild]++
		}
	}
	for _, st := range v.states {
		if v.gone[st.ID] {
			s.Runs = append(s.Runs, st.ID)
		}
	}
}

// names collects the artifacts that something names which stays, and finds
// remnants and notes of runs that are gone.
func (v *survey) names(ctx context.Context, s *Sweep) (map[string]bool, error) {
	names, remnants, notes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	err := v.bus.Traces(ctx, func(t bus.Trace) error {
		_, known := v.known[t.Run]
		valid := wire.ValidRun(t.Run)
		switch {
		case t.Place == bus.InRuns && valid && !known:
			remnants[t.Run] = true
		case t.Place == bus.InNotes && valid && v.held[t.Run] == "" && (!known || v.gone[t.Run]):
			notes[t.Run] = true
		case t.Place == bus.InRuns && v.gone[t.Run]:
		case t.Place == bus.InImported && slices.Contains(s.Imported, t.Run):
		default:
			mark(t.Body, names)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.remnants, s.Notes = slices.Sorted(maps.Keys(remnants)), slices.Sorted(maps.Keys(notes))
	return names, nil
}

// Run removes what the plan says: first the logs, then what only they named,
// so that a crash leaves every run that can be seen whole. The next sweep
// finishes one that was cut short.
func (s *Sweep) Run(ctx context.Context) error {
	for _, id := range append(slices.Clone(s.remnants), s.Runs...) {
		if err := s.bus.RemoveRun(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range s.Imported {
		if err := s.bus.RemoveImported(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range s.Notes {
		if err := s.bus.RemoveNote(ctx, id); err != nil {
			return err
		}
	}
	for _, name := range s.Artifacts {
		if err := s.bus.Artifacts().Remove(ctx, name, s.stored[name]); err != nil {
			return err
		}
	}
	for _, place := range s.loose {
		if err := s.bus.Artifacts().RemoveLoose(ctx, place); err != nil {
			return err
		}
	}
	var errs []error
	for _, path := range s.Files {
		fault.Point("archive.sweep.file")
		if err := os.RemoveAll(filepath.Join(s.state, path)); err != nil {
			errs = append(errs, err)
		}
	}
	fault.Point("archive.sweep.done")
	return errors.Join(errs...)
}

// files finds what belongs to runs that go. What belongs to a run that nobody
// knows goes when it is old enough itself: a removal was cut short, or the
// streams were lost and somebody may still want it.
func (v *survey) files(s *Sweep) error {
	for _, folder := range Folders() {
		entries, err := os.ReadDir(filepath.Join(v.State, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("archive: %w", err)
		}
		for _, e := range entries {
			id := RunOfFile(e.Name())
			_, known := v.known[id]
			if id == "" || v.held[id] != "" || (known && !v.gone[id]) {
				continue
			}
			path := filepath.Join(folder, e.Name())
			size, newest, err := measure(filepath.Join(v.State, path))
			if err != nil {
				return fmt.Errorf("archive: %w", err)
			}
			if v.gone[id] || newest.Before(v.Before) {
				s.Files = append(s.Files, path)
				s.FileBytes += size
			}
		}
	}
	return nil
}

// RunOfFile is the run that a file or folder of Folders belongs to, "" for
// none.
func RunOfFile(name string) string {
	id, _, _ := strings.Cut(name, ".")
	if !wire.ValidRun(id) {
		return ""
	}
	return id
}

// measure is the size of all files below a path, and when the newest of them
// was changed.
func measure(path string) (size int64, newest time.Time, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			size += info.Size()
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return size, newest, err
}
