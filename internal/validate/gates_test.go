package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate"
)

// shop is a file with most of what Python has to offer.
const shop = `import json
import os

LIMIT = 10


class Cart:
    """Holds items."""

    def __init__(self, items=None):
        self.items = items or []
        self._total = None

    @property
    def total(self):
        if self._total is None:
            self._total = sum(i.price for i in self.items)
        return self._total

    @total.setter
    def total(self, value):
        self._total = value

    def add(self, item):
        if len(self.items) >= LIMIT:
            raise ValueError("full")
        self.items.append(item)
        self._total = None


def load(path):
    with open(path) as f:
        data = json.load(f)
    out = []
    for row in data:
        if row.get("skip"):
            continue
        out.append(row["name"])
    return out


def save(path, names):
    tmp = path + ".tmp"
    with open(tmp, "w") as f:
        json.dump(names, f)
    os.replace(tmp, path)
`

func edited(t *testing.T, src string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		require.Equal(t, 1, strings.Count(src, pairs[i]), pairs[i])
		src = strings.Replace(src, pairs[i], pairs[i+1], 1)
	}
	return src
}

func whole(body string) string { return "```\n" + body + "```\n" }

// gateCase is one answer for the only target of a base.
type gateCase struct {
	path, base, answer, task string
	gate, reason             string
}

func requireGate(t *testing.T, v *validate.Validator, name string, c gateCase) validate.Verdict {
	t.Helper()
	in := validate.Input{
		Answer: []byte(c.answer), Finish: "stop", Base: tree{c.path: c.base}, Targets: []string{c.path}, Task: c.task,
	}
	got := v.Check(t.Context(), in)
	if c.gate == "" {
		require.True(t, got.Accepted, "%s: %s/%s: %s", name, got.Gate, got.Reason, got.Feedback)
		return got
	}
	require.False(t, got.Accepted, name)
	require.Equal(t, c.gate, got.Gate, "%s: %s: %s", name, got.Reason, got.Feedback)
	if c.reason != "" {
		require.Equal(t, c.reason, got.Reason, "%s: %s", name, got.Feedback)
	}
	require.NotEmpty(t, got.Feedback, name)
	return got
}

// TestProse: what claims to be code and is not ends as ast_fail.
func TestProse(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]gateCase{
		"sentence":            {answer: whole("The minus sign is wrong, so I will change it to a plus sign.\n"), gate: "prose"},
		"japanese":            {answer: whole("演算子を足し算に修正しました\n"), gate: "prose"},
		"japanese, full stop": {answer: whole("演算子を足し算に修正しました。\n"), gate: "prose"},
		"one word":            {answer: whole("Done\n"), gate: "prose"},
		"two words":           {answer: whole("not fixed\n"), gate: "prose"},
		"list":                {answer: whole("Fixed, tested, done\n"), gate: "prose"},
		"comparison":          {answer: whole("this is correct\n"), gate: "prose"},
		"only comments":       {answer: whole("# I could not find the cause.\n"), gate: "prose"},
		"only a docstring":    {answer: whole("\"\"\"I could not find the cause.\"\"\"\n"), gate: "prose"},
		"before the code":     {answer: whole("Here is the corrected version of the file you asked for\n" + fixed), gate: "prose"},
		"after the code":      {answer: whole(fixed + "\nThis should make the failing test pass now\n"), gate: "prose"},
		"words after code":    {answer: whole(fixed + "\nDone\n"), gate: "prose"},
		"words in a function": {answer: whole(strings.Replace(fixed, "    return a + b", "    fixed\n    return a + b", 1)), gate: "prose"},
		"bare, no fence":      {answer: "Here is the fix for the failing test you gave\n" + fixed, gate: "prose"},
		"json field":          {answer: `{"fixed_code": "The operator is wrong and I will fix it soon"}`, gate: "prose"},
		"broken code":         {answer: whole("def add(a, b:\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"), gate: "syntax"},
		"module-level return": {answer: whole(fixed + "\nreturn 1\n"), gate: "syntax"},
		"docstring is fine":   {answer: whole("\"\"\"Adds and multiplies numbers for the shop.\"\"\"\n\n\n" + fixed)},
		"comments are fine":   {answer: whole("# This module adds and multiplies numbers for us.\n\n\n" + fixed)},
		"long string is fine": {answer: whole(fixed + "\nHELP = \"\"\"\nPlease give two numbers that you want to add up\n\"\"\"\n")},
		"probe is fine":       {answer: whole(fixed + "\ntry:\n    unicode\nexcept NameError:\n    unicode = str\n")},
	} {
		c.path, c.base = "calc.py", calc
		got := requireGate(t, v, name, c)
		if c.gate != "" {
			require.Equal(t, run.StatusASTFail, got.Status, name)
		}
	}
}

