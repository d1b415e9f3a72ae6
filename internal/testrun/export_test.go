package testrun

import (
	"context"
	"os"
	"path/filepath"
)

// FindWith finds as on a machine that has one interpreter only.
func FindWith(ctx context.Context, dir, command, python string) (Plan, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Plan{}, err
	}
	s := search{
		root: root, home: "/nonexistent", path: "/nonexistent", self: "/nonexistent/nexus",
		getenv: func(k string) string {
			if k == EnvPython {
				return python
			}
			return ""
		},
	}
	if _, err := os.Stat(python); err != nil {
		return Plan{}, err
	}
	return s.find(ctx, command)
}

// SignsProgram searches a text for the signs of every plugin.
var SignsProgram = runnerPart + "\nfor sign in SIGNS.values():\n    re.search(sign, 'timeout = 1', re.M)\n"
