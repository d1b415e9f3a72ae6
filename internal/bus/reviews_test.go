package bus

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReviews: a note outlives the server, and of two people who change it at
// once one is told so.
func TestReviews(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := start(t, setup{workers: healers(), sync: true})
	id := strings.Repeat("c", 26)
	client := b.attach()
	r, err := client.Review(ctx, id)
	require.NoError(t, err)
	require.Equal(t, Review{Run: id}, r)
	other := r
	r.Assignee = "ada"
	require.NoError(t, client.Note(ctx, r))
	other.Rejected, other.By = true, "bob"
	require.ErrorIs(t, client.Note(ctx, other), ErrMoved)
	r, err = client.Review(ctx, id)
	require.NoError(t, err)
	stale := r
	r.Rejected, r.By, r.Reason = true, "ada", "not worth it"
	require.NoError(t, client.Note(ctx, r))
	require.ErrorIs(t, client.Note(ctx, stale), ErrMoved)
	_, err = client.Review(ctx, "no run")
	require.Error(t, err)
	b.stop()

	b = start(t, setup{dir: b.set.dir, workers: healers()})
	r, err = b.core.Review(ctx, id)
	require.NoError(t, err)
	require.True(t, r.Rejected)
	require.Equal(t, "ada", r.Assignee)
	require.Equal(t, "not worth it", r.Reason)
}
