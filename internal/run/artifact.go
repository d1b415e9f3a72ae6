package run

// Ref names an artifact: the lower-case hex SHA-256 of its bytes and their
// number. Events carry Refs for everything that may be large.
type Ref struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Tree is one state of a project: the manifest that lists it, and the tree
// hash, which covers every path, kind, mode, content and link target.
type Tree struct {
	Manifest Ref    `json:"manifest"`
	Hash     string `json:"hash"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
}

// Op says what a Change does to its path.
type Op string

// The operations of a Change.
const (
	OpCreate Op = "create"
	OpModify Op = "modify"
	OpDelete Op = "delete"
)

// Change is what a candidate does to one path. Contents are artifacts; a
// Change holds their hashes only.
type Change struct {
	// Path is relative to the project, slash-separated and clean.
	Path string `json:"path"`
	Op   Op     `json:"op"`
	// Base is the SHA-256 of the file before, empty for OpCreate.
	Base string `json:"base,omitempty"`
	// New is the SHA-256 of the file after, empty for OpDelete.
	New string `json:"new,omitempty"`
	// Mode holds the permission bits after the change.
	Mode uint32 `json:"mode,omitempty"`
	// BaseMode holds those before, 0 when they are not known.
	BaseMode uint32 `json:"base_mode,omitempty"`
}

// Candidate is a decoded, gated set of changes. Its Hash is what the test
// stage tested, the reviewers saw and deliver writes.
type Candidate struct {
	// Rank orders the candidates of one attempt, 0 first.
	Rank int `json:"rank"`
	// Hash is HashChanges(Changes).
	Hash    string   `json:"hash"`
	Changes []Change `json:"changes"`
	// Diff is a unified diff for people.
	Diff Ref `json:"diff"`
	// Note names where the candidate comes from: the engine's operator, or
	// the format of the model's answer.
	Note string `json:"note,omitempty"`
	// OnOrigin is true when the candidate changes the project as it was and
	// not the base of its attempt.
	OnOrigin bool `json:"on_origin,omitempty"`
	// Tolerances lists where placement was not exact.
	Tolerances []string `json:"tolerances,omitempty"`
	// Tripwires lists constructs that only a person may approve.
	Tripwires []string `json:"tripwires,omitempty"`
	// Tree is the project with the changes applied; set by the apply stage.
	Tree *Tree `json:"tree,omitempty"`
}

// Proposal is one raw answer of a source, not yet decoded.
type Proposal struct {
	// Text is the answer as it came.
	Text Ref `json:"text"`
	// Format tells the decoder what to expect: auto, diff, file, edits.
	Format string `json:"format"`
	// Finish is the provider's stop reason: stop or length.
	Finish string `json:"finish"`
	Note   string `json:"note,omitempty"`
}
