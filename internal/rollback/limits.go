package rollback

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits bound what a project may hold. A zero field means its default.
type Limits struct {
	// Files bounds entries of any type; default 20,000.
	Files int
	// Bytes bounds the contents together; default 256 MiB.
	Bytes int64
	// FileBytes bounds one content; default 64 MiB.
	FileBytes int64
	// Depth bounds how many folders lie above an entry; default 200.
	Depth int
}

// Defaults of Limits.
const (
	DefaultFiles     = 20_000
	DefaultBytes     = 256 << 20
	DefaultFileBytes = 64 << 20
	DefaultDepth     = 200
)

func (l Limits) withDefaults() Limits {
	return Limits{
		Files:     cmp.Or(l.Files, DefaultFiles),
		Bytes:     cmp.Or(l.Bytes, DefaultBytes),
		FileBytes: cmp.Or(l.FileBytes, DefaultFileBytes),
		Depth:     cmp.Or(l.Depth, DefaultDepth),
	}
}

// tally counts what a walk has seen, by the top-level path it lies under, so
// that a refusal can say what to exclude.
type tally struct {
	limits  Limits
	entries int
	bytes   int64
	count   map[string]int64
	size    map[string]int64
}

func newTally(l Limits) *tally {
	return &tally{limits: l, count: map[string]int64{}, size: map[string]int64{}}
}

// add counts one entry and fails when a limit is passed.
func (t *tally) add(path string, size int64) error {
	top, _, _ := strings.Cut(path, "/")
	t.entries++
	t.bytes += size
	t.count[top]++
	t.size[top] += size
	switch {
	case size > t.limits.FileBytes:
		return t.refuse([]string{path}, fmt.Sprintf("%d bytes, the limit for one file is %d", size, t.limits.FileBytes))
	case t.entries > t.limits.Files:
		return t.refuse(largest(t.count), fmt.Sprintf("more than %d files and folders", t.limits.Files))
	case t.bytes > t.limits.Bytes:
		return t.refuse(largest(t.size), fmt.Sprintf("more than %d bytes", t.limits.Bytes))
	case strings.Count(path, "/") > t.limits.Depth:
		return t.refuse([]string{top}, fmt.Sprintf("folders nested deeper than %d", t.limits.Depth))
	}
	return nil
}

func (t *tally) refuse(paths []string, what string) error {
	return &Error{Kind: KindLimit, Paths: paths, Detail: what + "; exclude what the tests do not need in " + ignoreFile}
}

// largest names up to three keys with the highest values.
func largest(m map[string]int64) []string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	return keys[:min(3, len(keys))]
}
