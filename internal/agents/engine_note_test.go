package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// TestNoteNamesOtherFixes: the first of each other behaviour, no more than
// three, and nothing where nothing was compared.
func TestNoteNamesOtherFixes(t *testing.T) {
	t.Parallel()
	fix := func(reason string, behaviour int) repair.Fix {
		return repair.Fix{Reason: reason, Behaviour: behaviour}
	}
	require.Equal(t, "a", note([]repair.Fix{fix("a", 0), fix("b", 0), fix("c", repair.NotCompared)}, 0))
	require.Equal(t, "c", note([]repair.Fix{fix("a", 0), fix("b", 1), fix("c", repair.NotCompared)}, 2))
	two := []repair.Fix{fix("a", 0), fix("b", 1), fix("c", 1)}
	require.Equal(t, "a; 1 other fix passes the same tests but behaves differently near their inputs: b", note(two, 0))
	require.Equal(t, "b; 1 other fix passes the same tests but behaves differently near their inputs: a", note(two, 1))
	five := append(two, fix("d", 2), fix("e", 3), fix("f", 4))
	require.Equal(t, "a; 4 other fixes pass the same tests but behave differently near their inputs: b, d, e, 1 more", note(five, 0))
}
