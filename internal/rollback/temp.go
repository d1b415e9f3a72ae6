package rollback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// The names that an edit may leave in the folder of its path when the process
// is killed. Only held can ever contain what the user wrote.
const (
	// writing is a new content that may be incomplete.
	writing = ".w"
	// held is a complete new content before the swap, and what the swap took
	// out of the path after it.
	held = ".x"
	// spare is a copy of the old content, made only where names cannot be
	// exchanged.
	spare = ".o"
)

// stage writes the new content of an edit beside its path, complete and
// durable, with the mode, owner and attributes that the path will have.
func (t *tree) stage(e edit, data []byte) error {
	dir, base, err := t.folder(string(e.Path))
	if err != nil {
		return err
	}
	if err := writeTemp(dir, base, e.Temp+writing, e.To.Mode, data); err != nil {
		return err
	}
	fault.Point("rollback.stage.rename.before")
	if err := rename(dir, e.Temp+writing, e.Temp+held); err != nil {
		return err
	}
	fault.Point("rollback.stage.rename.after")
	return nil
}

// writeTemp creates temp in dir with data, like the file named base where one
// is there.
func writeTemp(dir *os.File, base, temp string, mode uint32, data []byte) (err error) {
	fault.Point("rollback.stage.create.before")
	f, err := openAt(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fault.Point("rollback.stage.create.after")
	half := len(data) / 2 // a kill between the halves leaves a torn file
	for _, part := range [][]byte{data[:half], data[half:]} {
		if _, err := f.Write(part); err != nil {
			return err
		}
		fault.Point("rollback.stage.write")
	}
	if err := dress(dir, base, f); err != nil {
		return err
	}
	if err := unix.Fchmod(int(f.Fd()), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: base, Err: err}
	}
	fault.Point("rollback.stage.sync.before")
	if err := f.Sync(); err != nil {
		return err
	}
	fault.Point("rollback.stage.sync.after")
	return nil
}

// dress gives a new file the owner and attributes of the file it replaces; a
// file without predecessor that root writes belongs to the folder's owner.
func dress(dir *os.File, base string, f *os.File) error {
	old, err := openAt(dir, base, unix.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return adopt(dir, f)
	}
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }() // opened for reading only
	var was, is unix.Stat_t
	if err := errors.Join(unix.Fstat(int(old.Fd()), &was), unix.Fstat(int(f.Fd()), &is)); err != nil {
		return err
	}
	if was.Uid != is.Uid || was.Gid != is.Gid {
		if err := unix.Fchown(int(f.Fd()), int(was.Uid), int(was.Gid)); err != nil {
			return fmt.Errorf("the owner of %s cannot be kept: %w", base, err)
		}
	}
	return copyAttributes(old, f)
}

func adopt(dir, f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	if os.Geteuid() != 0 || st.Uid == 0 {
		return nil
	}
	return unix.Fchown(int(f.Fd()), int(st.Uid), -1)
}

// swap puts the staged content in place, or takes the file away. What came out
// is looked at: when it is not what the edit started from, it is put back and
// the error is drift.
func (t *tree) swap(e edit) error {
	dir, base, err := t.folder(string(e.Path))
	if err != nil {
		return err
	}
	fault.Point("rollback.swap.before")
	switch {
	case e.From.absent():
		err = moveNew(dir, e.Temp+held, base)
	case e.To.absent():
		err = moveNew(dir, base, e.Temp+held)
	case t.plain:
		err = replace(dir, base, e)
	default:
		err = exchange(dir, e.Temp+held, base)
		if errors.Is(err, errors.ErrUnsupported) {
			err = replace(dir, base, e)
		}
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return drift(e.Path, "was created or removed meanwhile")
	}
	if err != nil {
		return err
	}
	fault.Point("rollback.swap.after")
	if e.From.absent() {
		return nil
	}
	return t.inspect(dir, base, e)
}

// inspect verifies what a swap took out, and swaps back what it should not
// have taken.
func (t *tree) inspect(dir *os.File, base string, e edit) error {
	out, err := look(dir, e.Temp+held)
	if err != nil {
		return err
	}
	if out.other == "" && out.content == e.From {
		return nil
	}
	fault.Point("rollback.swap.back.before")
	if e.To.absent() {
		err = moveNew(dir, e.Temp+held, base)
	} else {
		err = t.putBack(dir, base, e)
	}
	if err != nil {
		return err
	}
	fault.Point("rollback.swap.back.after")
	return drift(e.Path, "was edited meanwhile")
}

// putBack exchanges held and path again; held then has our own content.
func (t *tree) putBack(dir *os.File, base string, e edit) error {
	if !t.plain {
		err := exchange(dir, e.Temp+held, base)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return rename(dir, e.Temp+held, base)
}

// replace is swap without RENAME_EXCHANGE: a copy of the old content is kept,
// the path is checked once more and renamed over. An edit in the moment
// between check and rename is not seen; that is why exchange comes first.
func replace(dir *os.File, base string, e edit) error {
	old, err := openAt(dir, base, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(old)
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	if err := writeTemp(dir, base, e.Temp+spare, e.From.Mode, data); err != nil {
		return err
	}
	now, err := look(dir, base)
	if err != nil {
		return err
	}
	if now.other != "" || now.SHA != e.From.SHA {
		return errors.Join(drift(e.Path, "was edited meanwhile"), remove(dir, e.Temp+spare))
	}
	if err := rename(dir, e.Temp+held, base); err != nil {
		return err
	}
	fault.Point("rollback.swap.replaced")
	return rename(dir, e.Temp+spare, e.Temp+held)
}

// unswap takes a swap of this process back. What the user wrote over the new
// content meanwhile stays.
func (t *tree) unswap(e edit) error {
	dir, base, err := t.folder(string(e.Path))
	if err != nil {
		return err
	}
	if e.To.absent() {
		err = moveNew(dir, e.Temp+held, base)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	now, err := look(dir, base)
	if err != nil || now.other != "" || now.SHA != e.To.SHA {
		return err
	}
	fault.Point("rollback.unswap")
	if !e.From.absent() {
		return t.putBack(dir, base, e)
	}
	if err := moveNew(dir, base, e.Temp+held); err != nil {
		return err
	}
	return t.inspect(dir, base, edit{Path: e.Path, From: e.To, Temp: e.Temp})
}

// clear removes every name of an edit but its path.
func (t *tree) clear(e edit) error {
	dir, _, err := t.folder(string(e.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fault.Point("rollback.clear.before")
	for _, suffix := range []string{writing, held, spare} {
		if err := remove(dir, e.Temp+suffix); err != nil {
			return err
		}
	}
	fault.Point("rollback.clear.after")
	return nil
}

func drift(p name, detail string) error {
	return &Error{Kind: KindDrift, Paths: []string{string(p)}, Detail: detail}
}
