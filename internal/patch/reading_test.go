package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/patch"
)

// TestTagsInFencesAreContent: what a model thinks stands outside of the code.
func TestTagsInFencesAreContent(t *testing.T) {
	t.Parallel()
	o := patch.Options{Targets: []string{"r.xml"}}
	for name, body := range map[string]string{
		"a pair":       "<report>\n<analysis>\n<a/>\n</analysis>\n</report>\n",
		"indented":     "<report>\n  <analysis>\n  </analysis>\n</report>\n",
		"closing only": "<r>\n</thinking>\n</r>\n",
		"a channel":    "a = '<|channel|>final<|message|>'\nb\n",
		"and a line":   "a\n<|channel|>final<|message|>\nb\n",
	} {
		for _, before := range []string{"", "<thinking>\nhm\n</thinking>\n", "hm\n</think>\n", "<|channel|>analysis<|message|>```\nhm\n<|end|><|start|>assistant<|channel|>final<|message|>"} {
			got, _, err := tree{"r.xml": "<old/>\n"}.apply(before+"````xml\n"+body+"````\n", o)
			require.NoError(t, err, name)
			require.Equal(t, body, got["r.xml"], "%s after %q", name, before)
		}
	}
}

// TestJSONThatIsNoText: what the decoder of JSON would replace is refused.
func TestJSONThatIsNoText(t *testing.T) {
	t.Parallel()
	base := tree{"f.py": "x = 1\n"}
	for _, text := range []string{
		"{\"path\":\"f.py\",\"content\":\"x = 'caf\xe9'\\n\"}", `{"path":"f.py","content":"x = '\ud83d'\n"}`, `{"path":"f.py","content":"x = '\udE00'\n"}`,
		`{"path":"f.py","content":"x = '\ud83dA\ude00'\n"}`, `{"path":"f.py","content":"x = '\ud83d\ud83d'\n"}`,
		`{"path":"f.py","old_string":"1","new_string":"'\ud83d'"}`, "{\"path\":\"f.py\",\"old_string\":\"1\",\"new_string\":\"'\xff'\"}",
	} {
		_, _, err := base.apply(text, patch.Options{})
		requireReason(t, err, patch.ReasonMalformed)
	}
	for text, want := range map[string]string{
		`{"path":"f.py","content":"x = '\ud83d\ude00'\n"}`: "x = '😀'\n",
		`{"path":"f.py","content":"x = '\\ud83d'\n"}`:      "x = '\\ud83d'\n",
		`{"path":"f.py","content":"x = '\u00e9\\'\n"}`:     "x = 'é\\'\n",
	} {
		got, _, err := base.apply(text, patch.Options{})
		require.NoError(t, err, text)
		require.Equal(t, want, got["f.py"])
	}
}

// TestAddedBlankLines: a blank line without its mark is one, but for those
// behind the last line.
func TestAddedBlankLines(t *testing.T) {
	t.Parallel()
	got, _, err := tree{}.apply("*** Begin Patch\n*** Add File: a.md\n\n+one\n\n\n+two\n+\n\n*** Add File: b.md\n+x\n\n*** End Patch\n", patch.Options{})
	require.NoError(t, err)
	require.Equal(t, tree{"a.md": "one\n\n\ntwo\n\n", "b.md": "x\n"}, got)
}

// TestModeOfASecondSection: it counts like that of the first one.
func TestModeOfASecondSection(t *testing.T) {
	t.Parallel()
	edit := "diff --git a/r.sh b/r.sh\n--- a/r.sh\n+++ b/r.sh\n@@ -1 +1 @@\n-a\n+b\n"
	mode := "diff --git a/r.sh b/r.sh\nold mode 100644\nnew mode 100755\n"
	for _, text := range []string{edit + mode, mode + edit} {
		d, err := patch.Decode([]byte(text), patch.Options{Finish: "stop"})
		require.NoError(t, err)
		require.Len(t, d.Files, 1)
		require.Equal(t, uint32(0o755), d.Files[0].Mode)
	}
	_, err := patch.Decode([]byte(mode+"diff --git a/r.sh b/r.sh\nold mode 100755\nnew mode 100644\n"), patch.Options{Finish: "stop"})
	requireReason(t, err, patch.ReasonTwoVersions)
}
