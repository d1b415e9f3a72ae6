package patch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

var oneTarget = patch.Options{Targets: []string{"calc.py"}}

func calc() tree {
	return tree{
		"calc.py":            "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n",
		"tests/test_calc.py": "from calc import add\n",
	}
}

// TestFinishReasonWins: no look of an answer makes up for a missing stop.
func TestFinishReasonWins(t *testing.T) {
	t.Parallel()
	good := "```python calc.py\n" + fixedCalc + "```\n"
	for _, finish := range []string{"length", "", "content_filter", "STOP", "tool_calls"} {
		_, err := patch.Decode([]byte(good), patch.Options{Finish: finish, Targets: []string{"calc.py"}})
		requireReason(t, err, patch.ReasonTruncated)
	}
	_, err := patch.Decode([]byte(" \n"), patch.Options{Finish: "length"})
	requireReason(t, err, patch.ReasonTruncated)
	_, err = patch.Decode([]byte("   \n"), patch.Options{Finish: patch.FinishStop})
	requireReason(t, err, patch.ReasonNoCode)
	_, err = patch.Decode([]byte("x\x00"), patch.Options{Finish: patch.FinishStop})
	requireReason(t, err, patch.ReasonNUL)
	_, err = patch.Decode([]byte(good), patch.Options{Finish: patch.FinishStop, Format: "yaml"})
	requireReason(t, err, patch.ReasonFormat)
	_, err = patch.Decode(make([]byte, patch.MaxAnswer+1), patch.Options{Finish: patch.FinishStop})
	requireReason(t, err, patch.ReasonTooLarge)
}

// TestFreeTextIsNoCode: sentences claim nothing, in any language.
func TestFreeTextIsNoCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"The minus sign looks wrong.", "修正しました。", "演算子を足し算に修正しました", "Done", "not fixed", "OK.",
		"Change `return a - b` to `return a + b`.", "I think the bug is in add(a, b); it subtracts.",
		"1. Open the file\n2. Change the operator\n3. Run the tests", "Ich habe den Fehler behoben", "# Fixed\n\nAll good.",
		"- replaced the operator\n- ran the tests", "Это исправлено", "return the sum instead of the difference",
		"if the test fails, tell me", "import errors are gone", "**Done.** The tests should pass now!",
	} {
		_, err := patch.Decode([]byte(text), patch.Options{Finish: patch.FinishStop, Targets: []string{"calc.py"}})
		requireReason(t, err, patch.ReasonNoCode)
	}
}

// TestFenceNames: all the ways in which an answer says which file a block is.
func TestFenceNames(t *testing.T) {
	t.Parallel()
	body := "```python\n" + fixedCalc + "```\n"
	for name, text := range map[string]string{
		"info":            "```python calc.py\n" + fixedCalc + "```\n",
		"info colon":      "```python:calc.py\n" + fixedCalc + "```\n",
		"info only":       "```calc.py\n" + fixedCalc + "```\n",
		"info attribute":  "```python title=\"calc.py\"\n" + fixedCalc + "```\n",
		"info braces":     "```{.python filename=calc.py}\n" + fixedCalc + "```\n",
		"heading":         "### calc.py\n\n" + body,
		"heading quoted":  "## `calc.py`\n" + body,
		"bold":            "**calc.py**\n" + body,
		"bold colon":      "**`calc.py`:**\n\n" + body,
		"line":            "calc.py\n" + body,
		"line colon":      "calc.py:\n" + body,
		"label":           "File: calc.py\n" + body,
		"label quoted":    "Filename: `calc.py`\n" + body,
		"bracket":         "[calc.py]\n" + body,
		"numbered":        "1. calc.py\n" + body,
		"dot slash":       "./calc.py\n" + body,
		"sentence":        "Here is the corrected `calc.py`:\n\n" + body,
		"own fence":       "```calc.py```\n" + body,
		"own block":       "```\ncalc.py\n```\n" + body,
		"comment":         "```python\n# calc.py\n" + fixedCalc + "```\n",
		"comment label":   "```python\n# File: calc.py\n" + fixedCalc + "```\n",
		"tilde":           "calc.py\n~~~python\n" + fixedCalc + "~~~\n",
		"four":            "calc.py\n````python\n" + fixedCalc + "````\n",
		"indented":        "calc.py\n  ```python\n" + indent(fixedCalc, "  ") + "  ```\n",
		"crlf":            strings.ReplaceAll("calc.py\n"+body, "\n", "\r\n"),
		"folder in front": "project/calc.py\n" + body,
	} {
		for _, o := range []patch.Options{oneTarget, {Targets: []string{"calc.py", "other.py"}}} {
			got, _, err := calc().apply(text, o)
			require.NoError(t, err, name)
			require.Equal(t, fixedCalc, got["calc.py"], name)
			require.Len(t, got, 2, name)
		}
	}
}

