package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// HashChanges is the identity of a candidate: the lower-case hex SHA-256 over
// its changes, sorted by path, each field preceded by its length. The order of
// the list does not matter; every field of every change does.
func HashChanges(changes []Change) string {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, compareChanges)
	h := sha256.New()
	writeUint(h, uint64(len(sorted)))
	for _, c := range sorted {
		writeField(h, c.Path)
		writeField(h, string(c.Op))
		writeField(h, c.Base)
		writeField(h, c.New)
		writeUint(h, uint64(c.Mode))
		writeUint(h, uint64(c.BaseMode))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func compareChanges(a, b Change) int {
	for _, p := range [][2]string{{a.Path, b.Path}, {string(a.Op), string(b.Op)}, {a.Base, b.Base}, {a.New, b.New}} {
		if n := strings.Compare(p[0], p[1]); n != 0 {
			return n
		}
	}
	return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.BaseMode, b.BaseMode))
}

func writeField(h hash.Hash, s string) {
	writeUint(h, uint64(len(s)))
	h.Write([]byte(s))
}

func writeUint(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
