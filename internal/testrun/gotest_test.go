package testrun_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/testrun"
)

const (
	goAdd = "package calc\n\nfunc Add(a, b int) int { return a - b }\n\nfunc Mul(a, b int) int { return a * b }\n"
	goFix = "package calc\n\nfunc Add(a, b int) int { return a + b }\n\nfunc Mul(a, b int) int { return a * b }\n"
)

// module is the Go project that most tests vary.
func module() files {
	return files{
		"go.mod":       "module example.com/calc\n\ngo 1.22\n",
		"calc/calc.go": goAdd,
		"calc/calc_test.go": `package calc

import "testing"

func TestAdd(t *testing.T) {
	for name, c := range map[string][3]int{"one": {1, 2, 3}, "a b": {0, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			if Add(c[0], c[1]) != c[2] {
				t.Fatal("wrong sum")
			}
		})
	}
}

func TestMul(t *testing.T) {
	if Mul(2, 3) != 6 {
		t.Fatal("wrong product")
	}
}
`,
	}
}

// goOn plans and runs one Go project, staged apart from where it was found.
func goOn(t *testing.T, f files, command string, change ...func(*testrun.Options)) run.Evidence {
	t.Helper()
	plan, err := testrun.Find(t.Context(), write(t, f), command)
	if errors.Is(err, testrun.ErrNoGo) {
		t.Skip("this machine has no Go: ", err)
	}
	require.NoError(t, err)
	require.Equal(t, testrun.Go, plan.Runner)
	return execute(t, plan, write(t, f), append(change, func(o *testrun.Options) { o.Timeout = 3 * time.Minute })...)
}

func TestGoModule(t *testing.T) {
	t.Parallel()
	base := goOn(t, module(), "")
	trusted(t, base)
	require.False(t, base.Weak)
	require.Equal(t, outcomes(
		"calc::TestAdd", "failed", "calc::TestAdd/one", "failed", "calc::TestAdd/a_b", "passed", "calc::TestMul", "passed",
	), base.Outcomes, base.Tail)
	require.Equal(t, []string{"calc::TestAdd", "calc::TestMul"}, base.Collected)
	require.Equal(t, 1, base.Exit)
	require.NotContains(t, base.Tail, "planted")
	require.NotContains(t, base.Tail, "TestNexus")
	require.Equal(t, run.VerdictFailed, run.JudgeBase(base).Kind)

	got := goOn(t, module().with("calc/calc.go", goFix), "go test ./...")
	trusted(t, got)
	v := run.Judge(base, got)
	require.Equal(t, run.VerdictPassed, v.Kind, "%+v\n%+v\n%+v", v, base, got)
	require.Equal(t, []string{"calc::TestAdd", "calc::TestAdd/one"}, v.Fixed)
}

func TestGoOutcomes(t *testing.T) {
	t.Parallel()
	crash := "package calc\n\nfunc Add(a, b int) int { var p *int; return *p }\n\nfunc Mul(a, b int) int { return a * b }\n"
	exits := "package calc\n\nimport \"os\"\n\nfunc Add(a, b int) int { os.Exit(3); return 0 }\n\nfunc Mul(a, b int) int { return a * b }\n"
	for name, c := range map[string]struct {
		project files
		ids     map[string]run.Outcome
	}{
		"a panic leaves the others their outcomes": {
			module().with("calc/calc.go", crash).with("calc/calc_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tAdd(1, 2)\n}\n\nfunc TestMul(t *testing.T) {}\n"),
			outcomes("calc::TestAdd", "failed", "calc::TestMul", "passed"),
		},
		"so does an exit": {
			module().with("calc/calc.go", exits).with("calc/calc_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tAdd(1, 2)\n}\n\nfunc TestMul(t *testing.T) {}\n"),
			outcomes("calc::TestAdd", "error", "calc::TestMul", "passed"),
		},
		"does not compile": {module().with("calc/calc.go", "package calc\n\nfunc Add() {\n"), outcomes("calc", "error")},
		"skips, examples, an outer test package, a main that checks afterwards": {
			module().with("calc/calc_test.go", `package calc_test

import (
	"fmt"
	"os"
	"testing"

	"example.com/calc/calc"
)

func TestSkip(t *testing.T) { t.Skip("later") }

func TestPass(t *testing.T) { t.Parallel() }

func ExampleMul() {
	fmt.Println(calc.Mul(2, 3))
	// Output: 6
}

func ExampleAdd() { calc.Add(1, 2) }

func FuzzX(f *testing.F) { f.Fuzz(func(t *testing.T, b []byte) {}) }

func Testing() {}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		fmt.Println("leaked")
		code = 1
	}
	os.Exit(code)
}
`),
			outcomes("calc", "error", "calc::TestSkip", "skipped", "calc::TestPass", "passed", "calc::ExampleMul", "passed", "calc::FuzzX", "passed"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := goOn(t, c.project, "")
			require.Equal(t, c.ids, e.Outcomes, e.Tail)
			trusted(t, e)
			require.NotEqual(t, run.VerdictPassed, run.JudgeBase(e).Kind)
			require.Equal(t, run.VerdictFailed, run.JudgeBase(e).Kind, run.JudgeBase(e).Reason)
		})
	}
}

