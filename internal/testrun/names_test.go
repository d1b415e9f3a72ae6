package testrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/testrun"
)

// TestNamesThatPytestPassesOver: tests that pytest would not look at run under
// unittest, unless the project asks for pytest or has a file for it.
func TestNamesThatPytestPassesOver(t *testing.T) {
	t.Parallel()
	cases := "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.fail()\n"
	for name, c := range map[string]struct {
		project files
		runner  string
	}{
		"tests.py":             {files{"tests.py": cases}, testrun.Unittest},
		"in a package":         {files{"app/__init__.py": "", "app/tests.py": cases}, testrun.Unittest},
		"testcalc.py":          {files{"testcalc.py": cases}, testrun.Unittest},
		"one that pytest sees": {files{"tests.py": cases, "calc_test.py": cases}, testrun.Pytest},
		"configured":           {files{"tests.py": cases, "pytest.ini": "[pytest]\npython_files = tests.py\n"}, testrun.Pytest},
		"needs pytest":         {files{"tests.py": "import pytest\n" + cases}, testrun.Pytest},
		"bare functions":       {files{"tests.py": "def test_a():\n    assert 0\n"}, testrun.Pytest},
	} {
		plan, err := testrun.Find(t.Context(), write(t, c.project), "")
		require.NoError(t, err, name)
		require.Equal(t, c.runner, plan.Runner, name)
		if plan.Runner == testrun.Unittest {
			require.Contains(t, plan.Note, "as pytest wants it")
			require.Len(t, execute(t, plan, write(t, c.project)).Outcomes, 1, name)
		}
	}
}
