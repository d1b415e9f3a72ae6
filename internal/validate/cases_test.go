package validate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/validate"
)

// kinds are those that the gates alone must get right.
var kinds = map[string]bool{
	"prose": true, "extract": true, "truncation": true, "elision": true, "elision-false-positive": true,
	"symbol-loss": true, "syntax-gate": true, "diff": true, "diff-path": true, "match": true, "bytes": true,
	"apply-literal": true, "no-op": true, "parse": true, "tamper": true, "secrets": true, "junk": true,
}

// wanted is what one case must end in: gates that may refuse it, or files.
type wanted struct {
	gates  []string
	status []run.AttemptStatus
	files  tree
	// elsewhere marks a case with a test of its own.
	elsewhere bool
	// by is the test of a case that is described in words.
	by func(t *testing.T, v *validate.Validator)
	// answer replaces the case's text where it is only described in words.
	answer string
}

func rejects(gates ...string) wanted { return wanted{gates: gates} }

func noCode() wanted {
	return wanted{gates: []string{"decode"}, status: []run.AttemptStatus{run.StatusNoFixedCode}}
}

func accepts(path, body string) wanted { return wanted{files: tree{path: body}} }

var want = map[string]wanted{
	"A001": noCode(), "A002": noCode(), "A003": noCode(), "A005": noCode(), "A122": noCode(), "A119": noCode(),
	"A006": rejects("decode"), "A007": rejects("decode"), "A026": rejects("decode"), "A123": rejects("decode"),
	"A008": {files: tree{"install.php": "<?php echo 1;\n", "migration.sql": "SELECT 1;\n"}},
	"A009": {files: tree{"app/main.py": "import util\n", "app/util.py": "V = 1\n"}},
	"A010": accepts("main.py", "print(\"hi\")\n"),
	"A011": accepts("calc.py", fixed), "A012": accepts("calc.py", fixed), "A017": accepts("calc.py", fixed),
	"A018": accepts("calc.py", fixed), "A052": accepts("calc.py", fixed),
	"A015": rejects("place", "paths"),
	"A016": accepts("page.tsx", "export const A = () => <p>two</p>\n"),
	"A020": rejects("decode"),
	"A021": {by: longStreamLinesArriveWhole},
	"A023": accepts("a.html", "<p>use &amp;lt; for a less-than sign</p>\n"),
	"A025": accepts("run.sh", "echo \"$1 $& ${HOME} $$\"\n"),
	"A028": rejects("elision"), "A029": rejects("elision"),
	"A031": accepts("s.py", "# YOUR CODE HERE\nimport numpy as np\n\n\ndef col(a):\n    return a[..., 0]\n\n\nclass P:\n    def m(self): ...\n"),
	"A033": rejects("structure", "elision"), "A034": rejects("structure"),
	"A037": accepts("bad.py", "def ok():\n    return 2\n\n\ndef broken(:\n    pass\n"),
	"A039": accepts("f.txt", "a\nb\nC\nd\ne\n"), "A041": accepts("f.txt", "a\nb\nC\nd\ne\n"),
	"A046": accepts("f.txt", "a\nb\nC\nd\ne\n"), "A049": accepts("f.txt", "a\nb\nC\nd\ne\n"),
	"A043": accepts("g.py", "def g(x):\n    # guard\n    if x:\n\n        return 2\n    return 0\n"),
	"A044": rejects("place"), "A053": rejects("place"),
	"A047": accepts("n.txt", "ONE\ntwo\nthree"), "A048": accepts("n.txt", "k: 1\nv: 3"),
	"A050": {by: secondCandidateStartsFromTheBase},
	"A054": rejects("paths"), "A056": rejects("paths", "decode"),
	"A060": accepts("foo.py", "def foo():\n    x = 100\n    y = 2\n    return x + y\n"),
	"A062": rejects("place"), "A064": rejects("place"), "A066": rejects("place"), "A079": rejects("decode", "place"),
	"A065": {by: repeatedEditsAddNoLines},
	"A067": accepts("Makefile", "all:\n\techo ONE\n\techo two\n"),
	"A069": accepts("w.bat", "foo\r\nBAR\r\nbaz\r\n"),
	"A071": accepts("x.txt", "a\r\nb\nc\rd\r\nE\n"),
	"A072": accepts("t.ps1", "\ufeffhello2\n日本語\n"),
	"A074": accepts("b.py", "\ufeffx = 2\n"),
	"A075": accepts("s.txt", "const x = 2;\n// caf\xe9 note\n"),
	"A078": accepts("d.md", "say \u2018%s\u2019\n"),
	"A118": accepts("a.py", "x = 1\ny = 2\n"),
	"A125": rejects("tamper"), "A126": rejects("tamper"),
	"A128": {gates: []string{"tamper"}, answer: fenced("conftest.py", "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    r = yield\n    r.get_result().outcome = \"passed\"\n")},
	"A143": {gates: []string{"tamper", "structure"}, answer: "*** Begin Patch\n*** Delete File: tests/test_mul.py\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n*** End Patch\n"},
	"A080": accepts("real.md", "there\n"),
	"A099": {gates: []string{"paths"}, answer: "*** Begin Patch\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n" +
		"*** Add File: reproduce_bug.py\n+import calc\n*** Add File: calc.py.orig\n+x\n*** Add File: .pytest_cache/README.md\n+x\n*** End Patch\n"},
	"A130": rejects("structure"),
	"A136": rejects("syntax"),
	"A149": {by: masksAreNotCode},
	"A151": {elsewhere: true}, // TestCaseA151
}

