package patch_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

const fixedCalc = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"

// casesPlaced: the answers of these reports carry a good edit; the file must be
// exactly this afterwards.
var casesPlaced = map[string]tree{
	"A008": {"install.php": "<?php echo 1;\n", "migration.sql": "SELECT 1;\n"},
	"A009": {"app/main.py": "import util\n", "app/util.py": "V = 1\n"},
	"A010": {"main.py": "print(\"hi\")\n"},
	"A011": {"calc.py": fixedCalc},
	"A012": {"calc.py": fixedCalc},
	"A016": {"page.tsx": "export const A = () => <p>two</p>\n"},
	"A017": {"calc.py": fixedCalc},
	"A018": {"calc.py": fixedCalc},
	"A023": {"a.html": "<p>use &amp;lt; for a less-than sign</p>\n"},
	"A025": {"run.sh": "echo \"$1 $& ${HOME} $$\"\n"},
	"A039": {"f.txt": "a\nb\nC\nd\ne\n"},
	"A041": {"f.txt": "a\nb\nC\nd\ne\n"},
	"A043": {"g.py": "def g(x):\n    # guard\n    if x:\n\n        return 2\n    return 0\n"},
	"A046": {"f.txt": "a\nb\nC\nd\ne\n"},
	"A047": {"n.txt": "ONE\ntwo\nthree"},
	"A048": {"n.txt": "k: 1\nv: 3"},
	"A049": {"f.txt": "a\nb\nC\nd\ne\n"},
	"A052": {"calc.py": fixedCalc},
	"A060": {"foo.py": "def foo():\n    x = 100\n    y = 2\n    return x + y\n"},
	"A067": {"Makefile": "all:\n\techo ONE\n\techo two\n"},
	"A069": {"w.bat": "foo\r\nBAR\r\nbaz\r\n"},
	"A071": {"x.txt": "a\r\nb\nc\rd\r\nE\n"},
	"A072": {"t.ps1": "\ufeffhello2\n日本語\n"},
	"A074": {"b.py": "\ufeffx = 2\n"},
	"A075": {"s.txt": "const x = 2;\n// caf\xe9 note\n"},
	"A078": {"d.md": "say \u2018%s\u2019\n"},
	"A118": {"a.py": "x = 1\ny = 2\n"},
}

func TestCasesPlaced(t *testing.T) {
	t.Parallel()
	cases := loadCases(t)
	for id, files := range casesPlaced {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c, ok := cases[id]
			require.True(t, ok)
			base := c.tree(t)
			o := c.options()
			if _, calc := base["calc.py"]; calc {
				o.Targets = []string{"calc.py"}
			}
			got, _, err := base.apply(c.text(t, base), o)
			require.NoError(t, err)
			for p, body := range files {
				require.Equal(t, body, got[p], p)
			}
			require.LessOrEqual(t, len(got), len(base)+len(o.Targets)+len(files))
		})
	}
}

// casesRefused: these answers must be refused, for one of these reasons.
var casesRefused = map[string][]string{
	"A001": {patch.ReasonNoCode},
	"A002": {patch.ReasonNoCode},
	"A003": {patch.ReasonNoCode},
	"A005": {patch.ReasonNoCode},
	"A006": {patch.ReasonNoPath},
	"A007": {patch.ReasonNoPath},
	"A015": {patch.ReasonMissing},
	"A020": {patch.ReasonTruncated},
	"A026": {patch.ReasonNoOperation},
	"A044": {patch.ReasonAmbiguous},
	"A053": {patch.ReasonNoMatch},
	"A054": {patch.ReasonEscape},
	"A056": {patch.ReasonMode},
	"A057": {patch.ReasonNoMatch},
	"A062": {patch.ReasonNoMatch},
	"A064": {patch.ReasonNoMatch},
	"A066": {patch.ReasonAmbiguous},
	"A079": {patch.ReasonNUL, patch.ReasonNoMatch},
	"A119": {patch.ReasonNoCode},
	"A122": {patch.ReasonNoCode},
	"A123": {patch.ReasonMalformed},
}

func TestCasesRefused(t *testing.T) {
	t.Parallel()
	cases := loadCases(t)
	for id, reasons := range casesRefused {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c, ok := cases[id]
			require.True(t, ok)
			base := c.tree(t)
			texts := append([]string{c.text(t, base)}, c.Input.Outputs...)
			for _, text := range texts {
				if text == "" {
					continue
				}
				_, _, err := base.apply(text, c.options())
				requireReason(t, err, reasons...)
			}
		})
	}
}

// casesElsewhere are reports of these kinds whose input is no answer, or in
// words, with the place of their test.
var casesElsewhere = map[string]string{
	"A021": "internal/llm: reading a stream",
	"A050": "TestCaseA050", "A065": "TestCaseA065",
	"A059": "internal/rollback: writing", "A080": "internal/rollback: links", "A081": "internal/rollback: modes",
	"A082": "internal/rollback: kills", "A099": "internal/validate: paths",
}

// TestNoCaseIsForgotten: every report of a kind that this package is about has
// its test here, or a place where it is tested.
func TestNoCaseIsForgotten(t *testing.T) {
	t.Parallel()
	kinds := []string{
		"extract", "truncation", "diff", "diff-path", "match", "bytes", "apply-literal", "atomic", "fs", "junk", "parse",
	}
	for id, c := range loadCases(t) {
		_, placed := casesPlaced[id]
		_, refused := casesRefused[id]
		_, elsewhere := casesElsewhere[id]
		if slices.Contains(kinds, c.Kind) {
			require.True(t, placed || refused || elsewhere, "%s (%s) has no test", id, c.Kind)
		}
	}
}

// TestCaseA050: an answer of which one hunk fails leaves nothing behind, so
// that its other hunk is in the file once after the next answer.
func TestCaseA050(t *testing.T) {
	t.Parallel()
	base := tree{"l.py": "A = 1\nB = 2\n"}
	insert := "@@ -1,2 +1,3 @@\n A = 1\n+C = 3\n B = 2\n"
	_, _, err := base.apply(diffOf("l.py", insert+"@@ -9,1 +10,1 @@\n-D = 4\n+D = 5\n"), patch.Options{})
	requireReason(t, err, patch.ReasonNoMatch)
	require.Equal(t, tree{"l.py": "A = 1\nB = 2\n"}, base)
	got, _, err := base.apply(diffOf("l.py", insert+"@@ -2,1 +3,1 @@\n-B = 2\n+B = 5\n"), patch.Options{})
	require.NoError(t, err)
	require.Equal(t, "A = 1\nC = 3\nB = 5\n", got["l.py"])
}
