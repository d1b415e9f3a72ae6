package patch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// edits writes pairs of search and replace as structured edits of path.
func edits(path string, pairs ...string) string {
	var list []map[string]string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, map[string]string{"path": path, "search": pairs[i], "replace": pairs[i+1]})
	}
	b, err := json.Marshal(map[string]any{"edits": list})
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(b)
}

func block(path, search, replace string) string {
	return path + "\n<<<<<<< SEARCH\n" + search + "=======\n" + replace + ">>>>>>> REPLACE\n"
}

func diffOf(path, hunks string) string { return "--- a/" + path + "\n+++ b/" + path + "\n" + hunks }

var (
	two         = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"
	placedCases = map[string]struct{ old, text, want string }{
		"shifted indentation": {
			"class A:\n    def f(self):\n        return 1\n",
			block("f", "def f(self):\n    return 1\n", "def f(self):\n    y = 2\n    return y\n"),
			"class A:\n    def f(self):\n        y = 2\n        return y\n",
		},
		"too deep indentation": {
			"def f():\n    return 1\n",
			block("f", "    def f():\n        return 1\n", "    def f():\n        return 2\n"),
			"def f():\n    return 2\n",
		},
		"spaces for tabs": {
			"func f() {\n\tif x {\n\t\treturn 1\n\t}\n}\n",
			block("f", "    if x {\n        return 1\n    }\n", "    if x {\n        if y {\n            return 2\n        }\n        return 1\n    }\n"),
			"func f() {\n\tif x {\n\t\tif y {\n\t\t\treturn 2\n\t\t}\n\t\treturn 1\n\t}\n}\n",
		},
		"trailing white space of the file stays": {
			"a \nb\t\nc\n", block("f", "a\nb\nc\n", "a\nB\nc\n"), "a \nB\nc\n",
		},
		"context of a tolerant match stays": {
			"if  x:\n    a = 1\n    b  =  2\n", block("f", "if x:\n    a = 1\n    b = 2\n", "if x:\n    a = 9\n    b = 2\n"),
			"if  x:\n    a = 9\n    b  =  2\n",
		},
		"header line decides between equal blocks": {
			two, diffOf("f", "@@ -7,2 +7,2 @@\n-    x = 1\n+    x = 2\n     return x\n"),
			strings.Replace(two, "def b():\n    x = 1", "def b():\n    x = 2", 1),
		},
		"heading decides between equal blocks": {
			two, diffOf("f", "@@ -40,2 +40,2 @@ def b():\n-    x = 1\n+    x = 2\n     return x\n"),
			strings.Replace(two, "def b():\n    x = 1", "def b():\n    x = 2", 1),
		},
		"anchor of the patch format": {
			two, "*** Begin Patch\n*** Update File: f\n@@ def a():\n-    x = 1\n+    x = 2\n*** End Patch\n",
			strings.Replace(two, "def a():\n    x = 1", "def a():\n    x = 2", 1),
		},
		"sequential blocks build on each other": {
			"a\n", block("f", "a\n", "b\n") + block("f", "b\n", "c\n"), "c\n",
		},
		"a later block is not confused by an earlier result": {
			"a\nb\n", block("f", "a\n", "b\n") + block("f", "b\n", "c\n"), "b\nc\n",
		},
		"line numbers everywhere": {
			"x = 1\ny = 2\n", block("f", "1|x = 1\n2|y = 2\n", "1|x = 1\n2|y = 3\n"), "x = 1\ny = 3\n",
		},
		"numbers that are content": {
			"1|x\n2|y\n", block("f", "1|x\n2|y\n", "1|x\n2|z\n"), "1|x\n2|z\n",
		},
		"insertion at the start keeps the BOM there": {
			"\ufeffa\r\nb\r\n", diffOf("f", "@@ -1,2 +1,3 @@\n+new\n a\n b\n"), "\ufeffnew\r\na\r\nb\r\n",
		},
		"insertion takes the neighbour's line end": {
			"a\r\nb\nc\n", diffOf("f", "@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n"), "a\r\nx\r\nb\nc\n",
		},
		"append to a file without final newline": {
			"a\nb", diffOf("f", "@@ -1,2 +1,3 @@\n a\n b\n+c\n"), "a\nb\nc",
		},
		"blank context lines without their space": {
			"a\n\nb\nc\n", diffOf("f", "@@ -1,4 +1,4 @@\n a\n\n-b\n+B\n c\n"), "a\n\nB\nc\n",
		},
		"text after the diff": {
			"a\nb\nc\n", diffOf("f", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n") + "\nThis changes b.\n", "a\nB\nc\n",
		},
		"text after a diff with wrong counts": {
			"a\nb\nc\n", diffOf("f", "@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n") + "\nThis changes b.\n", "a\nB\nc\n",
		},
		"fenced diff with an introduction": {
			"a\nb\nc\n", "Sure:\n```diff\n" + diffOf("f", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n") + "```\nDone.\n", "a\nB\nc\n",
		},
		"diff without any header": {
			"a\nb\nc\n", "```diff\n-b\n+B\n```\n", "a\nB\nc\n",
		},
		"sql comment looks like a header": {
			"-- one\nx\n", diffOf("f", "@@ -1,2 +1,2 @@\n--- one\n+-- two\n x\n"), "-- two\nx\n",
		},
		"literal replacement": {"a\n", edits("f", "a", `$1 ${0} \1 &amp; \n`), "$1 ${0} \\1 &amp; \\n\n"},
		"edit inside a CRLF line": {
			"a b\r\nc\r\n", edits("f", "b", "x\ny"), "a x\r\ny\r\nc\r\n",
		},
		"several lines in a CRLF file": {
			"a\r\nb\r\nc\r\n", edits("f", "a\nb\n", "A\nB\nBB\n"), "A\r\nB\r\nBB\r\nc\r\n",
		},
		"cline markers": {
			"a\nb\n", "f\n------- SEARCH\na\n=======\nA\n+++++++ REPLACE\n", "A\nb\n",
		},
		"the same edit for each place": {
			"a\nx\nb\nx\nc\n", block("f", "x\n", "x\ny\n") + block("f", "x\n", "x\ny\n"), "a\nx\ny\nb\nx\ny\nc\n",
		},
		"the same text for each place": {
			"x a x\n", edits("f", "x", "y", "x", "y"), "y a y\n",
		},
		"the same insertion twice": {
			"a\nx\nb\n", block("f", "x\n", "x\ny\n") + block("f", "x\n", "x\ny\n"), "a\nx\ny\nb\n",
		},
		"a divider too many": {
			"a\nb\n", "f\n<<<<<<< SEARCH\na\n=======\nA\n=======\n>>>>>>> REPLACE\n", "A\nb\n",
		},
		"a divider too many, nothing instead": {
			"a\nb\n", "f\n<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n", "b\n",
		},
		"a divider for the end": {
			"a\nb\n", "f\n```\n<<<<<<< SEARCH\na\n=======\nA\n=======\n```\nDone.\n", "A\nb\n",
		},
		"a divider for the end, before the next block": {
			"a\nb\n", "f\n<<<<<<< SEARCH\na\n=======\nA\n=======\n\n" + block("f", "b\n", "B\n"), "A\nB\n",
		},
		"deletion of lines": {"a\nb\nc\n", block("f", "a\nb\n", "a\n"), "a\nc\n"},
		"whole file in a CRLF file": {
			"a\r\nb\r\n", "```text f\na\nB\nc\n```\n", "a\r\nB\r\nc\r\n",
		},
		"whole file for an empty one": {"", "```text f\na\n```\n", "a\n"},
		"tags": {
			"a\n    b\nc\n", "# modification 1\n```\n<file>f</file>\n<original>    b</original>\n<patched>    B</patched>\n```\n", "a\n    B\nc\n",
		},
		"latin-1 line moved by a diff": {
			"caf\xe9\nb\n", diffOf("f", "@@ -1,2 +1,2 @@\n-caf\xe9\n-b\n+b\n+caf\xe9\n"), "b\ncaf\xe9\n",
		},
	}
)

// TestPlaced is the table of placements that are right.
func TestPlaced(t *testing.T) {
	t.Parallel()
	for name, c := range placedCases {
		got, _, err := tree{"f": c.old}.apply(c.text, patch.Options{Targets: []string{"f"}})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got["f"], name)
	}
}

// TestNotPlaced is the table of refusals.
func TestNotPlaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, text, reason, says string }{
		"stale middle":            {"a\nb\nc\n", block("f", "a\nX\nc\n", "q\n"), patch.ReasonNoMatch, "b"},
		"part of a line in block": {"foo bar\n", block("f", "bar\n", "baz\n"), patch.ReasonNoMatch, "foo bar"},
		"two places":              {"x\ny\nx\n", block("f", "x\n", "z\n"), patch.ReasonAmbiguous, "1, 3"},
		"two places in one line":  {"x x\n", edits("f", "x", "y"), patch.ReasonAmbiguous, "2 times"},
		"two tolerant places":     {"  x\n    x\n", block("f", "x\n", "z\n"), patch.ReasonAmbiguous, "1, 2"},
		"header points at none":   {"x\ny\nx\n", diffOf("f", "@@ -2 +2 @@\n-x\n+z\n"), patch.ReasonAmbiguous, "1, 3"},
		"indentation unclear": {
			"if a:\n  x\nif b:\n      y\n", block("f", "if a:\n    x\nif b:\n    y\n", "if a:\n    x\nif b:\n    z\n"),
			patch.ReasonNoMatch + "," + patch.ReasonIndentation, "",
		},
		"binary":              {"a\x00b\n", block("f", "a\n", "b\n"), patch.ReasonBinary, ""},
		"encoding":            {"caf\xe9\nb\n", block("f", "b\n", "bé\n"), patch.ReasonEncoding, ""},
		"encoding, whole":     {"caf\xe9\nb\n", "```text f\ncafe\nB\n```\n", patch.ReasonEncoding, ""},
		"elided search":       {"a\nb\nc\nd\n", block("f", "a\n...\nd\n", "z\n"), patch.ReasonNoMatch, ""},
		"second hunk":         {"a\nb\n", diffOf("f", "@@\n-a\n+A\n@@\n-q\n+Q\n"), patch.ReasonNoMatch, "Hunk 1 matched"},
		"empty search":        {"a\n", edits("f", "", "b"), patch.ReasonNoContext, ""},
		"title or divider":    {"a\n", "f\n<<<<<<< SEARCH\na\n=======\nExample\n=======\n>>>>>>> REPLACE\n", patch.ReasonMalformed, ""},
		"divider in the text": {"a\n", "f\n<<<<<<< SEARCH\na\n=======\nA\n=======\nB\n>>>>>>> REPLACE\n", patch.ReasonMalformed, ""},
		"divider, then text":  {"a\n", "f\n<<<<<<< SEARCH\na\n=======\nA\n=======\nB\n", patch.ReasonMalformed, ""},
		"more places than edits": {
			"x\ny\nx\nx\n", block("f", "x\n", "z\n") + block("f", "x\n", "z\n"), patch.ReasonAmbiguous, "1, 3, 4",
		},
		"only blank lines": {"a\n\nb\n\n", block("f", "\n", "x\n"), patch.ReasonNoContext, ""},
	} {
		_, _, err := tree{"f": c.old}.apply(c.text, patch.Options{Targets: []string{"f"}})
		require.Error(t, err, name)
		requireReason(t, err, strings.Split(c.reason, ",")...)
		require.Contains(t, err.Error(), c.says, name)
	}
}

// TestBlocksOfANewFile: later blocks may edit what the first one writes.
func TestBlocksOfANewFile(t *testing.T) {
	t.Parallel()
	text := block("new.py", "", "x = 1\ny = 2\n") + block("new.py", "y = 2\n", "y = 3\n")
	got, _, err := tree{}.apply(text, patch.Options{})
	require.NoError(t, err)
	require.Equal(t, tree{"new.py": "x = 1\ny = 3\n"}, got)
	_, _, err = tree{}.apply(text+block("new.py", "z = 1\n", "z = 2\n"), patch.Options{})
	requireReason(t, err, patch.ReasonNoMatch)
}

// TestCaseA065: three edits of one line leave the line count.
func TestCaseA065(t *testing.T) {
	t.Parallel()
	cur := tree{"e.py": "try:\n    return_value = 1\nexcept ValueError:\n    pass\n"}
	for _, step := range [][2]string{{"1", "2"}, {"2", "3"}, {"3", "4"}} {
		text := block("e.py", "    return_value = "+step[0]+"\n", "    return_value = "+step[1]+"\n")
		next, _, err := cur.apply(text, patch.Options{})
		require.NoError(t, err)
		cur = next
	}
	require.Equal(t, "try:\n    return_value = 4\nexcept ValueError:\n    pass\n", cur["e.py"])
}

// TestPlacedFileNames: edits find an existing file whose folders the answer
// left out or added, when only one file can be meant.
func TestPlacedFileNames(t *testing.T) {
	t.Parallel()
	base := tree{"src/pkg/a.py": "x\n", "src/b.py": "y\n", "lib/b.py": "y\n"}
	for _, name := range []string{"a.py", "pkg/a.py", "src/pkg/a.py", "repo/src/pkg/a.py", "./src/pkg/a.py"} {
		for _, text := range []string{block(name, "x\n", "z\n"), diffOf(name, "@@ -1 +1 @@\n-x\n+z\n"), edits(name, "x", "z")} {
			got, _, err := base.apply(text, patch.Options{})
			require.NoError(t, err, text)
			require.Equal(t, "z\n", got["src/pkg/a.py"], text)
			require.Len(t, got, 3)
		}
	}
	_, _, err := base.apply(block("b.py", "y\n", "z\n"), patch.Options{})
	requireReason(t, err, patch.ReasonMissing)
}

// TestRefusalQuotesTheNearestLines: the next attempt sees what is really there.
func TestRefusalQuotesTheNearestLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for range 200 {
		b.WriteString("filler = 0\n")
	}
	b.WriteString("def price(item, amount):\n    return item.cost * amount\n")
	_, _, err := tree{"f": b.String()}.apply(block("f", "def price(item, amount):\n    return item.price * amount\n", "x\n"), patch.Options{})
	requireReason(t, err, patch.ReasonNoMatch)
	require.Contains(t, err.Error(), "item.cost * amount")
	require.Contains(t, err.Error(), "202")
}