// TestCases drives every report of the gates' kinds through the whole chain.
func TestCases(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	seen := 0
	for _, c := range loadCases(t) {
		if _, ok := want[c.ID]; !ok && !kinds[c.Kind] {
			continue
		}
		seen++
		if want[c.ID].elsewhere {
			continue
		}
		t.Run(c.Kind+"/"+c.ID, func(t *testing.T) {
			w, ok := want[c.ID]
			require.True(t, ok, "%s has no expectation: %s", c.ID, c.Expected)
			if w.by != nil {
				w.by(t, v)
				return
			}
			requireCase(t, v, c, w)
		})
	}
	require.NotZero(t, seen)
}

func requireCase(t *testing.T, v *validate.Validator, c bugCase, w wanted) {
	t.Helper()
	base := c.tree(t)
	if len(base) == 0 {
		base["calc.py"] = calc
	}
	texts := c.answers(t, base)
	if w.answer != "" {
		texts = []string{w.answer}
	}
	require.NotEmpty(t, texts)
	for _, text := range texts {
		got := v.Check(t.Context(), c.input(base, text))
		if w.gates != nil {
			require.False(t, got.Accepted, text)
			require.Contains(t, w.gates, got.Gate, "%s: %s", got.Reason, got.Feedback)
			require.NotEmpty(t, got.Reason)
			require.NotEmpty(t, got.Feedback)
			if w.status != nil {
				require.Contains(t, w.status, got.Status)
			}
			continue
		}
		require.True(t, got.Accepted, "%s/%s: %s", got.Gate, got.Reason, got.Feedback)
		after := base.after(got)
		for p, body := range w.files {
			require.Equal(t, body, after[p], p)
		}
		require.Len(t, got.Candidate.Changes, len(w.files))
		require.NotEmpty(t, got.Candidate.Hash)
	}
}

// repeatedEditsAddNoLines: each of several edits of one line replaces it.
func repeatedEditsAddNoLines(t *testing.T, v *validate.Validator) {
	t.Helper()
	base := tree{"e.py": "try:\n    return_value = 1\nexcept ValueError:\n    pass\n"}
	for n := 1; n < 4; n++ {
		answer := replace(t, "e.py", fmt.Sprint("return_value = ", n), fmt.Sprint("return_value = ", n+1))
		got := v.Check(t.Context(), validate.Input{Answer: []byte(answer), Finish: "stop", Base: base})
		require.True(t, got.Accepted, got.Feedback)
		base = base.after(got)
	}
	require.Equal(t, "try:\n    return_value = 4\nexcept ValueError:\n    pass\n", base["e.py"])
}

