package rollback

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// A report that a run leaves in a project, and its first line. A file of that
// name at the top of a project that begins with the mark is no part of any
// tree: it is neither stored nor restored, and the tree hash that a run proved
// stays true when the report is written after it.
const (
	ReportName = "review_report.md"
	ReportMark = "<!-- written by nexus: it may be replaced or deleted -->"
	// reportTemp is used where a file system knows no files without a name.
	reportTemp = ".nexus-" + ReportName
)

// PlaceReport writes text, which must begin with ReportMark, to the top of the
// project. It is false, and touches nothing, when something else of that name
// stands there. The caller holds the lock of the folder. When it is killed the
// project holds the report as it was, none, or the new one: it gets its name
// when it is complete and durable.
func PlaceReport(dir string, text []byte) (ok bool, err error) {
	if !bytes.HasPrefix(text, []byte(ReportMark)) {
		return false, fmt.Errorf("rollback: a report without its mark")
	}
	root, err := openFolder(dir)
	if err != nil {
		return false, err
	}
	top, err := root.Open(".")
	if err = errors.Join(err, root.Close()); err != nil {
		return false, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	defer func() { err = errors.Join(err, top.Close()) }()
	switch there, err := look(top, ReportName); {
	case err != nil:
		return false, &Error{Kind: KindUnreadable, Paths: []string{ReportName}, Err: err}
	case there.other != "" || !there.absent() && !isReport(top):
		return false, nil
	}
	err = writeReport(top, text, false)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // somebody else was faster
	}
	if err != nil {
		return false, &Error{Kind: KindWrite, Paths: []string{ReportName}, Err: err}
	}
	return true, nil
}

// isReport reports whether the file of that name at the top begins with the
// mark.
func isReport(top *os.File) bool {
	f, err := openAt(top, ReportName, unix.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	head := make([]byte, len(ReportMark))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == ReportMark
}

// writeReport makes the report complete under no name, and gives it its own.
// plain makes it do without files that have none.
func writeReport(top *os.File, text []byte, plain bool) (err error) {
	f, named, err := nameless(top, plain)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	half := len(text) / 2 // a kill between the halves leaves a torn file
	for _, part := range [][]byte{text[:half], text[half:]} {
		if _, err := f.Write(part); err != nil {
			return err
		}
		fault.Point("rollback.report.write")
	}
	if err := dress(top, ReportName, f); err != nil {
		return err
	}
	if err := unix.Fchmod(int(f.Fd()), NewFileMode); err != nil {
		return &fs.PathError{Op: "chmod", Path: ReportName, Err: err}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	fault.Point("rollback.report.synced")
	if err := clearReport(top); err != nil {
		return err
	}
	fault.Point("rollback.report.name.before")
	if named {
		err = moveNew(top, reportTemp, ReportName)
	} else {
		err = giveName(f, top, ReportName)
	}
	if err != nil {
		return err
	}
	fault.Point("rollback.report.name.after")
	return top.Sync()
}

// clearReport takes an older report of ours away. What somebody else put there
// since it was looked at stays, and is fs.ErrExist.
func clearReport(top *os.File) error {
	there, err := look(top, ReportName)
	switch {
	case err != nil:
		return err
	case there.absent():
		return nil
	case there.other != "" || !isReport(top):
		return fs.ErrExist
	}
	return remove(top, ReportName)
}

// nameless opens a new file that has no name yet, or where the file system
// has no such thing one of a name that no tree holds.
func nameless(top *os.File, plain bool) (f *os.File, named bool, err error) {
	if !plain {
		if f, err = unnamed(top); err == nil {
			return f, false, nil
		}
	}
	if err := remove(top, reportTemp); err != nil {
		return nil, false, err
	}
	f, err = openAt(top, reportTemp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	return f, true, err
}
