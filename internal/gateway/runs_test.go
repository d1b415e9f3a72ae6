package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestARunIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	b := setup(t, options{alone: true})
	var ids []string
	for i := 0; len(ids) < 2; i++ { // two that begin alike
		key := fmt.Sprint(i)
		if id := wire.RunID("local", "key", key); id[0] == 'n' {
			require.Equal(t, id, b.submit(t, b.root, "Idempotency-Key", key).Run)
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		var v view
		b.call(t, "GET", "/v1/runs/"+id[:20], "").into(t, http.StatusOK, &v)
		require.Equal(t, id, v.Run)
	}
	require.Contains(t, b.call(t, "GET", "/v1/runs/n", "").problem(t, http.StatusNotFound), "give more characters")
	for _, id := range []string{strings.Repeat("a", 26), "n2222222", "UPPER", strings.Repeat("a", 27), "a*", "%3E", "a.b"} {
		b.call(t, "GET", "/v1/runs/"+id, "").problem(t, http.StatusNotFound)
		b.call(t, "GET", "/v1/runs/"+id+"/events", "").problem(t, http.StatusNotFound)
		b.call(t, "POST", "/v1/runs/"+id+"/cancel", "").problem(t, http.StatusNotFound)
	}
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, options{alone: true})
	var l list
	b.call(t, "GET", "/v1/runs", "").into(t, http.StatusOK, &l)
	require.Empty(t, l.Runs)
	var ids []string
	for i := range 25 {
		ids = append(ids, b.submit(t, b.root, "Idempotency-Key", fmt.Sprint(i)).Run)
		if i == 3 { // so that some ages are remembered and some are not
			b.call(t, "GET", "/v1/runs", "")
		}
	}
	slices.Reverse(ids)
	b.call(t, "GET", "/v1/runs", "").into(t, http.StatusOK, &l)
	require.Equal(t, 25, l.Total)
	require.Equal(t, ids[:20], idsOf(l))
	require.Equal(t, run.Running, l.Runs[0].State)
	b.call(t, "GET", "/v1/runs?limit=2&other=1", "").into(t, http.StatusOK, &l)
	require.Equal(t, ids[:2], idsOf(l))
	for _, bad := range []string{"0", "101", "-1", "x", "1e3", "99999999999999999999"} {
		require.Contains(t, b.call(t, "GET", "/v1/runs?limit="+bad, "").problem(t, http.StatusBadRequest), "limit")
	}
}

func idsOf(l list) []string {
	var ids []string
	for _, r := range l.Runs {
		ids = append(ids, r.Run)
	}
	return ids
}

// damaging reports the log of one run as damaged.
type damaging struct {
	Bus
	id string
}

func (d damaging) ReadLog(ctx context.Context, id string) (bus.Log, error) {
	if id == d.id {
		return bus.Log{}, fmt.Errorf("bus: log of %s: %w: secret detail", id, wire.ErrMalformed)
	}
	return d.Bus.ReadLog(ctx, id)
}

func TestADamagedLogHidesNoOtherRun(t *testing.T) {
	t.Parallel()
	bad := wire.RunID("local", "key", "bad")
	b := setup(t, options{over: func(b Bus) Bus { return damaging{b, bad} }})
	_, err := b.link.Submit(t.Context(), "local", "bad", wire.Heal{Dir: b.root})
	require.NoError(t, err)
	b.finish(t, bad)
	good := b.submit(t, b.root).Run
	b.finish(t, good)
	var l list
	b.call(t, "GET", "/v1/runs", "").into(t, http.StatusOK, &l)
	require.Equal(t, []string{good, bad}, idsOf(l))
	require.Equal(t, []run.Terminal{run.Approved, stateUnreadable}, []run.Terminal{l.Runs[0].State, l.Runs[1].State})
	require.Equal(t, 1, l.Runs[0].Attempts)
	got := b.call(t, "GET", "/v1/runs/"+bad, "")
	require.NotContains(t, got.problem(t, http.StatusInternalServerError), "secret")
	require.Contains(t, b.log.String(), "secret detail")
}

func TestARunIsCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t, options{held: true})
	acc := b.submit(t, b.root)
	for _, body := range []string{`{"reason":"no longer needed"}`, ``, `{}`} { // twice is the same as once
		got := b.call(t, "POST", acc.Links.Cancel, body)
		if got.status != http.StatusConflict { // it may have ended by then
			require.Equal(t, http.StatusAccepted, got.status, string(got.body))
		}
	}
	b.finish(t, acc.Run)
	var v view
	b.call(t, "GET", acc.Links.Self, "").into(t, http.StatusOK, &v)
	require.Equal(t, run.NeedsHumanReview, v.State)
	require.Equal(t, "no longer needed", v.Reason)
	require.Contains(t, b.call(t, "POST", acc.Links.Cancel, "").problem(t, http.StatusConflict), "NEEDS_HUMAN_REVIEW")
	b.call(t, "POST", acc.Links.Cancel, "x").problem(t, http.StatusBadRequest)
	b.call(t, "POST", acc.Links.Cancel, `{"reson":"enough"}`).problem(t, http.StatusBadRequest)
	b.call(t, "POST", acc.Links.Cancel, `{"reason":"`+strings.Repeat("x", 501)+`"}`).problem(t, http.StatusBadRequest)
	b.call(t, "POST", acc.Links.Cancel, `{}`, "Content-Type", "text/plain").problem(t, http.StatusUnsupportedMediaType)
	b.call(t, "POST", acc.Links.Cancel, strings.Repeat(" ", maxBody+1)).problem(t, http.StatusRequestEntityTooLarge)
}
