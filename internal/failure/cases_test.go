package failure_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
)

// TestCases runs every row of the shared table of inputs; the table lives
// beside the repository and may be absent.
func TestCases(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "shared", "classify", "cases.tsv")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared table of cases is not beside this checkout")
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	require.Greater(t, len(lines), 100)
	for i, line := range lines[1:] {
		col := strings.Split(line, "\t")
		require.Len(t, col, 6, "line %d", i+2)
		status := 0
		if col[2] != "" {
			status, err = strconv.Atoi(col[2])
			require.NoError(t, err, "line %d", i+2)
		}
		got := failure.ExplainSignal(failure.Signal{
			Type: col[0], Message: strings.ReplaceAll(col[1], `\n`, "\n"), Status: status, Origin: failure.Origin(col[3]),
		})
		require.Equal(t, col[4], string(got.Category), "line %d: %s (decided by %s)", i+2, line, got.Reason)
	}
}