func indent(s, by string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = by + l
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestNewFileNames: a line that is a path and nothing else names a new file,
// and the block below it is never taken for the only target instead.
func TestNewFileNames(t *testing.T) {
	t.Parallel()
	decode := func(above, lang string, targets ...string) (patch.Draft, error) {
		return patch.Decode([]byte(above+"\n\n```"+lang+"\nx = 1\n```\n"), patch.Options{
			Finish: patch.FinishStop, Targets: targets, Paths: []string{"calc.py", "main.py"},
		})
	}
	for above, want := range map[string]string{
		"util.py": "util.py", "pkg/util.py": "pkg/util.py", "**pkg/util.py**": "pkg/util.py", "## util.py": "util.py",
		"1. util.py:": "util.py", "./pkg/util.py": "pkg/util.py", "# New file\n\npkg/__init__.py": "pkg/__init__.py",
	} {
		for _, lang := range []string{"python", ""} {
			d, err := decode(above, lang)
			require.NoError(t, err, above)
			require.Len(t, d.Files, 1, above)
			require.Equal(t, want, d.Files[0].Path, above)
		}
	}
	// A block of another language is not left out beside a file with a name.
	_, err := patch.Decode([]byte("file:\n```html\n<p>\n```\napp.js\n```js\nf()\n```\n"), patch.Options{
		Finish: patch.FinishStop, Paths: []string{"calc.py"},
	})
	requireReason(t, err, patch.ReasonNoPath)
	d, err := decode("util.py", "python", "calc.py")
	require.NoError(t, err)
	require.Equal(t, "util.py", d.Files[0].Path)
	for above, lang := range map[string]string{
		"Node.js": "js", "www.example.com/index.html": "html", "example.com/a.py": "python", "output.txt": "python",
		strings.Repeat("d/", 200) + "x.py": "python", "util.py is new": "python", "version 1.2": "python", "e.g.": "python", "logs/out.txt": "python",
	} {
		d, err := decode(above, lang)
		requireReason(t, err, patch.ReasonNoPath)
		require.Empty(t, d.Files, above)
	}
}

// TestUnnamedBlocks: a block without a name is the only target's, unless the
// answer leaves open which one is meant.
func TestUnnamedBlocks(t *testing.T) {
	t.Parallel()
	body := "```python\n" + fixedCalc + "```\n"
	for name, text := range map[string]string{
		"plain":          body,
		"no language":    "```\n" + fixedCalc + "```\n",
		"with command":   body + "Run:\n```bash\npytest -q\n```\n",
		"with output":    "```text\nE assert -1 == 3\n```\n" + body,
		"twice the same": body + "Again:\n" + body,
		"test in prose":  "The test in `tests/test_calc.py` fails:\n" + body,
		"think":          "<think>\nadd?\n```python\nx\n</think>\n" + body,
		"orphan think":   "let me see\n```python\nx = 1\n```\n</think>\n" + body,
		"harmony":        "<|channel|>analysis<|message|>hm\n<|channel|>final<|message|>" + body,
		"unclosed":       "Fixed:\n```python\n" + fixedCalc,
		"with example":   body + "Use it:\n```python\nfrom calc import add\nprint(add(1, 2))\n```\nor\n```\nadd(3, 4)\n```\n",
		"stray mark":     body + "```\n",
		"no opening":     fixedCalc + "```\n",
		"cut at opening": fixedCalc + "```\nThe operator was wrong.\n",
	} {
		got, _, err := calc().apply(text, oneTarget)
		require.NoError(t, err, name)
		require.Equal(t, fixedCalc, got["calc.py"], name)
	}
	for name, text := range map[string]string{
		"two bodies":    body + "or\n```python\ndef add(a, b):\n    return b + a\n```\n",
		"no definition": "```python\nx = 1\n```\nor\n```python\nx = 2\n```\n",
		"only command":  "```bash\npytest -q\n```\n",
	} {
		_, _, err := calc().apply(text, oneTarget)
		requireReason(t, err, patch.ReasonNoPath, patch.ReasonLanguage)
		require.Contains(t, err.Error(), "calc.py", name)
	}
	_, _, err := calc().apply("calc.py\n"+body+"calc.py\n```python\nx = 1\n```\n", oneTarget)
	requireReason(t, err, patch.ReasonTwoVersions)
}

// TestFencesInsideFiles: a docstring's or a document's own fences stay.
func TestFencesInsideFiles(t *testing.T) {
	t.Parallel()
	doc := "def f():\n    \"\"\"Use it:\n\n    ```\n    f()\n    ```\n\n    ```python\n    f()\n    ```\n    \"\"\"\n    return 1\n"
	got, _, err := tree{}.apply("```python m.py\n"+doc+"```\nDone.\n", patch.Options{Targets: []string{"m.py"}})
	require.NoError(t, err)
	require.Equal(t, doc, got["m.py"])

	md := "# Title\n\n```python\nx = 1\n```\n\nmore\n"
	for _, text := range []string{"````markdown README.md\n" + md + "````\n", "```markdown README.md\n" + md + "```\n"} {
		got, _, err = tree{}.apply(text, patch.Options{Targets: []string{"README.md"}})
		require.NoError(t, err)
		require.Equal(t, md, got["README.md"])
	}
}

// TestPathCommentIsDropped: a first comment that only names the file is noise
// unless the file starts with it.
func TestPathCommentIsDropped(t *testing.T) {
	t.Parallel()
	base := tree{"a.py": "# a.py\nx = 1\n"}
	got, _, err := base.apply("```python\n# a.py\nx = 2\n```\n", patch.Options{Targets: []string{"a.py"}})
	require.NoError(t, err)
	require.Equal(t, "# a.py\nx = 2\n", got["a.py"])
	got, _, err = tree{}.apply("```python\n# src/a.py\nx = 2\n```\n", patch.Options{Targets: []string{"src/a.py"}})
	require.NoError(t, err)
	require.Equal(t, tree{"src/a.py": "x = 2\n"}, got)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	quoted := strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(fixedCalc, "\n", `\n`), `\n`), `"`, `\"`) + `\n`
	for name, text := range map[string]string{
		"fixed_code":     `{"analysis": "minus", "fixed_code": "` + quoted + `"}`,
		"fenced":         "Sure:\n```json\n{\"fixed_code\": \"" + quoted + "\"}\n```\n",
		"fence inside":   `{"fixed_code": "` + "```python\\n" + quoted + "```" + `"}`,
		"files list":     `{"files": [{"path": "calc.py", "content": "` + quoted + `"}]}`,
		"files map":      `{"files": {"calc.py": "` + quoted + `"}}`,
		"array":          `[{"path": "calc.py", "content": "` + quoted + `"}]`,
		"edits":          `{"edits": [{"path": "calc.py", "search": "return a - b", "replace": "return a + b"}]}`,
		"old_string":     `{"path": "calc.py", "edits": [{"old_string": "a - b", "new_string": "a + b"}]}`,
		"single edit":    `{"file": "calc.py", "original": "a - b", "patched": "a + b"}`,
		"diff inside":    `{"path": "calc.py", "diff": "@@\n-    return a - b\n+    return a + b\n"}`,
		"patch field":    `{"patch": "--- a/calc.py\n+++ b/calc.py\n@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"}`,
		"raw newlines":   "{\"fixed_code\": \"" + strings.TrimSuffix(fixedCalc, "\n") + "\n\"}",
		"comments":       "{\n // the file\n \"fixed_code\": \"" + quoted + "\", # done\n}",
		"trailing comma": `{"fixed_code": "` + quoted + `",}`,
	} {
		got, _, err := calc().apply(text, oneTarget)
		require.NoError(t, err, name)
		require.Equal(t, fixedCalc, got["calc.py"], name)
	}
	for text, reason := range map[string]string{
		`{"fixed_code": ""}`:                                  patch.ReasonNoCode,
		`{"fixed_code": null}`:                                patch.ReasonNoCode,
		`{"analysis": "no idea"}`:                             patch.ReasonNoCode,
		`{"path": "a.py", "content": "unterminated`:           patch.ReasonMalformed,
		`{"edits": [{"path": "calc.py", "search": "a - b"}]}`: patch.ReasonMalformed,
		`{"edits": [{"path": "calc.py", "search": "return a\u0000 - b", "replace": "x"}]}`: patch.ReasonNUL,
		`{"op": "rename", "from": "calc.py"}`:                                              patch.ReasonMalformed,
	} {
		_, _, err := calc().apply(text, oneTarget)
		requireReason(t, err, reason)
	}
}