// TestElision: comments that stand for code are refused in every language,
// but only new ones that really do.
func TestElision(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	cut := func(comment string) string { return whole("def add(a, b):\n    return a + b\n\n\n" + comment + "\n") }
	for _, comment := range []string{
		"# ... rest of the code ...", "# rest of the file unchanged", "# (existing code remains the same)",
		"# ... existing code ...", "# the remaining functions stay the same", "# other methods unchanged",
		"# Rest of your implementation here", "# ... (previous code)", "# same as before", "# [unchanged]", "# <rest of file>",
		"# mul omitted for brevity", "# 以下省略", "# 残りのコードはそのまま", "# 変更なし", "# 其余代码不变", "# 나머지 코드", "# 변경 없음",
		"# Rest bleibt unverändert", "# reste du code inchangé", "# resto del código sin cambios", "# остальной код без изменений",
		"# keep the existing functions", "# ...", "# mul() etc.",
	} {
		got := requireGate(t, v, comment, gateCase{path: "calc.py", base: calc, answer: cut(comment), gate: "elision"})
		require.Equal(t, run.StatusGateFail, got.Status)
	}
	for name, c := range map[string]gateCase{
		"css":        {path: "s.css", base: ".a{color:red}\n.b{color:blue}\n.c{margin:0}\n", answer: whole(".a{color:green}\n/* keep the existing styles */\n"), gate: "elision"},
		"js":         {path: "a.js", base: "function a() {}\nfunction b() {}\n", answer: whole("function a() { return 1 }\n// ... other functions ...\n"), gate: "elision"},
		"js braces":  {path: "a.jsx", base: "const A = () => <p>a</p>\nconst B = () => <p>b</p>\n", answer: whole("const A = () => <p>{/* rest of the component */}</p>\nconst B = () => <p>b</p>\n"), gate: "elision"},
		"html":       {path: "a.html", base: "<p>a</p>\n<p>b</p>\n", answer: whole("<p>c</p>\n<!-- rest of the file -->\n"), gate: "elision"},
		"sql":        {path: "a.sql", base: "SELECT 1;\nSELECT 2;\n", answer: whole("SELECT 3;\n-- remaining code unchanged\n"), gate: "elision"},
		"bare dots":  {path: "a.rb", base: "a = 1\nb = 2\nc = 3\n", answer: whole("a = 2\n...\n"), gate: "elision"},
		"new file":   {path: "n.py", base: "", answer: whole("def f():\n    # your code here\n    pass\n"), gate: "elision"},
		"other line": {path: "c.css", base: ".a{}\n.b{}\n", answer: whole(".a{color:red}\n.b{}\n/* buttons that are on other pages */\n")},
		"old remark": {path: "calc.py", base: "# ... rest of the code ...\n" + calc, answer: whole("# ... rest of the code ...\n" + fixed)},
		"moved":      {path: "calc.py", base: "# YOUR CODE HERE\n" + calc, answer: whole(fixed + "\n\n# YOUR CODE HERE\n")},
		"ellipsis":   {path: "calc.py", base: calc, answer: whole(fixed + "\n\ndef stub(): ...\n\n\ndef pick(a):\n    return a[..., 0]\n")},
		"existing":   {path: "calc.py", base: calc, answer: whole(strings.Replace(fixed, "    return a + b", "    # keep the existing sign of both numbers\n    return a + b", 1))},
		"remaining":  {path: "calc.py", base: calc, answer: whole(fixed + "\n\ndef rest(xs):\n    # the remaining items\n    return xs[1:]\n")},
		"strings":    {path: "calc.py", base: calc, answer: whole(fixed + "\nTEXT = 'rest of the code unchanged'\n")},
		"markdown":   {path: "a.md", base: "# a\n", answer: "````md\n# a\n\nThe rest of the file is unchanged.\n````\n"},
	} {
		requireGate(t, v, name, c)
	}
}

