// Package patch turns what a model said into bytes: it decodes the answer into
// a Draft, places the draft's edits by content in the files they name, and
// renders the result as a unified diff. It is pure: no file, socket or clock.
//
// The rules are few and strict. A place is exact, or equal up to white space
// over whole lines, and unique; otherwise the answer is refused with the real
// lines quoted. Every byte outside an edit stays what it was, and new lines
// take the line end of their neighbours. Text is spliced literally.
package patch

// Op says what an Edit does to its path. The values equal those of run.Op.
type Op string

// The operations. A rename is a delete and a create whose From is set.
const (
	OpCreate Op = "create"
	OpModify Op = "modify"
	OpDelete Op = "delete"
)

// The formats that Options.Format accepts and Draft.Format reports.
const (
	// FormatAuto recognises the format from the text.
	FormatAuto = "auto"
	// FormatFile is whole files: in fences, in a JSON field, or bare code.
	FormatFile = "file"
	// FormatDiff is a unified diff, git's or plain.
	FormatDiff = "diff"
	// FormatSearch is SEARCH/REPLACE blocks or original/patched tags.
	FormatSearch = "search"
	// FormatPatch is the "*** Begin Patch" envelope.
	FormatPatch = "patch"
	// FormatEdits is JSON with search and replace strings.
	FormatEdits = "edits"
)

// FinishStop is the only stop reason under which an answer is used.
const FinishStop = "stop"

// MaxAnswer is the size in bytes above which an answer is refused unread.
const MaxAnswer = 8 << 20

// MaxFiles is the number of files above which an answer is refused: nobody
// reads a fix of more, and each takes a parser's time.
const MaxFiles = 200

// Options tell Decode what is known about an answer besides its text.
type Options struct {
	// Format is one of the Format constants; empty means FormatAuto.
	Format string
	// Finish is the provider's stop reason. Anything but FinishStop refuses
	// the answer, whatever it looks like.
	Finish string
	// Targets are the files that the answer is expected to change. A block
	// without a name is the only target's.
	Targets []string
	// Paths are the project's existing files. They serve to recognise names
	// in the text; they allow nothing.
	Paths []string
	// Read returns an existing file's bytes. With it, an edit that names no
	// file is the one's in which alone its lines are; nil leaves it refused.
	Read func(path string) ([]byte, bool)
}

// Draft is a decoded answer: what it wants to do, not yet where.
type Draft struct {
	// Format is the format that was recognised, never FormatAuto.
	Format string
	Files  []File
	// Tolerances lists the liberties that decoding took.
	Tolerances []string
}

// File is what a Draft wants to do to one path.
type File struct {
	// Path has passed CheckPath.
	Path string
	// Op is OpModify for Whole bodies too: Place finds out whether the file
	// exists. OpCreate insists that it does not.
	Op Op
	// MoveTo renames the file after its hunks were applied.
	MoveTo string
	// Mode holds permission bits that the answer states, 0 when it is silent.
	Mode uint32
	// Whole says that Body is the complete new content.
	Whole bool
	Body  []byte
	// Label is the first line of Body when it names the path; Place drops it
	// unless the file starts with that line already.
	Label []byte
	Hunks []Hunk
}

// Hunk is one edit inside a file: lines with their old and new side, or, when
// Literal is set, a text to look for and its replacement.
type Hunk struct {
	Lines []Line
	// Literal hunks may match inside a line.
	Literal         bool
	Search, Replace []byte
	// Start is the line (from 1) that a diff header states, 0 for none.
	Start int
	// Counted says that the header's line counts agree with Lines.
	Counted bool
	// Anchors are lines that the hunk lies below, outermost first.
	Anchors [][]byte
	// AtEOF ties the old side to the end of the file.
	AtEOF bool
	// Sequential hunks may refer to the result of the hunks before them.
	Sequential bool
}

// Line is one line of a hunk, without its line end.
type Line struct {
	// Kind is ' ' for context, '-' for old, '+' for new.
	Kind byte
	Text []byte
	// Bare lines are blank or context and came without the mark of the format.
	Bare bool
	// NoEOL says that the line is the file's last and has no line end.
	NoEOL bool
}

// Edit is one placed change: the bytes before and after.
type Edit struct {
	Path string
	Op   Op
	// From names the source of a renamed file, else it is empty.
	From string
	// Old is nil for OpCreate, New is nil for OpDelete.
	Old, New []byte
	// Mode holds permission bits that the answer states, 0 when it is silent.
	Mode uint32
	// Tolerances lists where placement was not exact.
	Tolerances []string
}
