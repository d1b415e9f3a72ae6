package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// defaultPath is the PATH of a command that is given none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is all that a command sees of an environment: nothing of the
// caller's own is inherited. Later entries win.
func environment(p private, extra []string) []string {
	env := []string{
		"PATH=" + defaultPath,
		"HOME=" + p.home,
		"TMPDIR=" + p.tmp,
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"TZ=UTC",
		"TERM=dumb",
		"PYTHONHASHSEED=0",
		"PYTHONPYCACHEPREFIX=" + p.cache,
	}
	at := map[string]int{}
	for i, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		at[k] = i
	}
	for _, kv := range extra {
		k, _, ok := strings.Cut(kv, "=")
		if !ok || k == "" || strings.ContainsRune(kv, 0) {
			continue
		}
		if i, known := at[k]; known {
			env[i] = kv
			continue
		}
		at[k] = len(env)
		env = append(env, kv)
	}
	return env
}

// lookup resolves the command like execvp would, with the PATH of env. What
// lies below mountAt may be found in the staged tree dir instead.
func lookup(argv0, dir, mountAt string, env []string) (string, error) {
	executable := func(path string) error {
		err := executable(path)
		if err != nil && within(mountAt, path) {
			return executable(dir + path[len(mountAt):])
		}
		return err
	}
	if strings.Contains(argv0, "/") {
		path := argv0
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrCommandNotFound, argv0, err)
		}
		return path, nil
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, d := range filepath.SplitList(list) {
			path := filepath.Join(d, argv0)
			if filepath.IsAbs(d) && executable(path) == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s is not on PATH", ErrCommandNotFound, argv0)
}

func executable(path string) error {
	fi, err := os.Stat(path) //nolint:gosec // the caller's own command
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return fmt.Errorf("not a file")
	case fi.Mode()&0o111 == 0:
		return fmt.Errorf("not executable")
	}
	return nil
}