// TestStructure: definitions and statements go only when the task says so.
func TestStructure(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	setter := "    @total.setter\n    def total(self, value):\n        self._total = value\n\n"
	add := "    def add(self, item):\n        if len(self.items) >= LIMIT:\n            raise ValueError(\"full\")\n        self.items.append(item)\n        self._total = None\n"
	loop := "    out = []\n    for row in data:\n        if row.get(\"skip\"):\n            continue\n        out.append(row[\"name\"])\n    return out\n"
	for name, c := range map[string]gateCase{
		"method lost":       {answer: whole(edited(t, shop, "\n"+add, "\n")), gate: "structure", reason: "lost_definition"},
		"method named":      {answer: whole(edited(t, shop, "\n"+add, "\n")), task: "remove Cart.add, nobody calls it"},
		"setter lost":       {answer: whole(edited(t, shop, setter, "")), gate: "structure", reason: "lost_definition"},
		"renamed":           {answer: whole(edited(t, shop, "def load(", "def load_names(")), gate: "structure", reason: "lost_definition"},
		"constant in use":   {answer: whole(edited(t, shop, "LIMIT = 10\n", "")), gate: "structure", reason: "lost_name"},
		"statements gone":   {answer: whole(edited(t, shop, loop, "    return out\n")), gate: "structure", reason: "lost_statements"},
		"loop simplified":   {answer: whole(edited(t, shop, loop, "    return [row[\"name\"] for row in data if not row.get(\"skip\")]\n"))},
		"one line deleted":  {answer: whole(edited(t, shop, "        self.items.append(item)\n        self._total = None\n", "        self.items.append(item)\n"))},
		"import replaced":   {answer: whole(edited(t, shop, "import os\n", "from os import replace\n", "os.replace(tmp", "replace(tmp"))},
		"moved":             {answer: whole(edited(t, shop, "LIMIT = 10\n\n\n", "") + "\n\nLIMIT = 10\n")},
		"decorated":         {answer: whole(edited(t, shop, "def save(", "@staticmethod\ndef save("))},
		"by an edit":        {answer: "shop.py\n<<<<<<< SEARCH\n" + loop + "=======\n    return out\n>>>>>>> REPLACE\n", gate: "structure"},
		"body to docstring": {answer: whole(edited(t, shop, loop, "    \"\"\"Names of all rows.\"\"\"\n    return []\n")), gate: "structure"},
	} {
		c.path, c.base = "shop.py", shop
		requireGate(t, v, name, c)
	}
	build := "def build(r):\n    o = {}\n    o[\"a\"] = r.a\n    o[\"b\"] = r.b\n    o[\"c\"] = r.c\n    o[\"d\"] = r.d\n    if r.e > 1:\n        o[\"e\"] = r.e\n    return o\n"
	requireGate(t, v, "gutted without a remark", gateCase{
		path: "o.py", base: build, answer: whole("def build(r):\n    o = {}\n    if r.e >= 1:\n        o[\"e\"] = r.e\n    return o\n"),
		gate: "structure", reason: "lost_statements",
	})
	short := "def f(r):\n    a = r.a\n    log(a)\n    store(a)\n    return a\n"
	requireGate(t, v, "two statements became a remark", gateCase{
		path: "o.py", base: short, answer: whole("def f(r):\n    a = r.b\n    # handled by the caller\n    return a\n"),
		gate: "structure", reason: "lost_statements",
	})
	requireGate(t, v, "two statements went openly", gateCase{
		path: "o.py", base: short, answer: whole("def f(r):\n    a = r.b\n    return a\n"),
	})
	for _, body := range []string{
		"pass", "...", "return", "return None", "return NotImplemented", "raise NotImplementedError", "raise NotImplementedError('later')",
		"\"\"\"Builds.\"\"\"\n    pass", "pass\n    return None", "'later'", "raise NotImplementedError() from None",
	} {
		answer := whole("def build(r):\n    " + body + "\n")
		requireGate(t, v, body, gateCase{path: "o.py", base: build, answer: answer, gate: "structure", reason: "lost_statements"})
		method := strings.ReplaceAll("class A:\n    x = 1\n\n"+build, "\ndef", "\n    def")
		method = strings.ReplaceAll(strings.ReplaceAll(method, "\n    ", "\n        "), "\n        def", "\n    def")
		method = strings.Replace(method, "\n        x", "\n    x", 1)
		hollow := "class A:\n    x = 1\n\n    def build(r):\n        " + strings.ReplaceAll(body, "\n", "\n    ") + "\n"
		requireGate(t, v, body+" in a class", gateCase{path: "o.py", base: method, answer: whole(hollow), gate: "structure", reason: "lost_statements"})
		requireGate(t, v, body+" was there", gateCase{path: "o.py", base: "def build(r):\n    " + body + "\n\n\nX = 1\n", answer: whole("def build(r):\n    pass\n\n\nX = 2\n")})
	}
	for _, body := range []string{
		"return {k: getattr(r, k) for k in 'abcde'}", "return super().build(r)", "return None if r is None else r.a", "raise ValueError(r)",
		"if r is None:\n        return None\n    return vars(r)",
	} {
		requireGate(t, v, body, gateCase{path: "o.py", base: build, answer: whole("def build(r):\n    " + body + "\n")})
	}
	requireGate(t, v, "a short body that does nothing now", gateCase{path: "o.py", base: "def f(r):\n    log(r)\n    return 1\n", answer: whole("def f(r):\n    return None\n")})
	var long strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, "rule_%d { x }\n", i)
	}
	requireGate(t, v, "shrunk", gateCase{path: "a.conf", base: long.String(), answer: whole("rule_0 { y }\nrule_1 { x }\n"), gate: "structure", reason: "shrunk"})
	for name, c := range map[string]gateCase{
		"go func lost":     {path: "a.go", base: "package a\n\nfunc A() {}\n\nfunc (t *T[X]) B() {}\n", answer: whole("package a\n\nfunc A() { return }\n"), gate: "structure"},
		"go kept":          {path: "a.go", base: "package a\n\nfunc A() {}\n", answer: whole("package a\n\nfunc A() { return }\n")},
		"ts class lost":    {path: "a.ts", base: "export class A {}\nexport const b = 1\n", answer: whole("export const b = 2\n"), gate: "structure"},
		"broken base lost": {path: "a.py", base: "def ok():\n    return 1\n\n\ndef gone():\n    pass\n\n\ndef broken(:\n    pass\n", answer: whole("def ok():\n    return 2\n\n\ndef broken(:\n    pass\n"), gate: "structure"},
	} {
		requireGate(t, v, name, c)
	}
}

