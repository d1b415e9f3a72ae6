package testrun

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`pytest -k "a and b" 'c d'`: {"pytest", "-k", "a and b", "c d"},
		`a\ b "x\"y" ''`:            {"a b", `x"y`, ""},
		"  a\tb  ":                  {"a", "b"},
	} {
		got, shell, err := words(text)
		require.NoError(t, err)
		require.False(t, shell)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"a && b", "a | b", "a $X", "a `b`", `a "$X"`, "a > b", "a; b", "a *.py", "a\nb"} {
		_, shell, err := words(text)
		require.NoError(t, err)
		require.True(t, shell, text)
	}
	for _, text := range []string{"", "   ", "'a", `"a`, `a\`} {
		_, _, err := words(text)
		require.ErrorIs(t, err, ErrTestCommand, text)
	}
}

func TestUnderstand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]asked{
		"pytest":                              {runner: Pytest, args: []string{}},
		"pytest tests/a.py::test_b[1-2] -x":   {runner: Pytest, args: []string{"tests/a.py::test_b[1-2]", "-x"}},
		"python -m pytest -q":                 {runner: Pytest, args: []string{"-q"}},
		"A=1 python3.12 -m pytest":            {runner: Pytest, args: []string{}, env: []string{"A=1"}, python: "python3.12"},
		".venv/bin/pytest":                    {runner: Pytest, args: []string{}, python: ".venv/bin/python"},
		".venv/bin/python -m pytest a":        {runner: Pytest, args: []string{"a"}, python: ".venv/bin/python"},
		"python -m unittest":                  {runner: Unittest},
		"python -m unittest -v tests/a.py":    {runner: Unittest, names: []string{"tests.a"}},
		"python -m unittest discover -s t -v": {runner: Unittest, args: []string{"t"}, patterns: []string{"test*.py"}},
		"python -m unittest --locals":         {runner: Command, args: []string{"python", "-m", "unittest", "--locals"}},
		"pytest && echo ok":                   {runner: Command, args: []string{"/bin/sh", "-c", "pytest && echo ok"}},
		"go test -v -run X ./...":             {runner: Go, names: []string{"./..."}, args: []string{"-run=X"}},
		"go test -exec=true":                  {runner: Command, args: []string{"go", "test", "-exec=true"}},
		"A=1 node --test test/*.js":           {runner: Node, names: []string{"test/*.js"}, env: []string{"A=1"}},
		"node --test --watch":                 {runner: Command, args: []string{"node", "--test", "--watch"}},
		"node a.js":                           {runner: Command, args: []string{"node", "a.js"}},
		"npx jest src":                        {runner: Jest, names: []string{"src"}},
		"cross-env CI=1 vitest run":           {runner: Vitest, env: []string{"CI=1"}},
		"jest --config=x":                     {runner: Command, args: []string{"jest", "--config=x"}},
		"npm test":                            {runner: scriptOfPackage},
		"make test":                           {runner: Command, args: []string{"make", "test"}},
	} {
		got, err := understand(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

func FuzzUnderstand(f *testing.F) {
	f.Add(`A=1 python -m pytest "x y" -k 'a b'`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := understand(text)
		if err != nil {
			require.ErrorIs(t, err, ErrTestCommand)
			return
		}
		require.Contains(t, []string{Pytest, Unittest, Command, Go, Node, Jest, Vitest, scriptOfPackage}, a.runner)
		if a.runner == Command {
			require.NotEmpty(t, a.args)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"n":"x","k":"collected","ids":["a"]}` + "\n" + `{"n":"x","k":"done","exit":0}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rec := parseRecord(strings.NewReader(string(text)), "the nonce of this run")
		if !strings.Contains(string(text), "the nonce of this run") {
			require.Nil(t, rec.done)
			require.Empty(t, rec.outcomes)
		}
	})
}
