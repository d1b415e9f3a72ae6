package validate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/validate"
)

func fix(base string) validate.Input {
	return validate.Input{Answer: []byte(whole(fixed)), Finish: "stop", Base: tree{"calc.py": base}, Targets: []string{"calc.py"}}
}

func answer(path, base, body string) validate.Input {
	return validate.Input{Answer: []byte("```x " + path + "\n" + body + "```\n"), Finish: "stop", Base: tree{path: base}, Targets: []string{path}}
}

// TestPathologicalSources: what breaks parsers is refused, and the next
// candidate is judged as if nothing had happened.
func TestPathologicalSources(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{Timeout: 5 * time.Second})
	for name, in := range map[string]validate.Input{
		"parentheses":    answer("a.py", "x = 1\n", "x = "+strings.Repeat("(", 50_000)+strings.Repeat(")", 50_000)+"\n"),
		"unary":          answer("a.py", "x = 1\n", "x = "+strings.Repeat("-", 200_000)+"1\n"),
		"attributes":     answer("a.py", "x = 1\n", "x = a"+strings.Repeat(".a", 200_000)+"\n"),
		"not":            answer("a.py", "x = 1\n", "x = "+strings.Repeat("not ", 100_000)+"1\n"),
		"lambda":         answer("a.py", "x = 1\n", "x = "+strings.Repeat("lambda:", 50_000)+"1\n"),
		"javascript":     answer("a.js", "let x\n", "x = "+strings.Repeat("[", 50_000)+"\n"),
		"arrows":         answer("a.js", "let x\n", "x = "+strings.Repeat("a=>", 30_000)+"1\n"),
		"nested arrows":  answer("a.js", "let x\n", "x = "+strings.Repeat("a=>", 1000)+"1\n"),
		"ternaries":      answer("a.js", "let x\n", "x = "+strings.Repeat("a?(b,c):", 30_000)+"1\n"),
		"commas":         answer("a.js", "let x\n", strings.Repeat("a,", 100_000)+"1\n"),
		"cases":          answer("a.js", "let x\n", "switch (a) {"+strings.Repeat("case 1:", 50_000)+"}\n"),
		"enum":           answer("a.ts", "let x\n", "enum A {"+strings.Repeat("a,", 100_000)+"}\n"),
		"yaml bytes":     answer("a.yaml", "a: 1\n", strings.Repeat("# a\n", 600_000)),
		"bundle":         answer("a.js", "let x\n", strings.Repeat("f();\n", 300_000)),
		"many tables":    answer("a.toml", "a = 1\n", strings.Repeat("[[a]]\n", 200_000)),
		"type arguments": answer("a.ts", "let x\n", "let a = b"+strings.Repeat("<c", 30_000)+"\n"),
		"else if":        answer("a.js", "let x\n", strings.Repeat("if(a);else ", 30_000)+";\n"),
		"assignments":    answer("a.ts", "let x\n", strings.Repeat("a=\n", 30_000)+"1\n"),
		"yaml keys":      answer("a.yaml", "a: 1\n", strings.Repeat("a: ", 100_000)+"a\n"),
		"yaml tags":      answer("a.yaml", "a: 1\n", strings.Repeat("!a ", 100_000)+"a\n"),
		"yaml":           answer("a.yaml", "a: 1\n", "a: "+strings.Repeat("[", 50_000)+"\n"),
		"yaml dashes":    answer("a.yaml", "a: 1\n", strings.Repeat("- ", 200_000)+"a\n"),
		"toml":           answer("a.toml", "a = 1\n", "a = "+strings.Repeat("[", 50_000)+"\n"),
		"json":           answer("a.json", "{}\n", strings.Repeat("[", 50_000)+"\n"),
		"huge integer":   answer("a.py", "x = 1\n", "x = 1\ny = "+strings.Repeat("9", 3_000_000)+"\n"),
		"huge line":      answer("a.py", "x = 1\n", "x = 1\ny = ("+strings.Repeat("1 + ", 900_000)+"\n"),
		"tsconfig":       answer("tsconfig.json", "{}\n", strings.Repeat("[", 50_000)+"\n"),
		"go":             answer("a.go", "package a\n", "package a\n\nvar x = "+strings.Repeat("(", 50_000)+"\n"),
	} {
		start := time.Now()
		got := v.Check(t.Context(), in)
		require.False(t, got.Accepted, name)
		require.Equal(t, validate.GateSyntax, got.Gate, "%s: %s", name, got.Feedback)
		require.Less(t, len(got.Feedback), 4096, name)
		require.Less(t, time.Since(start), time.Minute, name)
		require.True(t, v.Check(t.Context(), fix(calc)).Accepted, "after "+name)
	}
}