// TestSyntax: only new errors count, in every language that has a parser.
func TestSyntax(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]struct{ path, good, better, bad string }{
		"go":           {"a.go", "package a\n\nvar X = 1\n", "package a\n\nvar X = 2\n", "package a\n\nvar X = \n"},
		"js":           {"a.js", "let x = 1\n", "let x = 2\n", "let x = (2\n"},
		"jsx":          {"a.jsx", "export const A = () => <p>a</p>\n", "export const A = () => <p>b</p>\n", "export const A = () => <p>b\n"},
		"ts":           {"a.ts", "const x: number = 1\n", "const x: number = 2\n", "const x: = 2\n"},
		"tsx":          {"a.tsx", "const A = () => <p>a</p>\n", "const A = () => <p>b</p>\n", "const A = () => <p>b</q>\n"},
		"json":         {"a.json", "{\"a\": 1}\n", "{\"a\": 2}\n", "{\"a\": 2,}\n"},
		"tsconfig":     {"tsconfig.build.json", "{\n  // base\n  \"a\": 1,\n}\n", "{\n  // base\n  \"a\": 2, /* b */\n}\n", "{\n  // base\n  \"a\": 2,,\n}\n"},
		"jsonc":        {"a.jsonc", "{\"a\": 1,}\n", "{\"a\": [2,],} // x\n", "{'a': 2}\n"},
		"json comment": {"a.json", "{\"a\": 1}\n", "{\"a\": 3}\n", "{\"a\": 1} // one\n"},
		"mjs":          {"a.mjs", "export const x = await f()\n", "export const x = await g()\n", "export const x = await\n"},
		"yaml":         {"a.yaml", "a: 1\n", "a: 2\n", "a: [2\n"},
		"toml":         {"a.toml", "a = 1\n", "a = 2\n", "a = \n"},
		"py":           {"a.py", "x = 1\n", "x = 2\n", "x = (2\n"},
	} {
		requireGate(t, v, name, gateCase{path: c.path, base: c.good, answer: "```x " + c.path + "\n" + c.better + "```\n"})
		got := requireGate(t, v, name, gateCase{path: c.path, base: c.good, answer: "```x " + c.path + "\n" + c.bad + "```\n", gate: "syntax"})
		require.Equal(t, run.StatusASTFail, got.Status)
		// A base that is broken in the same way is not the candidate's fault.
		if name == "py" {
			continue // case A037 has it: a blank line is no change of Python
		}
		broken := c.bad + "\n"
		requireGate(t, v, name+" broken before", gateCase{path: c.path, base: broken, answer: "```x " + c.path + "\n\n" + broken + "```\n"})
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	for name, c := range map[string]gateCase{
		"conflict in css":   {path: "a.css", base: "a{}\n", answer: whole("<<<<<<< HEAD\na{}\n=======\nb{}\n>>>>>>> main\n"), gate: "marker"},
		"end marker":        {path: "a.txt", base: "a\n", answer: whole("b\n>>>>>>> REPLACE\n"), gate: "marker"},
		"in a docstring":    {path: "a.py", base: "x = 1\n", answer: whole("\"\"\"\n<<<<<<< HEAD\n\"\"\"\nx = 2\n"), gate: "marker"},
		"fence in ruby":     {path: "a.rb", base: "x = 1\n", answer: `{"fixed_code": "x = 2\n` + "```" + `ruby\n"}`, gate: "marker"},
		"NUL":               {path: "a.css", base: "a{}\n", answer: `{"path": "a.css", "content": "a{}\u0000b{}\n"}`, gate: "decode", reason: "nul"},
		"rst heading":       {path: "a.rst", base: "a\n", answer: whole("Heading\n=======\n\na\n")},
		"old marker stays":  {path: "a.txt", base: "<<<<<<< HEAD\na\n", answer: whole("<<<<<<< HEAD\nb\n")},
		"fence in markdown": {path: "a.md", base: "a\n", answer: "````md\na\n```sh\nb\n```\n````\n"},
	} {
		requireGate(t, v, name, c)
	}
}

// TestUTF8StaysUTF8: no answer writes other bytes into a UTF-8 file.
func TestUTF8StaysUTF8(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	diff := "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-one\n+caf\xe9\n"
	for _, base := range []string{"one\n\u00e9\n", "one\n"} {
		requireGate(t, v, base, gateCase{path: "f.txt", base: base, answer: diff, gate: "place", reason: "encoding"})
	}
	requireGate(t, v, "another encoding", gateCase{path: "f.txt", base: "one\n\xe8\n", answer: diff})
}
