package run_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// FuzzJudge gives Judge any two pieces of evidence: it always answers with one
// of the six kinds, and passed is never said without all that it promises.
func FuzzJudge(f *testing.F) {
	for _, c := range judgeCases {
		base, err := json.Marshal(c.base)
		require.NoError(f, err)
		got, err := json.Marshal(c.got)
		require.NoError(f, err)
		f.Add(base, got)
		f.Add(got, base)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var base, got run.Evidence
		if json.Unmarshal(a, &base) != nil || json.Unmarshal(b, &got) != nil {
			return
		}
		v := run.Judge(base, got)
		requireKind(t, v)
		require.Equal(t, v, run.Judge(shuffled(base), shuffled(got)))
		if v.Kind == run.VerdictPassed {
			requirePromises(t, base, got, v)
			requireFragile(t, base, got)
		}
		requireKind(t, run.JudgeBase(got))
		if run.JudgeBase(got).Kind == run.VerdictPassed {
			require.True(t, got.Weak || got.Completed && got.Canary && got.Exit == 0)
			require.Empty(t, got.Tampered)
			require.False(t, got.Timeout || got.Limit != "" || got.Infrastructure != "" || got.Tree == "")
		}
	})
}

func requireKind(t *testing.T, v run.Verdict) {
	t.Helper()
	require.Contains(t, []run.VerdictKind{
		run.VerdictPassed, run.VerdictFailed, run.VerdictUntrusted, run.VerdictLimit, run.VerdictTimeout, run.VerdictInfrastructure,
	}, v.Kind)
	require.True(t, v.Reason != "" || v.Kind == run.VerdictPassed, "%+v", v)
	for _, list := range [][]string{v.Failed, v.Fixed, v.Broken, v.Missing, v.Flaky} {
		require.LessOrEqual(t, len(list), run.MaxIDs)
		require.True(t, slices.IsSorted(list))
	}
}

func shuffled(e run.Evidence) run.Evidence {
	for _, list := range []*[]string{&e.Collected, &e.Declared, &e.Signs, &e.Flaky} {
		*list = slices.Clone(*list)
		slices.Reverse(*list)
	}
	return e
}

// requirePromises checks what passed means, without Judge's own helpers.
func requirePromises(t *testing.T, base, got run.Evidence, v run.Verdict) {
	t.Helper()
	require.Equal(t, base.Runner, got.Runner)
	require.NotEmpty(t, got.Tree)
	require.False(t, got.Timeout || got.Limit != "" || got.Infrastructure != "" || got.Signal != "" || len(got.Tampered) > 0)
	require.True(t, got.Exit == 0 || anyRed(got), "only a flaky test may be red")
	if got.Weak {
		require.True(t, v.Weak)
		return
	}
	require.True(t, got.Completed && got.Canary)
	require.NotZero(t, v.Counts.Passed)
	flaky := func(id string) bool { return slices.Contains(base.Flaky, id) }
	for id, o := range got.Outcomes {
		known := []run.Outcome{run.OutcomePassed, run.OutcomeSkipped, run.OutcomeXFailed, run.OutcomeXPassed}
		require.True(t, flaky(id) || slices.Contains(known, o), "%s is %s", id, o)
	}
	for id, o := range base.Outcomes {
		if o == run.OutcomePassed && !flaky(id) {
			require.Equal(t, run.OutcomePassed, got.Outcomes[id], "%s was green", id)
		}
		if (o == run.OutcomeFailed || o == run.OutcomeError) && slices.Contains(base.Collected, id) && !flaky(id) {
			require.Equal(t, run.OutcomePassed, got.Outcomes[id], "%s was red", id)
		}
	}
	for _, id := range base.Collected {
		_, reported := got.Outcomes[id]
		require.True(t, reported || flaky(id), "%s is missing", id)
	}
	for _, sign := range got.Signs {
		require.Contains(t, base.Signs, sign)
	}
}

func anyRed(e run.Evidence) bool {
	for _, o := range e.Outcomes {
		switch o {
		case run.OutcomePassed, run.OutcomeSkipped, run.OutcomeXFailed, run.OutcomeXPassed:
		default:
			return true
		}
	}
	return false
}

// requireFragile takes one piece of evidence away at a time: none may be
// dispensable.
func requireFragile(t *testing.T, base, got run.Evidence) {
	t.Helper()
	changes := map[string]func(*run.Evidence){
		"tree":    func(e *run.Evidence) { e.Tree = "" },
		"signal":  func(e *run.Evidence) { e.Signal = "SIGKILL" },
		"timeout": func(e *run.Evidence) { e.Timeout = true },
		"limit":   func(e *run.Evidence) { e.Limit = "memory" },
		"runner":  func(e *run.Evidence) { e.Runner += "x" },
	}
	if !anyRed(got) {
		changes["exit"] = func(e *run.Evidence) { e.Exit = 5 }
	}
	if !got.Weak {
		changes["record"] = func(e *run.Evidence) { e.Completed = false }
		changes["canary"] = func(e *run.Evidence) { e.Canary = false }
		changes["sign"] = func(e *run.Evidence) { e.Signs = append(slices.Clone(e.Signs), "a sign that no base has") }
	}
	for name, change := range changes {
		require.NotEqual(t, run.VerdictPassed, run.Judge(base, but(got, change)).Kind, name)
	}
	for id, o := range base.Outcomes {
		if _, there := got.Outcomes[id]; !there || o != run.OutcomePassed || got.Weak || slices.Contains(base.Flaky, id) {
			continue
		}
		for _, worse := range []run.Outcome{run.OutcomeSkipped, run.OutcomeXFailed, run.OutcomeXPassed, run.OutcomeFailed, "", "unheard of"} {
			v := run.Judge(base, but(got, func(e *run.Evidence) { e.Outcomes[id] = worse }))
			require.NotEqual(t, run.VerdictPassed, v.Kind, "%s is %q", id, worse)
		}
		v := run.Judge(base, but(got, func(e *run.Evidence) { delete(e.Outcomes, id) }))
		require.NotEqual(t, run.VerdictPassed, v.Kind, "%s is gone", id)
	}
}
