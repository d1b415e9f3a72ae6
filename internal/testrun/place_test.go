package testrun_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
)

// The candidate's tree is found at the project's own path, so that absolute
// paths keep working, and what its tests write is gone with them.
func TestTreeIsFoundAtTheProjectsPath(t *testing.T) {
	t.Parallel()
	for _, runner := range []string{"", "python3 -m unittest"} {
		project := write(t, files{"value.py": "VALUE = 'base'\n", "test_place.py": ""})
		text := `import os, unittest, value
HERE = "` + project + `"
class Place(unittest.TestCase):
    def test_place(self):
        self.assertEqual(os.getcwd(), HERE)
        self.assertEqual(os.path.dirname(os.path.abspath(value.__file__)), HERE)
        with open(os.path.join(HERE, "value.py")) as f:
            self.assertIn("candidate", f.read())
        with open(os.path.join(HERE, "left"), "w") as f:
            f.write("x")
        self.assertEqual(value.VALUE, "candidate")
`
		require.NoError(t, os.WriteFile(filepath.Join(project, "test_place.py"), []byte(text), 0o600))
		plan := find(t, project, runner)
		candidate := write(t, files{"value.py": "VALUE = 'candidate'\n", "test_place.py": text})
		for _, level := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelUser} {
			if sandbox.Detect(t.Context(), level).Level != level {
				continue
			}
			e := execute(t, plan, candidate, func(o *testrun.Options) { o.Level = level })
			trusted(t, e)
			require.Len(t, e.Outcomes, 1)
			for id, outcome := range e.Outcomes {
				require.Equal(t, run.OutcomePassed, outcome, "%s\n%s", id, e.Tail)
			}
			require.Equal(t, string(level), e.Level)
			for _, dir := range []string{project, candidate} {
				require.NoFileExists(t, filepath.Join(dir, "left"))
			}
		}
	}
}
