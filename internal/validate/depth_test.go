package validate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrdinaryFilesAreNotTooDeep: length alone is no depth, whatever the style.
func TestOrdinaryFilesAreNotTooDeep(t *testing.T) {
	t.Parallel()
	for path, line := range map[string]string{
		"a.js":   "const f = (a) => { return a ? b : c };\n",
		"b.js":   "const f = a => a.b.c\n",
		"c.ts":   "export type A = { a: string; b?: number }\n",
		"h.ts":   "export const f = <T,>(a: Map<string, T>) => g<T>(a)\n",
		"i.tsx":  "const A = <div><p>{a}</p><b className='x'>text</b></div>\n",
		"j.ts":   "const x = i<n && a < b\n",
		"d.jsx":  "  { key: 'a(', value: x => x.y, other: a ? b : c },\n",
		"e.yaml": "key: {a: 1, b: [1, 2]}\n",
		"f.json": "{\"a\": [1, 2]},\n",
		"g.go":   "var x = map[string]int{\"a\": 1}\n",
	} {
		require.False(t, tooDeep(path, []byte(strings.Repeat(line, 20_000))), path)
	}
	require.False(t, tooDeep("a.js", []byte("x = '"+strings.Repeat("(", 20_000)+"'\n")))
	require.True(t, tooDeep("a.js", []byte(strings.Repeat("'a' + (", 20_000))))
}