// TestJSONFileIsNoAnswer: the new content of a JSON file has fields that look
// like those of an answer.
func TestJSONFileIsNoAnswer(t *testing.T) {
	t.Parallel()
	body := "{\n  \"name\": \"x\",\n  \"source\": \"src/index.js\",\n  \"files\": [\"dist\"]\n}\n"
	for _, text := range []string{"```json\n" + body + "```\n", "package.json\n```json\n" + body + "```\n", body} {
		got, _, err := tree{"package.json": "{}\n"}.apply(text, patch.Options{Targets: []string{"package.json"}})
		require.NoError(t, err)
		require.Equal(t, body, got["package.json"])
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	base := tree{"a.py": "x = 1\ny = 2\n", "b.py": "z\n"}
	for name, c := range map[string]struct {
		text string
		want tree
	}{
		"patch":       {"*** Begin Patch\n*** Add File: n.py\n+q = 1\n+\n+r = 2\n*** Delete File: b.py\n*** Update File: a.py\n*** Move to: c.py\n@@\n x = 1\n-y = 2\n+y = 3\n*** End Patch\n", tree{"n.py": "q = 1\n\nr = 2\n", "c.py": "x = 1\ny = 3\n"}},
		"json":        {`[{"op":"delete","path":"b.py"},{"op":"rename","from":"a.py","to":"c.py"},{"op":"create","path":"n.py","content":"q\n"}]`, tree{"c.py": "x = 1\ny = 2\n", "n.py": "q\n"}},
		"git rename":  {"diff --git a/a.py b/c.py\nsimilarity index 90%\nrename from a.py\nrename to c.py\n--- a/a.py\n+++ b/c.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n", tree{"c.py": "x = 1\ny = 3\n", "b.py": "z\n"}},
		"pure rename": {"diff --git a/a.py b/c.py\nsimilarity index 100%\nrename from a.py\nrename to c.py\n", tree{"c.py": "x = 1\ny = 2\n", "b.py": "z\n"}},
		"git delete":  {"diff --git a/b.py b/b.py\ndeleted file mode 100644\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n", tree{"a.py": "x = 1\ny = 2\n"}},
		"eof":         {"*** Begin Patch\n*** Update File: a.py\n@@\n+w = 0\n*** End of File\n*** End Patch\n", tree{"a.py": "x = 1\ny = 2\nw = 0\n", "b.py": "z\n"}},
		"two files":   {"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 9\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-z\n+zz\n", tree{"a.py": "x = 9\ny = 2\n", "b.py": "zz\n"}},
	} {
		got, _, err := base.apply(c.text, patch.Options{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for _, c := range [][2]string{
		{"*** Begin Patch\n*** Delete File: none.py\n*** End Patch\n", patch.ReasonMissing},
		{"*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch\n", patch.ReasonExists},
		{"*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** End Patch\n", patch.ReasonExists},
		{"*** Begin Patch\n*** Update File: a.py\n@@\n x = 1\n*** End Patch\n", patch.ReasonNoOperation},
		{"diff --git a/a.py b/c.py\ncopy from a.py\ncopy to c.py\n", patch.ReasonUnsupported},
		{"diff --git a/a.bin b/a.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", patch.ReasonBinary},
		{"--- a/a.py\n+++ b/a.py\n", patch.ReasonMalformed + "," + patch.ReasonNoCode},
		{"--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n", patch.ReasonNoMatch},
		{"--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n", patch.ReasonExists},
		{"*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Delete File: a.py\n*** End Patch\n", patch.ReasonTwoVersions},
		{"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n@@ -2 +2 @@\n-y = 2\n+y = 4\n", patch.ReasonOverlap},
		{"a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n=======\nx = 3\n>>>>>>> REPLACE\n", patch.ReasonMalformed},
		{"a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n", patch.ReasonMalformed},
		{"a.py\n<<<<<<< SEARCH\n=======\nx = 2\n>>>>>>> REPLACE\n", patch.ReasonNoContext},
		{"--- a/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+w = 0\n", patch.ReasonNoContext},
		{"<file>a.py</file><original>x = 1</original>\nbroken <patched>x = 2</patched>", patch.ReasonMalformed},
		{"*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n@@\n-nothing here\n+q\n*** End Patch\n", patch.ReasonNoMatch},
		{"*** Begin Patch\n*** Delete File: b.py\n*** Update File: a.py\n@@\n-absent\n+new\n*** End Patch\n", patch.ReasonNoMatch},
	} {
		_, _, err := base.apply(c[0], patch.Options{})
		requireReason(t, err, strings.Split(c[1], ",")...)
	}
}
