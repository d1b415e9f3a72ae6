package rollback

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// patterns and subjects that the tests combine.
func ignoreSubjects() []string {
	return []string{
		"a", "b", "a/b", "a/b/c", "b/a", "x/a/b", "foo.log", "dir/foo.log", "dir/sub/foo.log", "foo.logx", "abc", "a/abc", "adc", "a]c", "a-c", "#x", "!x", "x ", "x",
		"doc/frotz", "a/doc/frotz", "docs/x/y/frotz", "build/out.o", "src/build/out.o", "a.b", "axb", `a\b`, "A1", "deep/er/and/deeper",
	}
}

func ignorePatterns() []string {
	return []string{
		"a", "/a", "a/", "a/b", "/a/b", "**/b", "a/**", "a/**/c", "*.log", "/*.log", "dir/*.log", "**/*.log", "dir/**", "a?c", "a[bd]c", "a[!b]c", "a[^b]c",
		"a[a-c]c", "a[]]c", "a[-x]c", `a[\]]c`, "[[:upper:]]*", "#x", `\#x`, `\!x`, "x ", `x\ `, "doc/frotz", "doc/frotz/", "docs/**/frotz", "build/", "/build/",
		"*", "**", "a.b", `a\.b`, `a\\b`, "de*er", "deep/*", "a*", "*c", "", " ", "/", "**/", "a/*",
	}
}

func excludedBy(t *testing.T, text, subject string) bool {
	t.Helper()
	rules, err := parseIgnore(splitLines([]byte(text)))
	require.NoError(t, err, text)
	return guard{rules: rules}.excluded(subject)
}

// TestIgnoreAgreesWithGit asks git about every pattern and pair of patterns.
func TestIgnoreAgreesWithGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	texts := []string{"*\n!a\n", "*.log\n!foo.log\n", "a/*\n!a/b\n", "/*\n!/a\n/a/*\n!/a/b\n", "*.log\r\nb\r\n", "\xef\xbb\xbf*.log\n", "!b\nb\n", "dir/\n!dir/foo.log\n"}
	for _, p := range ignorePatterns() {
		texts = append(texts, p+"\n", "*\n!"+p+"\n", p)
	}
	dir := t.TempDir()
	for _, s := range ignoreSubjects() {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(s)), 0o755))
	}
	for _, s := range ignoreSubjects() {
		if info, err := os.Stat(filepath.Join(dir, s)); err != nil || !info.IsDir() {
			_ = os.WriteFile(filepath.Join(dir, s), nil, 0o600) // a folder of another subject stays one
		}
	}
	var plain []string // subjects that are files, as excluded takes them
	for _, s := range ignoreSubjects() {
		if info, err := os.Stat(filepath.Join(dir, s)); err == nil && !info.IsDir() {
			plain = append(plain, s)
		}
	}
	require.Greater(t, len(plain), 15)
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", dir, "init", "-q").Run())
	for _, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), "git", "-C", dir, "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Stdin = strings.NewReader(strings.Join(plain, "\x00") + "\x00")
		out, _ := cmd.Output() // exits 1 when nothing matches
		ignored := map[string]bool{}
		for s := range bytes.SplitSeq(out, []byte{0}) {
			ignored[string(s)] = true
		}
		for _, s := range plain {
			require.Equal(t, ignored[s], excludedBy(t, text, s), "%q on %q", text, s)
		}
	}
}

func TestBuiltInExclusionsCannotBeIncluded(t *testing.T) {
	t.Parallel()
	for _, p := range []string{".git/config", "a/.git", "a/node_modules/x.js", "x.pyc", "a/__pycache__/b", ".venv/x", "a/.hg/x"} {
		require.True(t, excludedBy(t, "!"+p+"\n!.git\n!*\n", p), p)
	}
	for _, p := range []string{".github/x", "venv.py", "x.pyi", "git/x", ".gitignore", "my__pycache__"} {
		require.False(t, excludedBy(t, "", p), p)
	}
}

func FuzzParseIgnore(f *testing.F) {
	for _, p := range ignorePatterns() {
		f.Add([]byte(p), "a/b")
	}
	f.Add([]byte("[a"), "a")
	f.Add([]byte("[[:x:]]"), "a")
	f.Fuzz(func(t *testing.T, data []byte, subject string) {
		rules, err := parseIgnore(splitLines(data))
		if err != nil {
			requireKind(t, err, KindUnreadable)
			return
		}
		g := guard{rules: rules}
		if subject != "" && g.excluded(subject) {
			require.True(t, g.excluded(subject+"/below"), "what stands in an excluded folder is excluded")
		}
	})
}
