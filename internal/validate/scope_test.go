package validate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesOf: folders at every depth, and the first of the files that differ
// in case alone.
func TestNamesOf(t *testing.T) {
	t.Parallel()
	n := namesOf([]string{"a/b/C.py", "a/b/c.py", "ÄÖ.md", "d.py"})
	for _, folder := range []string{".", "a", "a/b"} {
		require.True(t, n.folders[folder], folder)
	}
	require.Len(t, n.folders, 3)
	require.Equal(t, "a/b/C.py", n.folded[fold("A/B/c.PY")])
	require.Equal(t, "ÄÖ.md", n.folded[fold("äö.MD")])
	require.NotContains(t, n.folded, fold("a"))
}
