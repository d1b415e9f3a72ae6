package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// BenchmarkPlaceFiveHunks places a diff of five hunks in a file of 10,000
// lines; the aim is 1 ms.
func BenchmarkPlaceFiveHunks(b *testing.B) {
	var src strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&src, "    value_%d = compute(%d, scale=%d)\n", i, i*7, i%13)
	}
	old := src.String()
	changed := old
	for i := 1000; i <= 9000; i += 2000 {
		line := fmt.Sprintf("    value_%d = compute(%d, scale=%d)\n", i, i*7, i%13)
		changed = strings.Replace(changed, line, line+"    extra = 1\n", 1)
	}
	diff := patch.Diff("f.py", []byte(old), []byte(changed))
	d, err := patch.Decode(diff, patch.Options{Finish: patch.FinishStop})
	require.NoError(b, err)
	require.Len(b, d.Files[0].Hunks, 5)
	data := []byte(old)
	read := func(path string) ([]byte, bool) { return data, path == "f.py" }
	b.ReportAllocs()
	for b.Loop() {
		edits, err := patch.Place(d, read)
		if err != nil || len(edits) != 1 {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeDiff reads the same kind of diff from the text of an answer.
func BenchmarkDecodeDiff(b *testing.B) {
	text := []byte("Here is the fix:\n```diff\n--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n```\n")
	for b.Loop() {
		if _, err := patch.Decode(text, patch.Options{Finish: patch.FinishStop}); err != nil {
			b.Fatal(err)
		}
	}
}
