package agents

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// TestJournalIsLost: what a candidate put into the folder is taken back even
// when the journal that should name it is gone or torn; what somebody else
// wrote stays.
func TestJournalIsLost(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(string) error{
		"gone": os.Remove,
		"torn": func(journal string) error {
			text, err := os.ReadFile(journal)
			if err != nil {
				return err
			}
			return os.Truncate(journal, int64(bytes.IndexByte(text, '\n')+10)) // its head is whole
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, calc())
			before := b.hash()
			origin, _ := b.snapshot()
			p := projects{b.state}.of("lost", b.dir)
			changes := []run.Change{b.modify(origin, "calc.py", fixed), b.create("new.py", "x = 1\n", 0o644)}
			require.NoError(t, p.Apply(t.Context(), changes, b.store))
			require.NotEqual(t, before, b.hash())
			require.NoError(t, damage(p.Journal))
			rep, err := takeBack(t.Context(), p, origin, changes, b.store)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"calc.py", "new.py"}, rep.Restored)
			require.Empty(t, rep.Foreign)
			require.Equal(t, before, rep.After)
			require.Equal(t, before, b.hash())

			b.write(files{"calc.py": "theirs\n"})
			rep, err = takeBack(t.Context(), p, origin, changes, b.store)
			require.NoError(t, err)
			require.Equal(t, "theirs\n", b.read("calc.py"), "nobody else's file is touched: %v", rep)
		})
	}
}

// TestWritten: what only lay in a staged copy was never the run's to take back.
func TestWritten(t *testing.T) {
	t.Parallel()
	tree := run.Tree{Hash: "t"}
	c := run.Candidate{Hash: "c", Tree: &tree, Changes: []run.Change{{Path: "a.py", Op: run.OpModify, Base: "x", New: "y"}}}
	s := run.State{Attempts: []run.Attempt{{
		Status: run.StatusPytestPass, Validated: &run.ValidateAnswer{Accepted: []run.Candidate{c}},
		Applied: &run.ApplyAnswer{Candidates: []run.Candidate{c}},
		Tested:  &run.TestAnswer{Results: []run.TestResult{{Candidate: "c", Verdict: run.Verdict{Kind: run.VerdictPassed, Tree: "t"}}}},
	}}}
	require.Empty(t, written(s))
	s.Ruling = &run.ReviewAnswer{Word: run.WordApprove}
	require.Equal(t, c.Changes, written(s))
	s.Ruling, s.Task.InPlace = nil, true
	require.NotEmpty(t, written(s))
}
