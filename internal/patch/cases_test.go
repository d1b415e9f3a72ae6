package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

const fixedCalc = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"

// TestCasesPlaced: the answers of these reports carry a good edit; the file
// must be exactly this afterwards.
func TestCasesPlaced(t *testing.T) {
	t.Parallel()
	cases := loadCases(t)
	want := map[string]tree{
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
	for id, files := range want {
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

// TestCasesRefused: these answers must be refused, for one of these reasons.
func TestCasesRefused(t *testing.T) {
	t.Parallel()
	cases := loadCases(t)
	want := map[string][]string{
		"A001": {patch.ReasonNoCode},
		"A002": {patch.ReasonNoCode},
		"A003": {patch.ReasonNoCode},
		"A005": {patch.ReasonNoCode},
		"A006": {patch.ReasonNoPath},
		"A007": {patch.ReasonNoPath},
		"A015": {patch.ReasonMissing},
		"A020": {patch.ReasonTruncated},
		"A026": {patch.ReasonNoOperation},
		"A043": {patch.ReasonNoMatch},
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
	for id, reasons := range want {
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