func TestGoCandidatesThatFake(t *testing.T) {
	t.Parallel()
	base := goOn(t, module(), "")
	for name, init := range map[string]string{
		"exits while it loads":          "import \"os\"\n\nfunc init() { os.Exit(0) }\n",
		"exits in a test":               "import \"syscall\"\n\nfunc init() { go func() { for { syscall.Exit(0) } }() }\n",
		"prints that all passed":        "import (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc init() {\n\tfor _, n := range []string{\"TestAdd\", \"TestAdd/one\", \"TestAdd/a_b\", \"TestMul\"} {\n\t\tfmt.Printf(\"\\x16=== RUN   %s\\n\\x16--- PASS: %s (0.00s)\\n\", n, n)\n\t}\n\tfmt.Println(\"PASS\")\n\tos.Exit(0)\n}\n",
		"prints events":                 "import (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc init() {\n\tfmt.Println(`{\"Action\":\"pass\",\"Package\":\"example.com/calc/calc\",\"Test\":\"TestAdd\"}`)\n\tos.Exit(0)\n}\n",
		"writes to the runner's report": "import (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc init() {\n\tfor fd := 3; fd < 60; fd++ {\n\t\tfmt.Fprintln(os.NewFile(uintptr(fd), \"x\"), `{\"Action\":\"pass\",\"Package\":\"example.com/calc/calc\",\"Test\":\"TestAdd\"}`)\n\t}\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := goOn(t, module().with("calc/trick.go", "package calc\n\n"+init), "")
			v := run.Judge(base, got)
			require.NotEqual(t, run.VerdictPassed, v.Kind, "%+v\n%s", v, got.Tail)
		})
	}
}

func TestGoCommands(t *testing.T) {
	t.Parallel()
	for command, ids := range map[string]int{
		"go test ./calc": 4,
		"go test -v -count=1 -race=false ./calc/":  -1,
		"go test -run TestMul ./...":               1,
		"CGO_ENABLED=0 go test -short -tags x ./…": -1,
		"go test -mod=mod ./...":                   4,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			plan, err := testrun.Find(t.Context(), write(t, module()), command)
			if errors.Is(err, testrun.ErrNoGo) {
				t.Skip(err)
			}
			require.NoError(t, err)
			require.Equal(t, testrun.Go, plan.Runner)
			require.NotContains(t, plan.Args, "-mod=mod")
			if ids < 0 {
				return
			}
			e := execute(t, plan, write(t, module()), limitTime(3*time.Minute))
			trusted(t, e)
			require.Len(t, e.Outcomes, ids, e.Tail)
		})
	}
	for _, command := range []string{"go test -exec=true ./...", "go test -toolexec x", "go vet ./...", "go test -c ./..."} {
		plan, err := testrun.Find(t.Context(), write(t, module()), command)
		require.NoError(t, err)
		require.True(t, plan.Weak, command)
	}
}

func TestGoNeedsWhatItCannotFetch(t *testing.T) {
	t.Parallel()
	e := goOn(t, module().with("calc/calc.go", "package calc\n\nimport _ \"example.org/not/there\"\n"), "")
	require.NotEqual(t, run.VerdictPassed, run.JudgeBase(e).Kind)
	require.Contains(t, e.Tail, "example.org/not/there")
	e = goOn(t, module().with("go.mod", "module example.com/calc\n\ngo 9.99\n"), "")
	require.Equal(t, run.VerdictInfrastructure, run.JudgeBase(e).Kind)
	require.Contains(t, e.Infrastructure, "go.mod requires go >= 9.99")
}

func TestGoEndlessLoop(t *testing.T) {
	t.Parallel()
	e := goOn(t, module().with("calc/calc.go", "package calc\n\nfunc Add(a, b int) int { for { } }\n\nfunc Mul(a, b int) int { return a * b }\n"), "go test -timeout 2s ./...")
	require.Equal(t, run.OutcomeError, e.Outcomes["calc::TestAdd"], "%v %s", e.Outcomes, e.Tail)
	require.Equal(t, run.OutcomePassed, e.Outcomes["calc::TestMul"])
	trusted(t, e)
}
