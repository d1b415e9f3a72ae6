package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"nexuscore.dev/nexus/internal/run"
)

// item is a run in a list.
type item struct {
	Run      string       `json:"run"`
	State    run.Terminal `json:"state"`
	Terminal bool         `json:"terminal"`
	Closed   bool         `json:"closed"`
	Reason   string       `json:"reason"`
	Dir      string       `json:"dir"`
	Step     string       `json:"step"`
	Attempts int          `json:"attempts"`
	Opened   time.Time    `json:"opened_at"`
	Updated  time.Time    `json:"updated_at"`
	Links    links        `json:"links"`
}

type list struct {
	Runs []item `json:"runs"`
	// Total counts all runs, listed or not.
	Total int `json:"total"`
}

// stateUnreadable is the state of a run whose log is damaged.
const stateUnreadable run.Terminal = "UNREADABLE"

const (
	defaultLimit = 20
	maxLimit     = 100
)

// listRuns lists the newest runs first.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	limit := defaultLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			return refuse(http.StatusBadRequest, nameMalformed, "limit must be a number from 1 to %d, not %q", maxLimit, text)
		}
		limit = n
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.times.bus)
	defer cancel()
	ids, err := s.newest(ctx)
	if err != nil {
		return err
	}
	out := list{Runs: []item{}, Total: len(ids)}
	for _, id := range ids[:min(limit, len(ids))] {
		st, err := s.read(ctx, id)
		if isDamaged(err) {
			s.cfg.Log.Warn().Err(errors.Unwrap(err)).Str("run", id).Msg("damaged log")
			out.Runs = append(out.Runs, item{Run: id, State: stateUnreadable, Reason: err.Error(), Links: linksOf(id)})
			continue
		}
		if err != nil {
			return err
		}
		v := viewOf(st)
		out.Runs = append(out.Runs, item{
			Run: id, State: v.State, Terminal: v.Terminal, Closed: v.Closed, Reason: v.Reason, Dir: v.Dir,
			Step: v.Step, Attempts: len(v.Tries), Opened: v.Opened, Updated: v.Updated, Links: v.Links,
		})
	}
	return sendJSON(w, http.StatusOK, out)
}

// ages remembers when runs opened, which never changes, so that a list does
// not read the log of every run again.
type ages struct {
	mu     sync.Mutex
	opened map[string]time.Time
}

// newest returns the ids of all runs, the newest first.
func (s *Server) newest(ctx context.Context) ([]string, error) {
	all, err := s.cfg.Bus.Runs(ctx)
	if err != nil {
		return nil, busError(err)
	}
	s.ages.mu.Lock()
	defer s.ages.mu.Unlock()
	opened := make(map[string]time.Time, len(all))
	ids := make([]string, 0, len(all))
	for id := range all {
		at, ok := s.ages.opened[id]
		if !ok {
			st, err := s.read(ctx, id)
			if err != nil && !isDamaged(err) {
				return nil, err
			}
			at = st.OpenedAt
		}
		opened[id] = at
		ids = append(ids, id)
	}
	s.ages.opened = opened
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(opened[b].Compare(opened[a]), cmp.Compare(a, b))
	})
	return ids, nil
}
