package patch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// TestLeftOutLinesStay: an answer may leave out blank lines and comments of the
// lines that it quotes; they stay where they are.
func TestLeftOutLinesStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, old, search, replace, want string }{
		"comment":        {"f.py", "a = 1\n# why\nb = 2\n", "a = 1\nb = 2\n", "a = 1\nb = 3\n", "a = 1\n# why\nb = 3\n"},
		"blank":          {"f.txt", "a\n\nb\n", "a\nb\n", "a\nB\n", "a\n\nB\n"},
		"both":           {"f.go", "f()\n\n\t// x\n\tg()\n", "f()\n\tg()\n", "f()\n\th()\n", "f()\n\n\t// x\n\th()\n"},
		"deleted":        {"f.py", "a = 1\n# why\nb = 2\nc = 3\n", "a = 1\nb = 2\nc = 3\n", "c = 3\n", "# why\nc = 3\n"},
		"all new":        {"f.py", "a = 1\n# why\nb = 2\n", "a = 1\nb = 2\n", "x = 0\n", "# why\nx = 0\n"},
		"invented blank": {"f.py", "a = 1\n# w\nb = 2\n", "a = 1\n\nb = 2\n", "a = 1\n\nb = 3\n", "a = 1\n# w\nb = 3\n"},
		"line ends":      {"f.py", "a = 1\r\n# w\r\nb = 2\r\n", "a = 1\nb = 2\n", "a = 1\nb = 3\n", "a = 1\r\n# w\r\nb = 3\r\n"},
	} {
		got, _, err := tree{c.file: c.old}.apply(block(c.file, c.search, c.replace), patch.Options{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got[c.file], name)
	}
}

// TestLeftOutCodeIsRefused: what is neither blank nor a comment is content, and
// two places are as ambiguous as ever.
func TestLeftOutCodeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, old, reason string }{
		"code between":        {"f.py", "a = 1\nx = 0\nb = 2\n", patch.ReasonNoMatch},
		"no comment here":     {"f.txt", "a = 1\n# why\nb = 2\n", patch.ReasonNoMatch},
		"other language":      {"f.go", "a = 1\n# why\nb = 2\n", patch.ReasonNoMatch},
		"comment at its end":  {"f.py", "a = 1\nx = 0 # why\nb = 2\n", patch.ReasonNoMatch},
		"two places":          {"f.py", strings.Repeat("a = 1\n# why\nb = 2\n", 2), patch.ReasonAmbiguous},
		"another indentation": {"f.py", "a = 1\n# why\n    b = 2\n", patch.ReasonNoMatch},
		"end of the file":     {"f.py", "a = 1\n# why\n", patch.ReasonNoMatch},
	} {
		_, _, err := tree{c.file: c.old}.apply(block(c.file, "a = 1\nb = 2\n", "a = 1\nb = 3\n"), patch.Options{})
		requireReason(t, err, c.reason)
		require.NotEmpty(t, name)
	}
}
