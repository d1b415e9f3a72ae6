package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/validate"
)

// TestSentencesWithoutAParser: where no parser can tell, a new sentence between
// lines of code is refused; in comments, and where it stood before, it is not.
func TestSentencesWithoutAParser(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	const old, better = "int f() {\n  return 1;\n}\n", "int f() {\n  return 2;\n}\n"
	check := func(base, answer string) validate.Verdict {
		return v.Check(t.Context(), validate.Input{
			Answer: []byte("```cpp a.cpp\n" + answer + "```\n"), Finish: "stop", Base: tree{"a.cpp": base}, Targets: []string{"a.cpp"},
		})
	}
	for name, answer := range map[string]string{
		"above":   "The correct code is listed below.\n" + better,
		"between": "#include <x>\n\nMy answer to the faulty code above:\n" + better,
		"below":   better + "Can you spot the fault here?\n// end\n",
	} {
		got := check(old, answer)
		require.False(t, got.Accepted, name)
		require.Equal(t, validate.GateProse, got.Gate, name)
	}
	for name, c := range map[string][2]string{
		"line comment":   {old, "// The correct code is listed below.\n" + better},
		"block comment":  {old, "/*\n  The correct code is listed below.\n*/\n" + better},
		"code":           {old, better + "// a\nint g();\n"},
		"was there":      {"Write the code below this line.\n" + old, "Write the code below this line.\n" + better},
		"after comments": {old, "/* a */ /* b\nThe correct code is listed below.\n*/\n" + better},
	} {
		got := check(c[0], c[1])
		require.True(t, got.Accepted, "%s: %s %s", name, got.Gate, got.Feedback)
	}
}

// TestWordsInARow: C, C++ and Java never have three words of no language side
// by side outside of texts, remarks and raw strings; models that talk do.
func TestWordsInARow(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	check := func(path, line string) validate.Verdict {
		const old = "class A {\n  int f() { return 1; }\n}\n"
		return v.Check(t.Context(), validate.Input{
			Answer: []byte("```text " + path + "\n" + strings.Replace(old, "1", "2", 1) + line + "\n```\n"),
			Finish: "stop", Base: tree{path: old}, Targets: []string{path},
		})
	}
	for _, line := range []string{
		"and here is the fixed code", "Same approach in c++", "Forgot the IF here", "Yeah, I made a typo mistake! Missed the",
		"for (int i = 0; i < n; i++) <--- changed the loop condition", "x = f(y)  # fixed the method name",
		"<summary>Click here for the solution</summary>", "1. Changed 'f' calls to use the other list.", "<exp>Add the missing base case</exp>",
		"from collections import Counter",
	} {
		for _, path := range []string{"a.cpp", "A.java", "a.h"} {
			got := check(path, line)
			require.False(t, got.Accepted, "%s: %s", path, line)
			require.Equal(t, validate.GateProse, got.Gate, "%s: %s", path, line)
		}
	}
	for _, line := range []string{
		"public static final unsigned long long int bound = 3;", "final class JsonArray extends JsonElement implements Iterable<JsonElement> {}",
		`char *s = "not a word of this is code";`, "int g(); // nor is any of this remark", "int h(); /* nor is any of this remark */",
		"#error this header must not be included twice", "typedef Byte  FAR Bytef;", "#define A(x) \\\n  do some strange things \\\n  while (0)",
		"const char *q = R\"(\nany text may stand here\n)\";", "/*\n any text may stand here\n*/", " * any text may stand here",
		"@Override public List<Map<String, Integer>> all(final Foo foo) throws IOException { return null; }",
		"throw new IllegalStateException();", "else return helper(a);", "static inline struct list_head *next(const struct node *n);",
		"for (const auto &entry : table) if (x instanceof Foo bar) goto done;", "enum Kind kind = other kind_of;",
	} {
		got := check("a.cpp", line)
		require.True(t, got.Accepted, "%s: %s/%s %s", line, got.Gate, got.Reason, got.Feedback)
	}
}

// TestCodeIsNoSentence: a broken file is refused for its syntax, although code
// that reads like words stands beside the error. Real sentences are still told.
func TestCodeIsNoSentence(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	gate := func(line string) string {
		return v.Check(t.Context(), validate.Input{
			Answer: []byte("```python a.py\ndef f(edits):\n    x = (\n" + line + "\n  y = 2\n```\n"), Finish: "stop",
			Base: tree{"a.py": "def f(edits):\n    return 1\n"},
		}).Gate
	}
	for _, line := range []string{
		"from pathlib import Path", "for edit in edits:", "if not edits.strip():  # Ignore the empty sections",
		"self.assertTrue(any(same(a, b) for b in coder))", `print("Debug: raw data from the file:")`,
	} {
		require.Equal(t, validate.GateSyntax, gate(line), line)
	}
	for _, line := range []string{
		"Here is the corrected code below", "for example in this simple case:", "Change add(a, b) so that it sums both",
	} {
		require.Equal(t, validate.GateProse, gate(line), line)
	}
}
