package wire

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// RunID derives the id of a run from what identifies its task, so that the
// same task published twice is one run: 26 lower-case base32 characters of
// the SHA-256 over the length-prefixed parts.
func RunID(tenant string, parts ...string) string {
	h := sha256.New()
	for _, p := range append([]string{tenant}, parts...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:26]
}
