package validate_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/validate"
)

// module is a Python file of about 500 lines.
func module() string {
	var b strings.Builder
	b.WriteString("import json\nimport os\n\n")
	for i := range 42 {
		fmt.Fprintf(&b, "\ndef compute_%d(a, b, c=None):\n    \"\"\"Compute number %d.\"\"\"\n    total = %d\n    for x in range(a):\n"+
			"        if x %% 2 == 0:\n            total += x * b\n        else:\n            total -= x\n"+
			"    if c is not None:\n        total += len(json.dumps(c))\n    return total\n", i, i, i)
	}
	return b.String()
}

// BenchmarkAllGates judges a changed line of a 500-line Python file with a
// warm worker; the aim is 5 ms at the median.
func BenchmarkAllGates(b *testing.B) {
	src := module()
	v := newValidator(b, validate.Config{})
	base := tree{"m.py": src}
	i := 0
	check := func() {
		i++
		body := strings.Replace(src, "    total = 20\n", fmt.Sprintf("    total = %d\n", 1000+i), 1)
		got := v.Check(b.Context(), validate.Input{Answer: []byte(whole(body)), Finish: "stop", Base: base, Targets: []string{"m.py"}})
		require.True(b, got.Accepted, got.Feedback)
	}
	check()
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		check()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}

// BenchmarkColdInterpreter is the price that a warm worker saves: one start of
// the interpreter for the syntax check alone.
func BenchmarkColdInterpreter(b *testing.B) {
	src := module()
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), "python3", "-I", "-c", "import sys; compile(sys.stdin.read(), 'm', 'exec', dont_inherit=True)")
		cmd.Stdin = strings.NewReader(src)
		require.NoError(b, cmd.Run())
	}
}
