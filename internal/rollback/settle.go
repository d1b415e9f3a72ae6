package rollback

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// settle cleans up what a killed process may have left beside the paths of its
// batches. A content that is neither old nor new was the user's, taken out by
// a swap that was killed before it looked: it goes back to its path, or, when
// the path has moved on again, to the folder saved.
//
// It returns the paths whose content it saved.
func (t *tree) settle(h history, saved string) ([]string, error) {
	var out []string
	for _, b := range h.batches {
		if b.closed {
			continue
		}
		for _, e := range b.Edits {
			kept, err := t.settleEdit(e, saved)
			if err != nil {
				return out, &Error{Kind: KindWrite, Paths: []string{string(e.Path)}, Detail: "clean-up after a crash", Err: err}
			}
			if kept {
				out = append(out, string(e.Path))
			}
		}
	}
	return out, nil
}

func (t *tree) settleEdit(e edit, saved string) (kept bool, err error) {
	dir, base, err := t.folder(string(e.Path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	out, err := look(dir, e.Temp+held)
	if err != nil {
		return false, err
	}
	ours := out.SHA == e.From.SHA || out.SHA == e.To.SHA
	if out.other == "" && (out.absent() || ours) {
		return false, t.clear(e)
	}
	now, err := look(dir, base)
	if err != nil {
		return false, err
	}
	fault.Point("rollback.settle.before")
	switch {
	case now.other == "" && now.absent():
		err = moveNew(dir, e.Temp+held, base)
	case now.SHA == e.To.SHA && !e.To.absent():
		err = t.putBack(dir, base, e)
	default:
		kept = true
		err = saveHeld(dir, e, saved)
	}
	if err != nil {
		return kept, err
	}
	fault.Point("rollback.settle.after")
	if err := dir.Sync(); err != nil {
		return kept, err
	}
	return kept, t.clear(e)
}

// saveHeld copies what a swap took out to saved, durably, before it is removed.
func saveHeld(dir *os.File, e edit, saved string) error {
	f, err := openAt(dir, e.Temp+held, unix.O_RDONLY, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil // a link: it has no content of its own to lose
	}
	if err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return saveFile(saved, yoursName(string(e.Path)), data)
}

// baseName is where the folder of saved files keeps the base of a path.
func baseName(p string) string { return path.Join("base", p) }

// yoursName is where it keeps the user's version of a path. It is one name, not
// a path: the user may have had a file and a folder at the same place, one after
// the other.
func yoursName(p string) string {
	const longest = 200
	flat := url.PathEscape(p)
	if len(flat) > longest {
		flat = flat[:longest-65] + "-" + hashOf([]byte(p))
	}
	return path.Join("yours", flat)
}

// saveFile writes data below the folder saved, durably.
func saveFile(saved, rel string, data []byte) (err error) {
	if err := os.MkdirAll(saved, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(saved)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
		return err
	}
	fault.Point("rollback.save.before")
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	fault.Point("rollback.save.after")
	return SyncFolders(filepath.Dir(filepath.Join(saved, rel)))
}
