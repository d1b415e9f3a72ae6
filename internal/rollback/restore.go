package rollback

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Report is what Restore did and proved.
type Report struct {
	// Base is the tree hash of the base. Before is that of the project on the
	// disk when Restore began, empty when it could not be read; After that of
	// the end. Base and After are equal unless Conflicts or Foreign say why not.
	Base   string `json:"base"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Restored lists the paths that this call changed.
	Restored []string `json:"restored,omitempty"`
	// Conflicts lists journalled paths that the user changed meanwhile. They
	// were kept; the base of each is in the folder Project.Saved.
	Conflicts []string `json:"conflicts,omitempty"`
	// Foreign lists paths that differ from the base though the run never
	// wrote them: what the user created or edited. They were not touched.
	Foreign []string `json:"foreign,omitempty"`
}

// Restore takes everything back that Apply wrote for this run: every
// journalled path holds its content of base again, files and folders that the
// run created are gone. Paths that the journal does not name are not touched.
//
// It may be killed at any moment and called again, by any process; a second
// call changes nothing. It returns without error only after it has read every
// journalled path back from the disk. KindJournal means that nothing was
// touched, KindUnproven that some path could not be restored; the report then
// says how far it came.
func (p Project) Restore(ctx context.Context, base Manifest, blobs Blobs) (report Report, err error) {
	report.Base = base.Hash()
	if err := p.check(); err != nil {
		return report, err
	}
	// A folder that cannot be listed now may still be put right, and the proof
	// at the end says what is wrong with it.
	if now, err := p.look(ctx); err == nil {
		report.Before = now.Hash()
	}
	h, err := readHistory(p.Journal)
	if err != nil {
		return report, err
	}
	if h.good > 0 {
		if err := p.takeBack(ctx, base, blobs, &report); err != nil {
			return report, err
		}
	}
	return report, p.prove(ctx, base, h, &report)
}

// prove scans the whole project and explains every difference from the base.
func (p Project) prove(ctx context.Context, base Manifest, h history, report *Report) error {
	after, err := p.look(ctx)
	if err != nil {
		return err
	}
	report.After = after.Hash()
	known, behind := h.known(), h.behind()
	var wrong []string
	for _, q := range base.Differs(after) {
		switch {
		case slices.Contains(report.Conflicts, q):
		case givenBack(base, after, q, behind[q]):
			report.Foreign = append(report.Foreign, q)
		case known[q] != nil:
			wrong = append(wrong, q)
		default:
			report.Foreign = append(report.Foreign, q)
		}
	}
	if len(wrong) > 0 {
		return &Error{Kind: KindUnproven, Paths: wrong, Detail: "do not hold the base after the restore"}
	}
	return nil
}

// givenBack reports whether the user's own file stands at a path again that
// the base does not have and the run wrote.
func givenBack(base, after Manifest, p string, behind content) bool {
	_, ours := base.Lookup(p)
	e, there := after.Lookup(p)
	return !ours && there && !behind.absent() && e.Type == TypeFile && e.SHA256 == behind.SHA && e.Mode == behind.Mode&0o777
}

// look scans the project whatever the user made of it.
func (p Project) look(ctx context.Context) (Manifest, error) {
	unlimited := Limits{Files: math.MaxInt, Bytes: math.MaxInt64, FileBytes: math.MaxInt64}
	return scan(ctx, p.Dir, scanOptions{limits: unlimited, tolerant: true})
}

func (p Project) takeBack(ctx context.Context, base Manifest, blobs Blobs, report *Report) (err error) {
	s, err := p.start(blobs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.tree.settle(s.j.history, p.Saved); err != nil {
		return err
	}
	if err := s.removeCreated(ctx, base, report); err != nil {
		return err
	}
	plan, err := s.planRestore(ctx, base)
	if err != nil {
		return err
	}
	if err := s.carryRestore(ctx, base, plan.edits, report); err != nil {
		return err
	}
	for _, q := range plan.conflicts {
		if err := s.conflict(ctx, base, q, report); err != nil {
			return err
		}
	}
	for _, b := range s.j.batches {
		if err := s.j.close(b); err != nil {
			return err
		}
	}
	return s.displaced(report)
}

// removeCreated takes the run's own files and folders away before anything is
// put back: one of the folders may stand where the base has a file.
func (s *session) removeCreated(ctx context.Context, base Manifest, report *Report) error {
	plan, err := s.planRestore(ctx, base)
	if err != nil {
		return err
	}
	removals := slices.DeleteFunc(plan.edits, func(e edit) bool { return !e.To.absent() })
	if err := s.carryRestore(ctx, base, removals, report); err != nil {
		return err
	}
	dirs := slices.DeleteFunc(s.j.dirs(), func(d string) bool {
		e, there := base.Lookup(d)
		return there && e.Type == TypeDir
	})
	if err := s.dropDirs(dirs); err != nil {
		return &Error{Kind: KindUnproven, Err: err}
	}
	return nil
}

// restorePlan is what a look at every journalled path found.
type restorePlan struct {
	edits     []edit
	conflicts []string
}

func (s *session) planRestore(ctx context.Context, base Manifest) (restorePlan, error) {
	var plan restorePlan
	known, behind := s.j.known(), s.j.behind()
	for _, p := range slices.Sorted(maps.Keys(known)) {
		if err := ctx.Err(); err != nil {
			return plan, err
		}
		now, err := s.tree.at(p)
		if err != nil {
			return plan, &Error{Kind: KindUnreadable, Paths: []string{p}, Err: err}
		}
		want, ok := wanted(base, p, known[p], behind[p])
		e, verdict := decide(now, want, known[p])
		if !ok {
			verdict = keep
		}
		e.Path = name(p)
		if verdict != keep && e.From != e.To {
			plan.edits = append(plan.edits, e)
		}
		if verdict != take {
			plan.conflicts = append(plan.conflicts, p)
		}
	}
	return plan, nil
}

// wanted is the state of a path in the base; false when the base holds
// something there that Apply never edits. What the base does not have was
// absent, unless the user's own file came to stand there, behind a link.
func wanted(base Manifest, p string, known []content, behind content) (content, bool) {
	e, ok := base.Lookup(p)
	if !ok {
		return behind, true
	}
	want := content{SHA: e.SHA256, Mode: e.Mode}
	for _, c := range known {
		if c.SHA == e.SHA256 && c.Mode&0o777 == e.Mode {
			want.Mode = c.Mode // with the bits that a manifest leaves out
			break
		}
	}
	return want, e.Type == TypeFile
}

type verdict int

const (
	take    verdict = iota // the path is the run's: make it the base
	keep                   // the user's: leave it
	keepMod                // the content is the run's, the mode the user's
)

// decide compares what stands at a path with the base and with every state
// that the run left it in.
func decide(now found, want content, known []content) (edit, verdict) {
	e := edit{From: now.content, To: want}
	if now.other != "" {
		return e, keep
	}
	if now.content == want {
		return e, take
	}
	ours := now.SHA == want.SHA || slices.ContainsFunc(known, func(c content) bool { return c.SHA == now.SHA })
	if !ours {
		return e, keep
	}
	modeOurs := now.absent() || slices.ContainsFunc(known, func(c content) bool { return c.Mode == now.Mode })
	if modeOurs || want.absent() {
		return e, take
	}
	e.To.Mode = now.Mode
	return e, keepMod
}

// carryRestore records and makes the edits. A path that the user edits in this
// very moment becomes a conflict.
func (s *session) carryRestore(ctx context.Context, base Manifest, edits []edit, report *Report) error {
	if len(edits) == 0 {
		return nil
	}
	b := &batch{Kind: restoring, Edits: edits}
	if err := s.j.begin(b); err != nil {
		return err
	}
	if err := s.remakeDirs(base, b.Edits); err != nil {
		return &Error{Kind: KindUnproven, Err: err}
	}
	drifted, err := s.carryOut(ctx, b)
	if err != nil {
		return &Error{Kind: KindUnproven, Detail: "some paths could not be restored; call again", Err: err}
	}
	gone := map[name]bool{}
	for _, e := range drifted {
		gone[e.Path] = true
		if err := s.conflict(ctx, base, string(e.Path), report); err != nil {
			return err
		}
	}
	for _, e := range b.Edits {
		if !gone[e.Path] {
			report.Restored = append(report.Restored, string(e.Path))
		}
	}
	return s.j.close(b)
}

// remakeDirs creates the folders of the base that a restored file needs.
func (s *session) remakeDirs(base Manifest, edits []edit) error {
	for _, e := range edits {
		if e.To.absent() {
			continue
		}
		var dirs []string
		for d := path.Dir(string(e.Path)); d != "."; d = path.Dir(d) {
			dirs = append(dirs, d)
		}
		for _, d := range slices.Backward(dirs) {
			entry, ok := base.Lookup(d)
			if !ok || entry.Type != TypeDir {
				continue
			}
			if err := s.tree.makeDir(d, entry.Mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// conflict keeps what the user made of a path and saves the base beside the run.
func (s *session) conflict(ctx context.Context, base Manifest, p string, report *Report) error {
	if !slices.Contains(report.Conflicts, p) {
		report.Conflicts = append(report.Conflicts, p)
	}
	e, ok := base.Lookup(p)
	if !ok || e.Type != TypeFile {
		return nil
	}
	data, err := Read(ctx, s.blobs, e.SHA256)
	if err != nil {
		return err
	}
	if err := saveFile(s.Saved, baseName(p), data); err != nil {
		return &Error{Kind: KindWrite, Paths: []string{p}, Detail: "save the base beside the run", Err: err}
	}
	return nil
}

// displaced reports the paths whose user's version an earlier call had to move
// to the folder of saved files.
func (s *session) displaced(report *Report) error {
	for p := range s.j.known() {
		_, err := os.Lstat(filepath.Join(s.Saved, yoursName(p)))
		if err == nil && !slices.Contains(report.Conflicts, p) {
			report.Conflicts = append(report.Conflicts, p)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &Error{Kind: KindUnreadable, Paths: []string{p}, Err: err}
		}
	}
	slices.Sort(report.Conflicts)
	return nil
}
