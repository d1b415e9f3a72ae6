package rollback

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Kind says what is wrong in a way that a caller branches on.
type Kind string

// The kinds of Error.
const (
	// KindMissing: the folder does not exist.
	KindMissing Kind = "missing"
	// KindNotFolder: the path names something else than a folder.
	KindNotFolder Kind = "not a folder"
	// KindEmpty: the folder holds no file that is not excluded.
	KindEmpty Kind = "empty"
	// KindUnreadable: a permission or an input/output error.
	KindUnreadable Kind = "unreadable"
	// KindLimit: more files, bytes or levels than Limits allow.
	KindLimit Kind = "over the limit"
	// KindUnsteady: a file kept changing while it was read.
	KindUnsteady Kind = "changing"
	// KindChange: a change that is malformed or contradicts another one.
	KindChange Kind = "bad change"
	// KindUnsafe: a path that may not be written: excluded, a hard link, a
	// FIFO, a device, a link that leaves the project.
	KindUnsafe Kind = "unsafe path"
	// KindDrift: a path holds neither the base nor the new content.
	KindDrift Kind = "drift"
	// KindWrite: the file system refused a write; the tree is as it was.
	KindWrite Kind = "write"
	// KindBusy: another process holds the folder.
	KindBusy Kind = "busy"
	// KindJournal: the journal is unreadable or damaged. Never taken for empty.
	KindJournal Kind = "journal"
	// KindBlob: a content is missing or does not match its hash.
	KindBlob Kind = "blob"
	// KindManifest: an encoded manifest is damaged or of a newer version.
	KindManifest Kind = "manifest"
	// KindUnproven: after a restore the disk does not hold the base.
	KindUnproven Kind = "unproven"
	// KindRegistry: the registry of claims is unreadable or damaged.
	KindRegistry Kind = "registry"
)

// Error is every error of this package but BusyError.
type Error struct {
	Kind Kind
	// Paths are relative to the project, at most as many as a person reads.
	Paths []string
	// Detail says what to do or what was found.
	Detail string
	Err    error
}

// Error reads as a path: rollback: drift: a.py, b.py: detail: cause.
func (e *Error) Error() string {
	parts := []string{"rollback", string(e.Kind)}
	if len(e.Paths) > 0 {
		parts = append(parts, list(e.Paths))
	}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsKind reports whether err is, or wraps, an Error of kind k.
func IsKind(err error, k Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == k
}

const listed = 10 // paths that an error's text names before it counts

func list(paths []string) string {
	shown := make([]string, 0, listed+1)
	for i, p := range paths {
		if i == listed {
			shown = append(shown, fmt.Sprintf("and %d more", len(paths)-listed))
			break
		}
		shown = append(shown, printable(p))
	}
	return strings.Join(shown, ", ")
}

// printable quotes a path that would not survive a terminal.
func printable(p string) string {
	odd := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if strings.ContainsFunc(p, odd) {
		return strconv.QuoteToASCII(p)
	}
	return p
}

func unsafePath(path, detail string) *Error {
	return &Error{Kind: KindUnsafe, Paths: []string{path}, Detail: detail}
}
