package agents

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// TestLocked: whoever writes a folder holds its lock, and only while the run
// waits for its answer.
func TestLocked(t *testing.T) {
	t.Parallel()
	b := newBench(t, calc())
	j := b.pending(run.Deliver, run.Ask{Deliver: &run.DeliverInput{Dir: b.dir}})
	called := 0
	require.NoError(t, locked(t.Context(), j, b.dir, func() error {
		called++
		_, err := rollback.Lock(b.dir)
		require.True(t, rollback.IsKind(err, rollback.KindBusy), "%v", err)
		return nil
	}))
	mine := errors.New("mine")
	require.ErrorIs(t, locked(t.Context(), j, b.dir, func() error { called++; return mine }), mine)
	unlock, err := rollback.Lock(b.dir)
	require.NoError(t, err, "it was given back, after an error too")
	err = locked(t.Context(), j, b.dir, func() error { called++; return nil })
	require.Equal(t, failure.Connection, failure.Classify(err))
	require.NoError(t, unlock())
	require.True(t, rollback.IsKind(locked(t.Context(), j, filepath.Join(b.dir, "nowhere"), nil), rollback.KindMissing))
	late := j
	late.N += 7
	require.ErrorIs(t, locked(t.Context(), late, b.dir, func() error { called++; return nil }), errNotPending)
	require.Equal(t, 2, called)
}

// TestDrifted: drift, and what became unsafe meanwhile; a few paths of many.
func TestDrifted(t *testing.T) {
	t.Parallel()
	for kind, want := range map[rollback.Kind]bool{
		rollback.KindDrift: true, rollback.KindUnsafe: true, rollback.KindBusy: false, rollback.KindUnproven: false, rollback.KindWrite: false,
	} {
		paths, ok := drifted(fmt.Errorf("deliver: %w", &rollback.Error{Kind: kind, Paths: []string{"a.py"}}))
		require.Equal(t, want, ok, string(kind))
		if want {
			require.Equal(t, []string{"a.py"}, paths)
		}
	}
	paths, ok := drifted(&rollback.Error{Kind: rollback.KindDrift})
	require.True(t, ok)
	require.NotEmpty(t, paths, "a drift without paths is one all the same")
	paths, _ = drifted(&rollback.Error{Kind: rollback.KindDrift, Paths: strings.Split(strings.Repeat("a.py ", 900), " ")})
	require.Len(t, paths, run.MaxPaths)
	_, ok = drifted(nil)
	require.False(t, ok)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for kind, want := range map[rollback.Kind]bool{
		rollback.KindMissing: true, rollback.KindNotFolder: true, rollback.KindEmpty: true, rollback.KindUnreadable: true,
		rollback.KindLimit: true, rollback.KindUnsteady: true, rollback.KindBlob: false, rollback.KindJournal: false,
	} {
		cause := &rollback.Error{Kind: kind}
		var bad *bus.BadInput
		require.Equal(t, want, errors.As(badInput(cause), &bad), string(kind))
		require.ErrorIs(t, badInput(cause), cause)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"a.py": "text", "empty": "", "link": "→a.py", "sub/x": "x"})
	m, _ := b.snapshot()
	for path, want := range map[string]string{"a.py": "text", "empty": ""} {
		data, ok, err := content(t.Context(), b.store, m, path)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, string(data))
	}
	for _, path := range []string{"link", "sub", "nowhere"} {
		_, ok, err := content(t.Context(), b.store, m, path)
		require.NoError(t, err)
		require.False(t, ok, path)
	}
	e, _ := m.Lookup("a.py")
	_, _, err := content(t.Context(), failing{Blobs: b.store, fake: map[string]string{e.SHA256: "other"}}, m, "a.py")
	require.ErrorContains(t, err, "a.py: ")
}
