package patch

import "fmt"

// The gates whose refusals this package reports.
const (
	GateDecode = "decode"
	GatePaths  = "paths"
	GatePlace  = "place"
)

// The reasons of a refusal. Callers branch on ReasonNoCode alone; the others
// are for people, reports and statistics.
const (
	// ReasonNoCode: the text is empty or nothing in it claims to be code.
	ReasonNoCode = "no_code"
	// ReasonTruncated: the provider did not say that the answer is complete.
	ReasonTruncated = "truncated"
	// ReasonNUL: the text holds a NUL byte.
	ReasonNUL = "nul"
	// ReasonTooLarge: the text is larger than MaxAnswer.
	ReasonTooLarge = "too_large"
	// ReasonFormat: Options.Format is unknown.
	ReasonFormat = "unknown_format"
	// ReasonNoPath: a block names no file and there is no single target.
	ReasonNoPath = "no_path"
	// ReasonTwoVersions: two different bodies claim to be the same file.
	ReasonTwoVersions = "two_versions"
	// ReasonLanguage: the only block is in another language than the target.
	ReasonLanguage = "wrong_language"
	// ReasonMalformed: the format was recognised but its structure is broken.
	ReasonMalformed = "malformed"
	// ReasonNoOperation: an envelope without a file operation.
	ReasonNoOperation = "no_operation"
	// ReasonBinary: a binary patch, or a file that is not text.
	ReasonBinary = "binary"
	// ReasonUnsupported: a form that is refused on purpose, such as a copy.
	ReasonUnsupported = "unsupported"

	// ReasonEscape: a path that is absolute or leaves the project.
	ReasonEscape = "escape"
	// ReasonProtected: a path inside .git.
	ReasonProtected = "protected"
	// ReasonBadPath: a path with forbidden bytes or in an unclean form.
	ReasonBadPath = "bad_path"
	// ReasonMode: a file mode that is no regular file's.
	ReasonMode = "bad_mode"

	// ReasonMissing: the file to change does not exist.
	ReasonMissing = "missing_file"
	// ReasonExists: the file to create exists.
	ReasonExists = "file_exists"
	// ReasonNoMatch: the quoted lines are not in the file.
	ReasonNoMatch = "no_match"
	// ReasonAmbiguous: the quoted lines are in the file more than once.
	ReasonAmbiguous = "ambiguous"
	// ReasonNoContext: an insertion that says nothing about its place.
	ReasonNoContext = "no_context"
	// ReasonOverlap: two hunks change the same lines.
	ReasonOverlap = "overlap"
	// ReasonIndentation: the place is clear, the new lines' indentation is not.
	ReasonIndentation = "indentation"
	// ReasonEncoding: new text that the file's encoding can't hold unchanged.
	ReasonEncoding = "encoding"
	// ReasonPostcondition: a byte outside the edit would have changed.
	ReasonPostcondition = "postcondition"
)

// Error is a refusal: which gate, what it found, and a sentence that helps the
// source of the answer to do better.
type Error struct {
	Gate, Reason string
	// Path is the file concerned, empty when it is the whole answer.
	Path     string
	Feedback string
}

// Error reads as a path: "patch: place: no_match: calc.py: …".
func (e *Error) Error() string {
	s := "patch: " + e.Gate + ": " + e.Reason
	if e.Path != "" {
		s += ": " + e.Path
	}
	return s + ": " + e.Feedback
}

func refuse(gate, reason, path, format string, args ...any) *Error {
	return &Error{Gate: gate, Reason: reason, Path: path, Feedback: fmt.Sprintf(format, args...)}
}

func noCode(format string, args ...any) *Error {
	return refuse(GateDecode, ReasonNoCode, "", format, args...)
}
