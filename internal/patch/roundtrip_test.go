package patch_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/patch"
)

// genContent draws file contents that are hard on diffs: few distinct lines,
// lines that look like diff syntax, every line end, no final line end.
func genContent(label string) *rapid.Generator[string] {
	line := rapid.SampledFrom([]string{
		"", "a", "b", "\tx = 1", "    x = 1", "x = 1", "-- drop", "++ add", "@@ -1 +1 @@", "--- a/f", "+++ b/f",
		"\\ No newline at end of file", "diff --git a/f b/f", "caf\xe9", "日本語", "c\rd", " ", "$1 &amp;", "```", "+", "-",
	})
	end := rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n"})
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 14).Draw(t, label+" lines")
		var b strings.Builder
		if rapid.IntRange(0, 9).Draw(t, label+" bom") == 0 && n > 0 {
			b.WriteString("\ufeff")
		}
		for i := range n {
			b.WriteString(line.Draw(t, label))
			if i < n-1 || rapid.Bool().Draw(t, label+" final") {
				b.WriteString(end.Draw(t, label+" end"))
			}
		}
		return b.String()
	})
}

// genPair draws a file and a version of it with some lines changed.
func genPair() *rapid.Generator[[2]string] {
	return rapid.Custom(func(t *rapid.T) [2]string {
		old := genContent("old").Draw(t, "old")
		if rapid.IntRange(0, 3).Draw(t, "rewrite") == 0 {
			return [2]string{old, genContent("new").Draw(t, "new")}
		}
		lines := strings.SplitAfter(old, "\n")
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
			repl := genContent("piece").Draw(t, "piece")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				lines[at] = repl
			case 1:
				lines[at] += repl
			default:
				lines[at] = ""
			}
		}
		return [2]string{old, strings.Join(lines, "")}
	})
}

// TestDiffRoundTrip: a diff of ours, decoded and placed, gives the new file
// back, and its inverse the old one.
func TestDiffRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pair := genPair().Draw(t, "pair")
		for _, p := range [][2]string{pair, {pair[1], pair[0]}} {
			if p[0] == p[1] {
				continue
			}
			requireRoundTrip(t, p[0], p[1])
		}
	})
}

func requireRoundTrip(t require.TestingT, old, after string) {
	diff := patch.Diff("dir/f.txt", []byte(old), []byte(after))
	got, _, err := tree{"dir/f.txt": old}.apply(string(diff), patch.Options{Format: patch.FormatDiff})
	if !utf8.ValidString(old) && strings.ContainsAny(after, "\ufeff日本語") && err != nil {
		var e *patch.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, patch.ReasonEncoding, e.Reason)
		return
	}
	require.NoError(t, err, "%q -> %q\n%s", old, after, diff)
	require.Equal(t, after, got["dir/f.txt"], "%q\n%s", old, diff)
}

func TestDiffRoundTripCreateDelete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := genContent("body").Draw(t, "body")
		diff := patch.Diff("new.txt", nil, []byte(body))
		got, _, err := tree{}.apply(string(diff), patch.Options{Format: patch.FormatDiff})
		require.NoError(t, err, string(diff))
		require.Equal(t, tree{"new.txt": body}, got)

		diff = patch.Diff("new.txt", []byte(body), nil)
		got, _, err = tree{"new.txt": body}.apply(string(diff), patch.Options{Format: patch.FormatDiff})
		require.NoError(t, err, string(diff))
		require.Empty(t, got)
	})
}

// TestDiffAgainstGitdiff: another implementation reads our diffs the same way.
func TestDiffAgainstGitdiff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := genPair().Draw(t, "pair")
		if p[0] == p[1] {
			return
		}
		diff := patch.Diff("f.txt", []byte(p[0]), []byte(p[1]))
		files, _, err := gitdiff.Parse(bytes.NewReader(diff))
		require.NoError(t, err, string(diff))
		require.Len(t, files, 1)
		var out bytes.Buffer
		require.NoError(t, gitdiff.Apply(&out, strings.NewReader(p[0]), files[0]), string(diff))
		require.Equal(t, p[1], out.String())
	})
}

// TestWholeFileKeepsUntouchedLines: a whole-file answer changes the lines that
// differ and nothing else, whatever the line ends around them.
func TestWholeFileKeepsUntouchedLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"\n", "\r\n"}), n, n).Draw(t, "ends")
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		final := rapid.Bool().Draw(t, "final")
		var old, want, answer strings.Builder
		answer.WriteString("```text f.txt\n")
		for i := range n {
			end := ends[i]
			if i == n-1 && !final {
				end = ""
			}
			text := "line " + string(rune('a'+i))
			old.WriteString(text + end)
			if i == at {
				text += " changed"
			}
			want.WriteString(text + end)
			answer.WriteString(text + "\n")
		}
		answer.WriteString("```\n")
		got, _, err := tree{"f.txt": old.String()}.apply(answer.String(), patch.Options{})
		require.NoError(t, err)
		require.Equal(t, want.String(), got["f.txt"])
	})
}
