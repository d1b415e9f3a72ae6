package rollback

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"

	"nexuscore.dev/nexus/internal/run"
)

// Type is what an entry of a Manifest is.
type Type string

// The types of an Entry. Everything else that a folder may hold (FIFO, socket,
// device) is listed in Manifest.Special instead.
const (
	TypeFile Type = "file"
	TypeDir  Type = "dir"
	TypeLink Type = "symlink"
)

// Entry is one path of a project.
type Entry struct {
	// Path is relative to the project, slash-separated and clean. It holds
	// the bytes of the name as they are, which need not be UTF-8.
	Path string
	Type Type
	// Mode holds the nine permission bits; 0 for a link, which has none.
	Mode uint32
	// Size is the number of bytes of a file.
	Size int64
	// SHA256 is the lower-case hex hash of a file's content, else empty.
	SHA256 string
	// Target is where a link points, as written.
	Target string
}

// Manifest is one state of a project: every path that is not excluded, sorted
// by the bytes of the path. Treat it as immutable.
type Manifest struct {
	Entries []Entry
	// Ignore holds the lines of the project's .nexusignore. What they match
	// is neither stored, changed nor deleted, like the built-in exclusions.
	Ignore []string
	// Environments lists folders left out because they hold a pyvenv.cfg.
	Environments []string
	// Special lists FIFOs, sockets and devices. They are left alone, and a
	// candidate that touches one is refused.
	Special []string
	// HardLinked lists files with several names. They can be read; a
	// candidate that touches one is refused, because replacing one name
	// would part it from the others.
	HardLinked []string
}

// Hash is the tree hash: SHA-256 in hex over the path, type, mode, content
// and link target of every entry, each written with its length. Two trees have
// the same hash exactly when they hold the same; times, owners and what is
// excluded do not count.
func (m Manifest) Hash() string {
	h := sha256.New()
	h.Write([]byte("nexus tree 1\n"))
	for _, e := range m.Entries {
		writeField(h, e.Path)
		writeField(h, string(e.Type))
		h.Write(binary.BigEndian.AppendUint32(nil, e.Mode))
		writeField(h, e.SHA256)
		writeField(h, e.Target)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeField(h hash.Hash, s string) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
	h.Write([]byte(s))
}

// Lookup finds the entry of a path.
func (m Manifest) Lookup(path string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(m.Entries, path, func(e Entry, p string) int {
		return cmp.Compare(e.Path, p)
	})
	if !ok {
		return Entry{}, false
	}
	return m.Entries[i], true
}

// Totals counts the files and their bytes.
func (m Manifest) Totals() (files int, bytes int64) {
	for _, e := range m.Entries {
		if e.Type == TypeFile {
			files++
			bytes += e.Size
		}
	}
	return files, bytes
}

// Tree summarises the manifest for an event; ref names its stored encoding.
func (m Manifest) Tree(ref run.Ref) run.Tree {
	files, bytes := m.Totals()
	return run.Tree{Manifest: ref, Hash: m.Hash(), Files: files, Bytes: bytes}
}

// Differs lists, sorted, every path whose entry is not the same in both.
func (m Manifest) Differs(other Manifest) []string {
	var out []string
	for a, b := m.Entries, other.Entries; len(a) > 0 || len(b) > 0; {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Path < b[0].Path:
			out, a = append(out, a[0].Path), a[1:]
		case len(a) == 0 || b[0].Path < a[0].Path:
			out, b = append(out, b[0].Path), b[1:]
		default:
			if !same(a[0], b[0]) {
				out = append(out, a[0].Path)
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// same compares what Hash covers.
func same(a, b Entry) bool {
	a.Size, b.Size = 0, 0
	return a == b
}
