package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
)

// A live line never wraps: what does not fit is cut.
func TestRunFit(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", fit("short", 40))
	require.Equal(t, "⠋ debugger (att…", fit("⠋ debugger (attempt 1, engine)  12.3 s", 17))
	require.Len(t, []rune(fit(strings.Repeat("x", 100), 80)), 79)
	require.Equal(t, "…", fit("xx", 1))
	require.Equal(t, "語語…", fit("語語語", 6), "a wide character takes two columns")
}

// Text is wrapped between words and nowhere else; what a program reads is left
// alone.
func TestFold(t *testing.T) {
	t.Parallel()
	const id = "tests/test_invoice.py::Totals::test_a_discount_can_cost_the_free_shipping, passed"
	require.Equal(t, id, fold(id, 13, 0))
	require.Equal(t, id, fold(id, 13, 25), "no terminal is so narrow that words would be shredded")
	require.Equal(t, "one two three four\n    five", fold("one two three four five", 4, 24))
	require.Equal(t, "failed:\n  tests/test_invoice.py::Totals::test_a_discount_can_cost_the_free_shipping,\n  passed",
		fold("failed: "+id, 2, 42))
	require.Equal(t, "as it was (press\n  Ctrl-C again to leave\n  at once)", fold("as it was (press Ctrl-C again to leave at once)", 2, 24))
	require.Equal(t, "state\n  /srv/home-eye-new/state,\n  mine", fold("state /srv/home-eye-new/state, mine", 2, 28))
	require.Equal(t, "guardian   approve\n    it", fold("guardian   approve it", 4, 24), "blanks inside of a line stay")
	require.Equal(t, "two\n    lines", fold("two\nlines", 4, 30))
}

// Nothing is lost, every word stays whole, no line of several words is longer
// than the terminal, and none ends in a blank.
func TestFoldKeepsEveryWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z_:/語.-]{1,60}`), 1, 12).Draw(t, "words")
		indent, width := rapid.IntRange(0, 30).Draw(t, "indent"), rapid.IntRange(60, 200).Draw(t, "width")
		got := fold(strings.Join(words, " "), indent, width)
		for i, line := range strings.Split(got, "\n") {
			if i == 0 {
				line = strings.Repeat(" ", indent) + line
			}
			if len(strings.Fields(line)) > 1 {
				require.LessOrEqual(t, ansi.StringWidth(line), width)
			}
			require.Equal(t, strings.TrimRight(line, " "), line)
		}
		require.Equal(t, words, strings.Fields(got))
	})
}

// Of a path both ends stay.
func TestMiddle(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/srv/app", middle("/srv/app", 20))
	require.Equal(t, "/home/me/…es/billing", middle("/home/me/projects/services/billing", 20))
	require.Equal(t, 20, ansi.StringWidth(middle("/home/me/語語語語語語語語語語語語語語語語/billing", 20)))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z/語]{0,60}`).Draw(t, "text")
		columns := rapid.IntRange(3, 70).Draw(t, "columns")
		require.LessOrEqual(t, ansi.StringWidth(middle(text, columns)), columns)
	})
}

// A folder is shortened to its share of a terminal, wherever its column is.
func TestTableOfFolders(t *testing.T) {
	t.Parallel()
	const dir = "/home/me/projects/a-service/billing"
	for width, want := range map[int]string{
		0:  "RUN  FOLDER                               REASON\nx    " + dir + "  it failed\n",
		60: "RUN  FOLDER                REASON\nx    /home/me/…ce/billing  it failed\n",
	} {
		var out bytes.Buffer
		require.NoError(t, table(&env{out: &out, width: width}, []string{"RUN", folder, "REASON"}, [][]string{{"x", dir, "it failed"}}))
		require.Equal(t, want, out.String(), width)
	}
	var out bytes.Buffer
	require.NoError(t, table(&env{out: &out, width: 36}, []string{"RUN", folder}, [][]string{{"x", dir}}))
	require.Equal(t, "RUN  FOLDER\nx    /home/me/projec…service/billing\n", out.String())
}

// The last column of a table is wrapped beside the others, or stands below
// them, and no line ends in a blank.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"4t3z6q2m", "waiting", "no source has a further fix for it"}, {"mf37ubrn", "in work", ""}}
	for width, want := range map[int]string{
		0: "RUN       STATUS   REASON\n" +
			"4t3z6q2m  waiting  no source has a further fix for it\nmf37ubrn  in work\n",
		50: "RUN       STATUS   REASON\n4t3z6q2m  waiting  no source has a further fix for\n" +
			"                   it\nmf37ubrn  in work\n",
		40: "RUN       STATUS   REASON\n4t3z6q2m  waiting\n          no source has a further fix\n          for it\nmf37ubrn  in work\n",
	} {
		var out bytes.Buffer
		require.NoError(t, table(&env{out: &out, width: width}, []string{"RUN", "STATUS", "REASON"}, rows))
		require.Equal(t, want, out.String(), width)
	}
}

// The text of a step begins in one column on every line.
func TestStepsAreAligned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := newView(&env{out: &out, width: 44}, false)
	v.line("✓", "baseline   failed: 6 passed, 3 failed: tests of the invoice")
	v.line("!", "stopping (interrupt): the folder is put back as it was")
	require.Equal(t, "✓ baseline   failed: 6 passed, 3 failed:\n             tests of the invoice\n"+
		"! stopping (interrupt): the folder is put\n  back as it was\n", out.String())
}

// A reviewer who has nothing to add leaves no blank at the end of the line.
func TestAnApprovalEndsWithItsWord(t *testing.T) {
	t.Parallel()
	text, ok := describeAnswer(run.Answer{Review: &run.ReviewAnswer{Word: run.WordApprove}}, run.State{})
	require.True(t, ok)
	require.Equal(t, "guardian   approve", text)
}