// TestLongFilesAreJudged: what is long and not deep has a judgement soon, and
// aliases stand for nothing but themselves.
func TestLongFilesAreJudged(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{Timeout: time.Minute})
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	keys := ""
	for i := range 10_000 {
		keys += fmt.Sprintf("k%d: 1\n", i)
	}
	for name, in := range map[string]validate.Input{
		"list":      answer("a.yaml", "a: 1\n", strings.Repeat("- a\n", 50_000)),
		"keys":      answer("a.yaml", "a: 1\n", keys),
		"bomb":      answer("a.yaml", "a: 1\n", bomb),
		"documents": answer("a.yaml", "a: 1\n", strings.Repeat("---\na: !Ref x\n", 20_000)),
		"line":      answer("a.json", "{}\n", `{"a": "`+strings.Repeat("x", 500_000)+"\"}\n"),
		"number":    answer("a.json", "{}\n", strings.Repeat("1", 500_000)+"\n"),
		"merges":    answer("a.yaml", "a: 1\n", "a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n"),
	} {
		got := v.Check(t.Context(), in)
		require.True(t, got.Accepted, "%s: %s/%s %s", name, got.Gate, got.Reason, got.Feedback)
	}
	for name, body := range map[string]string{
		"a key twice": "a: 1\nb:\n  c: 1\n  c: 2\n", "second document": "a: 1\n---\nb: [\n", "no anchor": "a: *b\n", "tab": "a:\n\tb: 1\n",
	} {
		got := v.Check(t.Context(), answer("a.yaml", "a: 1\n", body))
		require.Equal(t, validate.GateSyntax, got.Gate, name)
		require.Regexp(t, `^a\.yaml:[1-9]\d*: |^a\.yaml:0: .*anchor`, got.Feedback, name)
	}
}

// interpreter writes a program that takes the place of Python.
func interpreter(t *testing.T, source string) validate.Config {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "python")
	require.NoError(t, os.WriteFile(path, []byte("#!/usr/bin/env python3\n"+source), 0o755))
	return validate.Config{Python: path, ReadOnly: []string{dir}, Timeout: time.Second}
}

// stub is a worker that greets properly and then misbehaves.
func stub(t *testing.T, rest string) validate.Config {
	t.Helper()
	return interpreter(t, "import sys,time\nsys.stdin.readline()\nprint('{\"id\":0,\"ok\":true}',flush=True)\nsys.stdin.readline()\n"+rest)
}

// TestMisbehavingInterpreter: death, silence and nonsense are refusals.
func TestMisbehavingInterpreter(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{
		"dies":          "sys.exit(3)\n",
		"hangs":         "time.sleep(60)\n",
		"talks rubbish": "print('rubbish',flush=True)\ntime.sleep(60)\n",
		"wrong number":  "print('{\"id\":77,\"ok\":true}',flush=True)\n",
		"stops reading": "sys.stdin.close()\ntime.sleep(60)\n",
		"never ends":    "while True: sys.stdout.write('x' * 65536)\n",
		"lingers":       "sys.stdout.close()\ntime.sleep(60)\n",
		"big numbers":   "print('{\"id\":1,\"ok\":true,\"bare\":[99999999999],\"functions\":[{\"kept\":1,\"deleted\":9,\"old\":9,\"old_span\":[-5,9999999]}]}',flush=True)\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newValidator(t, stub(t, rest))
			for range 2 {
				got := v.Check(t.Context(), fix(calc))
				require.False(t, got.Accepted)
				require.Contains(t, []string{validate.GateSyntax, validate.GateInterpreter, validate.GateProse}, got.Gate)
			}
		})
	}
	v := newValidator(t, interpreter(t, "raise SystemExit(1)"))
	require.Equal(t, validate.GateInterpreter, v.Check(t.Context(), fix(calc)).Gate)
}

