package validate

import (
	"strings"
	"testing"
	"time"

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
	require.False(t, tooDeep("a.js", []byte("x = ["+strings.Repeat("1, 'a', b, ", 20_000)+"]\n")))
	require.False(t, tooDeep("a.ts", []byte("x = {"+strings.Repeat("a: 'b', ", 20_000)+"}\n")))
	require.True(t, tooDeep("a.js", []byte(strings.Repeat("'a' + (", 20_000))))
	require.True(t, tooDeep("a.js", []byte(strings.Repeat("a,", 20_000)+"1")))
	require.True(t, tooDeep("a.ts", []byte("enum A{"+strings.Repeat("a,", 20_000)+"}")))
	require.True(t, tooDeep("a.js", []byte("switch (a) {"+strings.Repeat("case 1:", 9_000)+"}")))
}

// TestParsersThatNeverEnd: each keeps its place, and when there is none left a
// file is refused and no further parser begins.
func TestParsersThatNeverEnd(t *testing.T) {
	t.Parallel()
	places, end := make(chan struct{}, 2), make(chan struct{})
	begun := make(chan struct{}, 9)
	for range 4 {
		_, ok := within(t.Context(), 20*time.Millisecond, places, func() syntaxResult {
			begun <- struct{}{}
			<-end
			return syntaxResult{}
		})
		require.False(t, ok)
	}
	require.Len(t, begun, 2)
	close(end)
	_, ok := within(t.Context(), time.Minute, places, func() syntaxResult { return syntaxResult{} })
	require.True(t, ok)
}
