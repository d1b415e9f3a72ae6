package agents

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

type tree map[string]string

func (f tree) with(change map[string]string) tree {
	out := maps.Clone(f)
	maps.Copy(out, change)
	return out
}

func (f tree) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		if text == deleted {
			continue
		}
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
	}
	return dir
}

const deleted = "\x00deleted"

// The project that the fakes claim to have healed.
const code = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n\n\ndef label(n):\n    return 'no. %d' % n\n"

var suites = map[string]string{
	testrun.Pytest: "from calc import add, label, mul\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n\n\ndef test_label():\n    assert label(3) == 'no. 3'\n",
	testrun.Unittest: "import unittest\n\nfrom calc import add, label, mul\n\n\nclass CalcTest(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n" +
		"    def test_mul(self):\n        self.assertEqual(mul(2, 3), 6)\n\n    def test_label(self):\n        self.assertEqual(label(3), 'no. 3')\n",
}

// fakes reads testdata/fakes.txt: "== name", then "-- path" with its text.
func fakes(t *testing.T) map[string]tree {
	t.Helper()
	data, err := os.ReadFile("testdata/fakes.txt")
	require.NoError(t, err)
	out := map[string]tree{}
	for _, part := range strings.Split(string(data), "\n== ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		out[name] = tree{}
		for _, file := range strings.Split("\n"+rest, "\n-- ")[1:] {
			path, text, _ := strings.Cut(file, "\n")
			if p, gone := strings.CutSuffix(path, " (deleted)"); gone {
				path, text = p, deleted
			}
			out[name][path] = text + "\n"
			if text == deleted {
				out[name][path] = deleted
			}
		}
	}
	return out
}

// begin opens a trial and runs its base once, for several candidates.
func begin(t *testing.T, runner string, base tree) (*trial, run.Evidence) {
	t.Helper()
	command := map[string]string{testrun.Pytest: "pytest", testrun.Unittest: "python3 -m unittest"}[runner]
	r := &trial{Trial: Trial{Base: base.write(t), Test: command}, temp: t.TempDir()}
	var err error
	r.base, err = openFolder(t.Context(), r.Base)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.base.root.Close()) })
	r.plan, err = testrun.Find(t.Context(), r.Base, command)
	if err != nil {
		t.Skip("this machine cannot run these tests: ", err)
	}
	require.Equal(t, runner, r.plan.Runner)
	e, err := r.baseline(t.Context())
	require.NoError(t, err)
	return r, e
}

// on judges a candidate with a trial of its own on the same base.
func on(t *testing.T, r *trial, baseline run.Evidence, candidate tree) (run.Verdict, *trial) {
	t.Helper()
	own := *r
	own.temp = t.TempDir()
	own.Candidate = candidate.write(t)
	var err error
	own.cand, err = openFolder(t.Context(), own.Candidate)
	require.NoError(t, err)
	defer func() { require.NoError(t, own.cand.root.Close()) }()
	before := own.cand.m.Hash()
	v, err := own.judge(t.Context(), baseline)
	require.NoError(t, err)
	after, err := rollback.Scan(t.Context(), own.Candidate, anySize)
	require.NoError(t, err)
	require.Equal(t, before, after.Hash(), "the candidate's folder was written")
	return v, &own
}

// No fake passes, under either runner; the honest fix does.
func TestFakesDoNotPass(t *testing.T) {
	t.Parallel()
	all := fakes(t)
	require.GreaterOrEqual(t, len(all), 26)
	for runner, suite := range suites {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			base := tree{"calc.py": code, "tests/test_calc.py": suite}
			r, e := begin(t, runner, base)
			require.Len(t, e.Split, 3, "the assertions run apart from the code: %+v", e)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					v, _ := on(t, r, e, base.with(all[name]))
					require.NotEqual(t, run.VerdictPassed, v.Kind, v.Tail)
					t.Logf("%s: %s", v.Kind, v.Reason)
				})
			}
			for name, fix := range map[string]tree{
				"the operator":    {"calc.py": strings.Replace(code, "a - b", "a + b", 1)},
				"in another file": {"calc.py": strings.Replace("from sums import plus\n\n\n"+code, "a - b", "plus(a, b)", 1), "sums.py": "def plus(a, b):\n    return sum((a, b))\n"},
				"with a class":    {"calc.py": strings.Replace(code, "return a - b", "return Sum(a, b).value", 1) + "\n\nclass Sum:\n    def __init__(self, *parts):\n        self.value = sum(parts)\n"},
			} {
				t.Run("honest: "+name, func(t *testing.T) {
					t.Parallel()
					v, _ := on(t, r, e, base.with(fix))
					require.Equal(t, run.VerdictPassed, v.Kind, "%s\n%s", v.Reason, v.Tail)
					require.Len(t, v.Fixed, 1)
				})
			}
		})
	}
}
