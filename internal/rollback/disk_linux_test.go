package rollback

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFullDiskForReal uses a file system of 256 KiB; it needs root.
func TestFullDiskForReal(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(small, unix.MNT_DETACH)) })
	b := setupIn(t, small, t.TempDir(), files{"a.py": strings.Repeat("1\n", 32<<10), "b.py": "1\n"})
	two := strings.Repeat("2\n", 64<<10)
	b.fails(b.apply(b.modify("b.py", "2\n"), b.modify("a.py", two), b.create("n/c.py", two)), KindWrite)
	require.NoError(t, b.apply(b.modify("b.py", "2\n"), b.modify("a.py", two)))
	filler := filepath.Join(small, "filler")
	require.Error(t, os.WriteFile(filler, make([]byte, 256<<10), 0o600))
	_, err := b.Restore(t.Context(), b.base, b.blobs)
	requireKind(t, err, KindUnproven)
	require.NoError(t, os.Remove(filler))
	b.restored()
}
