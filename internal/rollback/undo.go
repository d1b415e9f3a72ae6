package rollback

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/fault"
	"nexuscore.dev/nexus/internal/run"
)

// Undo is Restore for a run whose log and snapshot are gone: the journal says
// what stood at each path before the run first wrote there, and the contents
// lie beside it. Paths that the journal does not name are neither touched nor
// reported. blobs may be nil. A journal that is missing means that the run
// wrote nothing.
//
// The report's Before and After stay empty: no tree of the whole project is
// known. It succeeds only when every path that is no conflict was read back.
func (p Project) Undo(ctx context.Context, blobs Blobs) (report Report, err error) {
	if err := p.check(); err != nil {
		return report, err
	}
	h, err := readHistory(p.Journal)
	if err != nil || h.good == 0 {
		return report, err
	}
	base := h.base()
	if err := p.takeBack(ctx, base, blobs, &report); err != nil {
		return report, err
	}
	err = p.prove(ctx, base, h, &report)
	report.Before, report.After, report.Foreign = "", "", nil
	return report, err
}

// base is what stood at the journalled paths before the run.
func (h history) base() Manifest {
	var m Manifest
	for p, states := range h.known() {
		if first := states[0]; !first.absent() {
			m.Entries = append(m.Entries, Entry{Path: p, Type: TypeFile, SHA256: first.SHA, Mode: first.Mode & 0o777})
		}
	}
	slices.SortFunc(m.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return m
}

// kept are the contents that stood at the journalled paths before the run,
// beside the journal: they outlive the store that the snapshot lies in.
type kept struct {
	Blobs
	dir string
}

func (p Project) kept(blobs Blobs) kept { return kept{blobs, p.Journal + ".base"} }

// Get reads from the store, and where that has nothing of the kind, from
// beside the journal.
func (k kept) Get(ctx context.Context, sha string) ([]byte, error) {
	err := fs.ErrNotExist
	if k.Blobs != nil {
		var data []byte
		if data, err = k.Blobs.Get(ctx, sha); err == nil && hashOf(data) == sha {
			return data, nil
		}
	}
	data, errKept := os.ReadFile(filepath.Join(k.dir, sha))
	if errKept != nil {
		return nil, errors.Join(err, errKept)
	}
	return data, nil
}

// Put stores in the store alone.
func (k kept) Put(ctx context.Context, data []byte) (run.Ref, error) {
	if k.Blobs == nil {
		return run.Ref{}, errors.ErrUnsupported
	}
	return k.Blobs.Put(ctx, data)
}

// keep puts the old contents of a batch beside the journal, durably, before
// the batch begins.
func (s *session) keep(ctx context.Context, edits []edit) error {
	k, known, wrote := s.kept(s.blobs), s.j.known(), false
	for _, e := range edits {
		if e.From.absent() || e.From.SHA == emptySHA || known[string(e.Path)] != nil {
			continue
		}
		file := filepath.Join(k.dir, e.From.SHA)
		if _, err := os.Stat(file); err == nil {
			continue
		}
		data, err := Read(ctx, s.blobs, e.From.SHA)
		if err == nil {
			err = os.MkdirAll(k.dir, 0o700)
		}
		if err != nil {
			return err
		}
		fault.Point("rollback.keep.before")
		if err := renameio.WriteFile(file, data, 0o600); err != nil {
			return journalError(s.Journal, "the old content cannot be kept beside it", err)
		}
		fault.Point("rollback.keep.after")
		wrote = true
	}
	if !wrote {
		return nil
	}
	return SyncFolders(k.dir)
}
