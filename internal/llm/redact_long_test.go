package llm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/llm"
)

// TestRedactManyKeys: a search for the end of each key to the end of the text
// would not end within the deadline of the tests.
func TestRedactManyKeys(t *testing.T) {
	t.Parallel()
	begin := "-----BEGIN PRIVATE " + "KEY-----\n"
	end := "-----END PRIVATE " + "KEY-----\n"
	body := strings.Repeat("a1B2", 8) + "\n"
	const n = 20_000
	for name, one := range map[string]string{"without an end": begin, "cut": begin + body, "whole": begin + "Proc-Type: 4,ENCRYPTED\n\n" + body + end} {
		got := llm.Redact(strings.Repeat(one, n))
		require.Equal(t, n, strings.Count(got, llm.MaskPrefix+"private key]"), name)
		require.NotContains(t, got, "a1B2", name)
	}
}