// longStreamLinesArriveWhole: a line of a model's stream may be long, and what
// stands behind it belongs to the answer; a stream that ends before its end is
// an error and no shorter answer.
func longStreamLinesArriveWhole(t *testing.T, v *validate.Validator) {
	t.Helper()
	event := func(text string) string {
		line, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": text}}}})
		require.NoError(t, err)
		return "data: " + string(line) + "\n\n"
	}
	long := event("```python calc.py\n# " + strings.Repeat("y", 70_000) + "\n")
	rest := event(fixed + "```\n")
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	ask := func(stream string) (llm.Answer, error) {
		server := llmtest.New(t, llmtest.Step{Kind: llmtest.Raw, Text: stream})
		client, err := llm.New(llm.Config{BaseURL: server.URL, Model: "scripted", APIKey: llm.NewSecret("k"), Timeout: time.Minute, Idle: 30 * time.Second})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		return client.Ask(t.Context(), llm.Request{Prompt: "fix it"})
	}
	a, err := ask(long + rest + end)
	require.NoError(t, err)
	base := tree{"calc.py": calc}
	got := v.Check(t.Context(), validate.Input{Answer: []byte(a.Text), Finish: a.Finish, Base: base})
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, "# "+strings.Repeat("y", 70_000)+"\n"+fixed, base.after(got)["calc.py"])
	_, err = ask(long)
	require.ErrorContains(t, err, "incomplete")
}

// TestCaseA151: neither code under test nor the gates' own interpreter sees
// what this process has in its environment.
func TestCaseA151(t *testing.T) {
	var found bugCase
	for _, c := range loadCases(t) {
		if c.ID == "A151" {
			found = c
		}
	}
	require.NotEmpty(t, found.Input.TestCode)
	require.NotEmpty(t, found.Input.Env)
	for name, value := range found.Input.Env {
		t.Setenv(name, value)
	}
	res, err := sandbox.Run(t.Context(), sandbox.Spec{
		Dir: t.TempDir(), Argv: []string{"python3", "-c", found.Input.TestCode}, Timeout: time.Minute,
	})
	require.NoError(t, err)
	require.Zero(t, res.Exit)
	require.Contains(t, string(res.Output.Head), "PATH")
	tell := "import os,sys,json\nsys.stdin.readline()\nprint('{\"id\":0,\"ok\":true}',flush=True)\nsys.stdin.readline()\n" +
		"names=' '.join(sorted(os.environ))\n" +
		"print(json.dumps({'id':1,'ok':False,'error':{'type':'E','msg':names,'line':1,'text':''}}),flush=True)\nsys.stdin.readline()\n"
	got := newValidator(t, interpreter(t, tell)).Check(t.Context(), validate.Input{
		Answer: []byte(whole(fixed)), Finish: "stop", Base: tree{"calc.py": calc}, Targets: []string{"calc.py"},
	})
	require.Equal(t, validate.GateSyntax, got.Gate, got.Feedback)
	require.Contains(t, got.Feedback, "PATH")
	for name := range found.Input.Env {
		require.NotContains(t, string(res.Output.Head), name)
		require.NotContains(t, got.Feedback, name)
	}
}

// masksAreNotCode: what a model was shown instead of a secret never becomes
// code, and the secret that is there stays.
func masksAreNotCode(t *testing.T, v *validate.Validator) {
	t.Helper()
	secret := "KEY = '" + "AK" + "IA" + strings.Repeat("Z", 16) + "'\n"
	shown := llm.Redact(secret)
	require.NotEqual(t, secret, shown)
	base := tree{"calc.py": secret + calc}
	in := validate.Input{Answer: []byte(whole(shown + fixed)), Finish: "stop", Base: base, Targets: []string{"calc.py"}}
	require.Equal(t, "masked", v.Check(t.Context(), in).Reason)
	in.Answer = []byte(replace(t, "calc.py", "a - b", "a + b"))
	got := v.Check(t.Context(), in)
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, secret+fixed, base.after(got)["calc.py"])
}
