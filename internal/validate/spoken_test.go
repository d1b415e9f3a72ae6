package validate_test

import (
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
