package validate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNothingHidesDepth: texts and comments, and what may be taken for them,
// neither hide a bracket that opens nor end one.
func TestNothingHidesDepth(t *testing.T) {
	t.Parallel()
	const n = 2 * maxDepth
	deep := strings.Repeat("(", n)
	for name, c := range map[string]struct{ path, text string }{
		"apostrophe in a comment":       {"a.js", "/*'*/" + deep},
		"quote in a comment":            {"a.ts", "/*\"*/" + deep},
		"comment on a line":             {"a.js", "// don't\r" + deep},
		"line separator":                {"a.js", "//'\u2028" + deep},
		"old comment":                   {"a.js", "<!-- `\n" + deep},
		"ends in comments":              {"a.js", strings.Repeat("(/*)*/", n)},
		"ends in texts":                 {"a.js", strings.Repeat("(')',", n)},
		"ends in templates":             {"a.js", strings.Repeat("(`)`,", n)},
		"ends in regular expressions":   {"a.js", strings.Repeat("(/[)]/,", n)},
		"separators in comments":        {"a.js", strings.Repeat("-/*;*/", n) + "1"},
		"regular expression":            {"a.js", "x = /'/," + deep},
		"behind a keyword":              {"a.js", "return /'/," + deep},
		"class of a regular expression": {"a.js", "x = /[/']/," + deep},
		"behind an if":                  {"a.js", "if (a) /'/," + deep},
		"behind a block":                {"a.js", "{}/'/," + deep},
		"behind a type":                 {"a.ts", "let a: B\n/'/," + deep},
		"behind a strange blank":        {"a.js", "x = \u00a0/'/," + deep},
		"division":                      {"a.js", "x = a / 1;'/'," + deep},
		"in a template":                 {"a.js", "x = `${" + deep},
		"behind a template":             {"a.js", "x = `'${a}'` + " + deep},
		"nested templates":              {"a.js", strings.Repeat("`${", n)},
		"escaped substitution":          {"a.js", "x = `\\${`;" + deep},
		"text of an element":            {"a.jsx", "x = <a>'{" + deep},
		"elements with ends as text":    {"a.jsx", strings.Repeat("(<a>){", n)},
		"attribute without escapes":     {"a.tsx", `x = <a b='\' c={` + deep},
		"nested elements":               {"a.jsx", strings.Repeat("<b>", n)},
		"type arguments of a tag":       {"a.tsx", "x = <A<T> b='</A>'>{" + deep},
		"type parameters":               {"a.tsx", "x = {delete<T>(a = '{}', b = " + deep},
		"commented JSON":                {"tsconfig.json", strings.Repeat("[/*]*/", n)},
		"commented JSON, lines":         {"tsconfig.json", strings.Repeat("[//]\n", n)},
		"JSON behind an apostrophe":     {"tsconfig.json", "/*'*/" + strings.Repeat("[", n)},
	} {
		assert.True(t, tooDeep(c.path, []byte(c.text)), name)
	}
	row := strings.Repeat("a,", 2*maxRow) + "1"
	require.True(t, tooDeep("a.js", []byte("/*'*/"+row)))
	require.True(t, tooDeep("a.js", []byte(strings.ReplaceAll(row, "a,", "a,/*=*/"))))
}

// TestReadingIsExact: where a text can be read in one way only, nothing is left
// open behind it, so that length alone never refuses a file.
func TestReadingIsExact(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, text string }{
		"texts":        {"a.js", "f('(', \"{\", `[${a(`(`)}(`)\n"},
		"comments":     {"a.ts", "f(a) // don't (\n/* it's { */ g(b)\n"},
		"expressions":  {"a.js", "a(/[(/]'/g, b / c, (d + e) / f, x[0] / 2); // '\n"},
		"templates":    {"a.js", "const f = () => `a ${(b + c) / 2}px ${d / e} 'q (`\n"},
		"elements":     {"a.jsx", "const A = ({ a }) => (<div b='(' c={a / 2}>don't ( {a.map(x => <p key={x}>{x}</p>)} <br />{' '}</div>)\n"},
		"returned":     {"a.tsx", "function A(): B<C> {\n  return <A b={`${c}`}>it's (</A>\n}\n"},
		"fragments":    {"a.tsx", "const A = () => <>{a ? <b /> : null}( </>\n"},
		"generics":     {"a.ts", "const f = <T,>(a: Map<string, T>): T[] => { return g<T>(a) }\n"},
		"JSON":         {"tsconfig.json", "{\"a(\": [1], // don't [\n \"b\": {}}\n"},
		"Go":           {"a.go", "var x = f(`(\\`, '(', \"(\") // don't (\n"},
		"raw, in Go":   {"b.go", "var x = f(`\n)\n'`)\n"},
		"tables":       {"a.toml", "a = ['[', \"[\"]\n"},
		"old comments": {"b.js", "f(a) // <!-- (\n"},
	} {
		if dialect := scriptDialect(extOf(c.path)); dialect.elements || dialect.types {
			c.text += ";\n"
		}
		assert.False(t, tooDeep(c.path, []byte(strings.Repeat(c.text, 9000))), name)
	}
}
