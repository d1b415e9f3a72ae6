package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/validate/policy"
)

// Policy reads a rules file and returns the set that holds with it, and the
// file's text for tasks; without a path these are the default rules and no
// text. A file inside one of the projects may only add rules: what is healed
// has no say in what is let through.
func Policy(path string, projects ...string) (*policy.Set, string, error) {
	set, err := policy.Default()
	if err != nil || path == "" {
		return set, "", err
	}
	text, err := readPolicy(path)
	if err != nil {
		return nil, "", fmt.Errorf("rules file %s: %w", path, err)
	}
	f, err := policy.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("rules file %s: %w", path, err)
	}
	actual, err := filepath.EvalSymlinks(path)
	if err == nil {
		actual, err = filepath.Abs(actual)
	}
	named, err2 := filepath.Abs(path)
	if err := errors.Join(err, err2); err != nil {
		return nil, "", fmt.Errorf("rules file %s: %w", path, err)
	}
	inside := func(dir string) bool { return rollback.Within(dir, actual) || rollback.Within(dir, named) }
	return set.With(f, !slices.ContainsFunc(projects, inside)), string(text), nil
}

func readPolicy(path string) (text []byte, err error) {
	f, err := os.Open(path)
	if err == nil {
		defer func() { err = errors.Join(err, f.Close()) }()
		text, err = io.ReadAll(io.LimitReader(f, policy.MaxFile+1))
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return text, err
}
