package bus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	o, err := Own(dir)
	require.NoError(t, err)
	_, err = Own(dir)
	require.ErrorIs(t, err, ErrOwned)
	_, err = FindOwner(dir)
	require.ErrorIs(t, err, os.ErrNotExist)

	want := Address{URL: "nats://local:secret@127.0.0.1:1", PID: 7}
	require.NoError(t, o.Announce(want))
	got, err := FindOwner(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
	info, err := os.Stat(filepath.Join(dir, addressFile))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())

	require.NoError(t, o.Release())
	_, err = FindOwner(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	o, err = Own(dir)
	require.NoError(t, err)
	require.NoError(t, o.Release())
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte("2\n"), 0o600))
	for range 2 { // the refusal gives the lock back
		_, err := Own(dir)
		require.ErrorContains(t, err, "use a newer nexus")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, addressFile), []byte("{"), 0o600))
	_, err := FindOwner(dir)
	require.ErrorContains(t, err, addressFile)
}