// TestHostileInterpreter: a project's own .venv/bin/python may be any program.
// It judges in the sandbox, so it can neither write nor read what is not its
// own.
func TestHostileInterpreter(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret, mark := filepath.Join(outside, "secret"), filepath.Join(outside, "mark")
	require.NoError(t, os.WriteFile(secret, []byte("mine"), 0o600))
	deeds := fmt.Sprintf("import os,sys\nseen=''\ntry: seen=open(%q).read()\nexcept OSError: pass\n"+
		"try: open(%q,'w').write('x')\nexcept OSError: pass\n", secret, mark)
	const say = "for n in range(2):\n  sys.stdin.readline()\n" +
		"  print('{\"id\":%d,\"ok\":true,\"statements\":1,\"error\":%s}' % (n, '{\"msg\":\"read '+seen+'\"}' if n else 'null'),flush=True)\n"
	v := newValidator(t, interpreter(t, deeds+say))
	got := v.Check(t.Context(), fix(calc))
	require.Equal(t, validate.GateSyntax, got.Gate, "the program ran and was heard: %s", got.Feedback)
	require.NotContains(t, got.Feedback, "mine")
	require.NoFileExists(t, mark)
}

// TestNoInterpreter: without Python the other languages still pass.
func TestNoInterpreter(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{Python: "/nonexistent/python"})
	got := v.Check(t.Context(), fix(calc))
	require.Equal(t, validate.GateInterpreter, got.Gate)
	require.Equal(t, run.StatusGateFail, got.Status)
	require.Contains(t, got.Feedback, "/nonexistent/python")
	require.True(t, v.Check(t.Context(), answer("a.json", "{}\n", "{\"a\": 1}\n")).Accepted)
}

// TestCancelledCheck: a cancelled context ends the judgement, not the worker
// for others.
func TestCancelledCheck(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, v.Check(ctx, fix(calc)).Accepted)
	require.True(t, v.Check(t.Context(), fix(calc)).Accepted)
}

// TestConcurrentChecks share one worker and get their own answers.
func TestConcurrentChecks(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	var wg sync.WaitGroup
	results := make([]validate.Verdict, 24)
	for i := range results {
		wg.Go(func() {
			in := fix(calc)
			if i%2 == 1 {
				in.Answer = []byte(whole("def add(a, b:\n    return a\n"))
			}
			results[i] = v.Check(t.Context(), in)
		})
	}
	wg.Wait()
	for i, got := range results {
		require.Equal(t, i%2 == 0, got.Accepted, got.Feedback)
	}
}

// TestEncodings: sources are bytes; a coding line and a BOM mean what they
// mean to Python.
func TestEncodings(t *testing.T) {
	t.Parallel()
	v := newValidator(t, validate.Config{})
	latin := "# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\nx = 1\n"
	in := validate.Input{Answer: []byte(`{"path":"a.py","search":"x = 1","replace":"x = 2"}`), Finish: "stop", Base: tree{"a.py": latin}, Targets: []string{"a.py"}}
	got := v.Check(t.Context(), in)
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, strings.Replace(latin, "x = 1", "x = 2", 1), tree{"a.py": latin}.after(got)["a.py"])

	crlf := strings.ReplaceAll(calc, "\n", "\r\n")
	got = v.Check(t.Context(), fix(crlf))
	require.True(t, got.Accepted, got.Feedback)
	require.Equal(t, strings.ReplaceAll(fixed, "\n", "\r\n"), tree{"calc.py": crlf}.after(got)["calc.py"])
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for _, cfg := range []validate.Config{{Timeout: -1}, {MemoryBytes: -1}, {MaxFile: -1}} {
		_, err := validate.New(cfg)
		require.Error(t, err)
	}
	v := newValidator(t, validate.Config{MaxFile: 10})
	require.Equal(t, "too_large", v.Check(t.Context(), fix(calc)).Reason)
}
