package sandboxtest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	os.Exit(m.Run())
}

var levels = []sandbox.Level{sandbox.LevelVM, sandbox.LevelFull, sandbox.LevelUser, sandbox.LevelThin}

// TestHostile runs the conformance suite at every level that this machine
// grants. With NEXUS_HOSTILE_TABLE it prints what happened.
func TestHostile(t *testing.T) {
	var rows []sandboxtest.Row
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) { rows = append(rows, sandboxtest.Run(t, level)...) })
	}
	if os.Getenv("NEXUS_HOSTILE_TABLE") == "" {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	slices.SortStableFunc(rows, func(a, b sandboxtest.Row) int { return strings.Compare(a.Program, b.Program) })
	for _, r := range rows {
		ok := map[bool]string{true: "ok", false: "FAILED"}[r.OK]
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t-> %s\n", ok, r.Program, r.Level, r.Tried, r.Happened)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
}
