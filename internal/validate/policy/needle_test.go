package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNeedlesLoseNothing: looking for the texts first never hides a match, for
// the default rules and for expressions of every shape.
func TestNeedlesLoseNothing(t *testing.T) {
	t.Parallel()
	set, err := Default()
	require.NoError(t, err)
	list := []string{"a", "(?i)abc", "a|b", "ab|", "(ab)+c", "(ab)*c", "(ab)?", "x{0,2}y", "(xy){2}", "[ab]c", "^$", "ab(c|de)f", "(?:abc|abd)e", "."}
	for _, r := range set.Rules() {
		if r.Added != "" {
			list = append(list, r.Added)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom(list).Draw(t, "expression")
		p, err := compile(expr)
		require.NoError(t, err)
		line := []byte(rapid.String().Draw(t, "before") + rapid.StringMatching(expr).Draw(t, "text") + rapid.String().Draw(t, "after"))
		require.Equal(t, p.re.Match(line), p.match(line), "%s: %q", expr, line)
	})
	found := 0
	for _, r := range set.Rules() {
		if r.added != nil && len(r.added.needles) > 0 {
			found++
		}
	}
	require.Greater(t, found, 8, "most default rules have texts to look for")
}
