package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/sandbox"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "garbage"), []byte("\x00\x01"), 0o755))
	for name, c := range map[string]struct {
		spec sandbox.Spec
		want error
	}{
		"no command":        {sandbox.Spec{Dir: dir}, sandbox.ErrSpec},
		"no folder":         {sandbox.Spec{Argv: []string{"true"}}, sandbox.ErrSpec},
		"missing folder":    {sandbox.Spec{Dir: dir + "/none", Argv: []string{"true"}}, sandbox.ErrSpec},
		"a file as folder":  {sandbox.Spec{Dir: dir + "/plain", Argv: []string{"true"}}, sandbox.ErrSpec},
		"descriptor 2":      {sandbox.Spec{Dir: dir, Argv: []string{"true"}, ExtraFiles: []sandbox.ExtraFile{{File: os.Stdin, FD: 2}}}, sandbox.ErrSpec},
		"the whole machine": {sandbox.Spec{Dir: dir, Argv: []string{"true"}, Writable: []string{"/"}}, sandbox.ErrSpec},
		"a tree at /":       {sandbox.Spec{Dir: dir, Argv: []string{"true"}, MountAt: "/"}, sandbox.ErrSpec},
		"a tree at /usr":    {sandbox.Spec{Dir: dir, Argv: []string{"true"}, MountAt: "/usr"}, sandbox.ErrSpec},
		"a tree in /proc":   {sandbox.Spec{Dir: dir, Argv: []string{"true"}, MountAt: "/proc/self/x"}, sandbox.ErrSpec},
		"tests elsewhere":   {sandbox.Spec{Dir: dir, Argv: []string{"true"}, ReadOnlyOver: []string{"../x"}}, sandbox.ErrSpec},
		"unknown network":   {sandbox.Spec{Dir: dir, Argv: []string{"true"}, Network: "some"}, sandbox.ErrSpec},
		"level none":        {sandbox.Spec{Dir: dir, Argv: []string{"true"}, Level: sandbox.LevelNone}, sandbox.ErrUnavailable},
		"unknown level":     {sandbox.Spec{Dir: dir, Argv: []string{"true"}, Level: "vm9"}, sandbox.ErrUnavailable},
		"not on PATH":       {sandbox.Spec{Dir: dir, Argv: []string{"no-such-command"}}, sandbox.ErrCommandNotFound},
		"no such file":      {sandbox.Spec{Dir: dir, Argv: []string{"./none"}}, sandbox.ErrCommandNotFound},
		"not executable":    {sandbox.Spec{Dir: dir, Argv: []string{"./plain"}}, sandbox.ErrCommandNotFound},
		"no program":        {sandbox.Spec{Dir: dir, Argv: []string{"./garbage"}}, sandbox.ErrCommandNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sandbox.Run(t.Context(), c.spec)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestDetectNamesLevelAndReasons(t *testing.T) {
	t.Parallel()
	best := sandbox.Detect(t.Context(), "")
	require.Contains(t, []sandbox.Level{sandbox.LevelFull, sandbox.LevelUser, sandbox.LevelThin}, best.Level)
	thin := sandbox.Detect(t.Context(), sandbox.LevelThin)
	require.Equal(t, sandbox.LevelThin, thin.Level)
	require.NotEmpty(t, thin.Missing)
	require.Empty(t, thin.Features.Namespaces)
	require.Equal(t, sandbox.LevelNone, sandbox.Detect(t.Context(), sandbox.LevelNone).Level)
}

// case A159.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[31mF\xfe\x00\xffAIL\n":                "F\uFFFD\uFFFDAIL\n",
		"a\x1b]0;title\x07b":                        "ab",
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "alink",
		"a\x1b]never ends\nb":                       "anever ends\nb",
		"\u009b31mred":                              "red",
		"50%\r100%\r\ndone\n":                       "50%\n100%\ndone\n",
		"tab\tbell\x07back\x08":                     "tab\tbellback",
		"safe\u202egnp.exe\u200b":                   "safegnp.exe",
		"\x1b":                                      "",
		"\x1b[":                                     "",
		"\x1b(Bx\x1bcx":                             "xx",
		"日本語 ✓ 👩‍👧":                                 "日本語 ✓ 👩‍👧",
		"":                                          "",
	} {
		require.Equal(t, want, sandbox.Printable([]byte(in)), "%q", in)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add([]byte("\x1b]0;t\x07\x1b[1mx\u009b\xc2\x9d\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		s := sandbox.Printable(p)
		require.True(t, utf8.ValidString(s))
		require.False(t, strings.ContainsFunc(s, func(r rune) bool {
			return r != '\n' && r != '\t' && r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e
		}))
		require.Equal(t, s, sandbox.Printable([]byte(s)), "stable")
		require.LessOrEqual(t, len(s), 3*len(p))
	})
}
