package rollback

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// thousand is a project of 1,000 files of 4 KiB in 20 folders.
func thousand(b *testing.B) *bundle {
	b.Helper()
	tree := files{}
	for i := range 1000 {
		tree[fmt.Sprintf("pkg%02d/m%03d.py", i%20, i)] = strings.Repeat(fmt.Sprintf("line %7d of this\n", i), 205)[:4096]
	}
	return setup(b, tree)
}

func BenchmarkScan(b *testing.B) {
	p := thousand(b)
	for b.Loop() {
		_, err := Scan(b.Context(), p.Dir, Limits{})
		require.NoError(b, err)
	}
}

// BenchmarkTake finds every content in the store already.
func BenchmarkTake(b *testing.B) {
	p := thousand(b)
	for b.Loop() {
		_, err := Take(b.Context(), p.Dir, Limits{}, p.blobs)
		require.NoError(b, err)
	}
}

func BenchmarkMaterialise(b *testing.B) {
	p := thousand(b)
	dir, i := b.TempDir(), 0
	for b.Loop() {
		i++
		require.NoError(b, Materialise(b.Context(), p.base, filepath.Join(dir, fmt.Sprint(i)), p.blobs))
	}
}

func BenchmarkHash(b *testing.B) {
	p := thousand(b)
	for b.Loop() {
		p.base.Hash()
	}
}

// BenchmarkApplyRestore is one file changed and taken back, with every fsync
// and the proof over the whole tree.
func BenchmarkApplyRestore(b *testing.B) {
	p := thousand(b)
	changes := []run.Change{p.modify("pkg00/m000.py", "x = 1\n")}
	for b.Loop() {
		require.NoError(b, p.Apply(b.Context(), changes, p.blobs))
		_, err := p.Restore(b.Context(), p.base, p.blobs)
		require.NoError(b, err)
	}
}
