package repair_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/repair"
)

// program is one file of testdata/bugs, sections headed `-- name --`: a small
// project, its visible tests, a hidden test that the engine never sees, and
// one-line bugs.
type program struct {
	name   string
	runner string
	files  map[string]string
	hidden string
	bugs   []bug
}

// bug is one line "kind: right => wrong"; right occurs once in the project's
// sources.
type bug struct{ kind, right, wrong string }

func readProgram(t *testing.T, path string) program {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	p := program{name: strings.TrimSuffix(filepath.Base(path), ".txt"), files: map[string]string{}, runner: repair.RunnerPytest}
	name := ""
	for line := range strings.Lines(string(data)) {
		if head, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(head, " --\n") {
			name = strings.TrimSuffix(head, " --\n")
			line = ""
		}
		if strings.HasPrefix(line, "import unittest") {
			p.runner = repair.RunnerUnittest
		}
		p.files[name] += line
	}
	p.hidden, p.bugs = p.files["test_hidden.py"], readBugs(t, p.files["bugs"])
	delete(p.files, "test_hidden.py")
	delete(p.files, "bugs")
	require.NotEmpty(t, p.hidden)
	require.NotEmpty(t, p.bugs)
	return p
}

func readBugs(t *testing.T, text string) []bug {
	t.Helper()
	var bugs []bug
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		kind, rest, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		right, wrong, ok := strings.Cut(rest, " => ")
		require.True(t, ok, line)
		bugs = append(bugs, bug{kind, right, wrong})
	}
	return bugs
}

// plant writes the project with the bug into a new folder.
func (p program) plant(t *testing.T, b bug) string {
	t.Helper()
	dir := t.TempDir()
	planted := 0
	for name, text := range p.files {
		if !strings.Contains(filepath.Base(name), "test_") {
			planted += strings.Count(text, b.right)
			text = strings.Replace(text, b.right, b.wrong, 1)
		}
		writeFile(t, dir, name, text)
	}
	require.Equal(t, 1, planted, "%q must occur once", b.right)
	return dir
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o750))
	require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
}

// TestFirstProposalPassesHiddenTests takes every fifth bug of each kind; the
// drill takes all.
func TestFirstProposalPassesHiddenTests(t *testing.T) {
	t.Parallel()
	firstProposals(t, 5)
}

// firstProposals plants every nth bug of each kind of testdata/bugs and demands
// that the fix ranked first passes tests that the engine has not seen.
func firstProposals(t *testing.T, nth int) {
	t.Helper()
	paths, err := filepath.Glob("testdata/bugs/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	seen := map[string]int{}
	var mu sync.Mutex
	count := map[string]int{}
	t.Cleanup(func() { t.Logf("bugs by kind: %v", count) })
	for _, path := range paths {
		p := readProgram(t, path)
		python := interpreter(t, p.runner)
		for _, b := range p.bugs {
			if seen[b.kind]++; (seen[b.kind]-1)%nth != 0 {
				continue
			}
			t.Run(p.name+"/"+b.kind+"/"+b.wrong, func(t *testing.T) {
				t.Parallel()
				dir := p.plant(t, b)
				fixes, report := propose(t, python, p.runner, repair.Request{Dir: dir, Limit: 1, Budget: 2 * time.Minute})
				require.NotEmpty(t, fixes, "%+v", report)
				first := fixes[0]
				require.NoError(t, os.WriteFile(filepath.Join(dir, first.Path), first.New, 0o600))
				writeFile(t, dir, "test_hidden.py", p.hidden)
				output, err := runTests(t, python, p.runner, dir, "test_hidden.py")
				require.NoError(t, err, "first fix: %s\n%s", first.Reason, output)
				mu.Lock()
				defer mu.Unlock()
				count[b.kind]++
			})
		}
	}
}
