package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"nexuscore.dev/nexus/internal/fault"
)

// private is the folder of one run: home, temporary files, bytecode cache.
type private struct {
	root, home, tmp, cache string
}

const tempPrefix = "nexus-sandbox-"

// MakeTemp makes a private folder below dir (os.TempDir when empty). Its name
// carries the process that owns it and that process's start time, so that
// SweepTemp can tell a leftover. Remove it with RemoveTemp.
func MakeTemp(dir string) (string, error) {
	name, err := ownName()
	if err != nil {
		return "", err
	}
	fault.Point("sandbox.temp.create")
	root, err := os.MkdirTemp(dir, name)
	fault.Point("sandbox.temp.created")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSetup, err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return root, nil
}

// ownName is the beginning of every name that this process gives to what it
// must remove again.
func ownName() (string, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("%w: own start time: %w", ErrSetup, err)
	}
	return fmt.Sprintf("%s%d-%d-", tempPrefix, os.Getpid(), start), nil
}

// runName is a name for something of one run.
func runName() (string, error) {
	name, err := ownName()
	return name + strings.ToLower(rand.Text()), err
}

// RemoveTemp removes a folder of MakeTemp, whatever modes programs left in it.
func RemoveTemp(root string) error { return removeTree(root) }

// Where the command finds its own folders at LevelUser and above.
const (
	innerTemp = "/tmp"
	// innerShared takes its place where all of the machine can be read.
	innerShared = "/dev/shm"
)

// privateInside is where the command finds these folders in a file system of
// its own, below a shared folder: not that folder itself, in which a project
// may lie.
func privateInside(shared string) private {
	root := shared + "/nexus-sandbox"
	return private{root: root, tmp: root + "/tmp", home: root + "/home", cache: root + "/cache"}
}

// newPrivate makes the folder of one run.
func newPrivate(dir string) (private, error) {
	root, err := MakeTemp(dir)
	if err != nil {
		return private{}, err
	}
	p := private{
		root: root, home: filepath.Join(root, "home"),
		tmp: filepath.Join(root, "tmp"), cache: filepath.Join(root, "cache"),
	}
	for _, d := range []string{p.home, p.tmp, p.cache} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return private{}, errors.Join(fmt.Errorf("%w: %w", ErrSetup, err), removeTree(root))
		}
	}
	return p, nil
}

var tempName = regexp.MustCompile(`^` + tempPrefix + `(\d+)-(\d+)-`)

// SweepTemp removes the private folders below dir (os.TempDir when empty)
// whose process is gone: what a killed process could not remove itself. It
// returns how many it removed. Folders of living processes are never touched.
func SweepTemp(dir string) (int, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("sweep %s: %w", dir, err)
	}
	sweepCgroups()
	n := 0
	var errs []error
	for _, e := range entries {
		m := tempName.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() || aliveSince(m[1], m[2]) {
			continue
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

func aliveSince(pid, start string) bool {
	p, err := strconv.Atoi(pid)
	if err != nil {
		return true
	}
	now, err := startTime(p)
	return err == nil && strconv.FormatUint(now, 10) == start
}

// removeTree removes a tree whose programs are dead but whose folders may
// have been left without permissions.
func removeTree(root string) error {
	if err := os.RemoveAll(root); err == nil {
		return nil
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder needs its execute bit to be emptied
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(root))
}
