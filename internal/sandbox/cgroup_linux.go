package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the kernel's own account of one run: a hard bound for memory and
// for the number of processes. The watchdog normally ends a run first; the
// bounds hold what is faster than it.
type cgroup struct {
	// version is v1 or v2; dirs holds one folder for each hierarchy: of v1
	// that of pids, memory and, where it can be had, cpuacct.
	version string
	dirs    []string
}

// newCgroup makes a cgroup below, or for version 2 beside, the one of this
// process. It returns nil when none can be had (most users may not), and for
// an empty name.
func newCgroup(name string, l Limits) *cgroup {
	if name == "" {
		return nil
	}
	mounts, paths := cgroupMounts(), ownCgroups()
	if c := newV1(name, l, mounts, paths); c != nil {
		return c
	}
	mnt, ok := mounts["v2"]
	if !ok {
		return nil
	}
	own := filepath.Join(mnt, paths[""])
	for _, parent := range []string{own, filepath.Dir(own)} {
		if within(mnt, parent) {
			if c := newV2(filepath.Join(parent, name), l); c != nil {
				return c
			}
		}
	}
	return nil
}

func newV1(name string, l Limits, mounts, paths map[string]string) *cgroup {
	c := &cgroup{version: "v1"}
	for _, controller := range []string{"pids", "memory"} {
		mnt, ok := mounts[controller]
		if !ok {
			return c.discard()
		}
		dir := filepath.Join(mnt, paths[controller], name)
		if os.Mkdir(dir, 0o755) != nil { //nolint:gosec // a folder of the cgroup file system
			return c.discard()
		}
		c.dirs = append(c.dirs, dir)
	}
	if put(c.dirs[0], "pids.max", int64(l.Processes)) != nil ||
		put(c.dirs[1], "memory.limit_in_bytes", l.MemoryBytes) != nil {
		return c.discard()
	}
	// Only where swap is accounted; without, there is mostly none.
	_ = put(c.dirs[1], "memory.memsw.limit_in_bytes", l.MemoryBytes)
	if mnt, ok := mounts["cpuacct"]; ok {
		dir := filepath.Join(mnt, paths["cpuacct"], name)
		if os.Mkdir(dir, 0o755) == nil { //nolint:gosec // as above
			c.dirs = append(c.dirs, dir)
		}
	}
	return c
}

func newV2(dir string, l Limits) *cgroup {
	if os.Mkdir(dir, 0o755) != nil { //nolint:gosec // a folder of the cgroup file system
		return nil
	}
	c := &cgroup{version: "v2", dirs: []string{dir}}
	if put(dir, "pids.max", int64(l.Processes)) != nil ||
		put(dir, "memory.max", l.MemoryBytes) != nil {
		return c.discard()
	}
	_ = put(dir, "memory.swap.max", 0)
	return c
}

func (c *cgroup) discard() *cgroup {
	for _, d := range c.dirs {
		_ = unix.Rmdir(d)
	}
	return nil
}

func put(dir, file string, n int64) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(n, 10)), 0o644) //nolint:gosec // a control file
}

// doors opens the control files through which the command itself enters: the
// init process stays outside, so that a full cgroup never hinders it. A thread
// that writes itself to "tasks" is moved at once; "cgroup.procs" waits for a
// grace period of the kernel, 10 ms each time (measured on 6.18).
func (c *cgroup) doors() ([]*os.File, error) {
	name := "cgroup.procs"
	if c.version == "v1" {
		name = "tasks"
	}
	var out []*os.File
	for _, d := range c.dirs {
		f, err := os.OpenFile(filepath.Join(d, name), os.O_WRONLY, 0)
		if err != nil {
			for _, o := range out {
				_ = o.Close()
			}
			return nil, fmt.Errorf("%w: cgroup: %w", ErrSetup, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// hit names the limit that the kernel enforced, if it did.
func (c *cgroup) hit() string {
	switch {
	case count(c.memory("memory.oom_control", "memory.events"), "oom_kill") > 0:
		return LimitMemory
	case count(filepath.Join(c.dirs[0], "pids.events"), "max") > 0:
		return LimitProcesses
	default:
		return ""
	}
}

// memory names a file of the memory controller, by its names in v1 and v2.
func (c *cgroup) memory(v1, v2 string) string {
	if c.version == "v1" {
		return filepath.Join(c.dirs[1], v1)
	}
	return filepath.Join(c.dirs[0], v2)
}

// peak is the most memory that was charged, 0 when the kernel does not say.
func (c *cgroup) peak() int64 {
	return number(c.memory("memory.max_usage_in_bytes", "memory.peak"))
}

// processes is how many processes and threads live now.
func (c *cgroup) processes() int { return int(number(filepath.Join(c.dirs[0], "pids.current"))) }

// peakProcesses is the most that lived at once, 0 before Linux 6.6.
func (c *cgroup) peakProcesses() int { return int(number(filepath.Join(c.dirs[0], "pids.peak"))) }

// cpu is the processor time of the tree, 0 when the kernel does not say.
func (c *cgroup) cpu() time.Duration {
	switch {
	case c.version == "v2":
		return time.Duration(count(filepath.Join(c.dirs[0], "cpu.stat"), "usage_usec")) * time.Microsecond
	case len(c.dirs) > 2:
		return time.Duration(number(filepath.Join(c.dirs[2], "cpuacct.usage")))
	default:
		return 0
	}
}

func number(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func count(path, key string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// procs lists the processes inside.
func (c *cgroup) procs() []int {
	b, err := os.ReadFile(filepath.Join(c.dirs[0], "cgroup.procs"))
	if err != nil {
		return nil
	}
	var out []int
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// close removes the cgroup, if there is one, also when ctx has ended.
func (c *cgroup) close(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.remove(context.WithoutCancel(ctx))
}

// remove ends what is left inside and removes the folders. A dead process
// may hold its cgroup for a moment.
func (c *cgroup) remove(ctx context.Context) error {
	var err error
	deadline := time.After(2 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err = nil
		for _, pid := range c.procs() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		c.dirs = slices.DeleteFunc(c.dirs, func(d string) bool {
			e := unix.Rmdir(d)
			if e != nil && !errors.Is(e, unix.ENOENT) {
				err = errors.Join(err, fmt.Errorf("cgroup %s: %w", d, e))
				return false
			}
			return true
		})
		if len(c.dirs) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// cgroupMounts maps each v1 controller, and v2, to its mount point.
func cgroupMounts() map[string]string {
	out := map[string]string{}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || f[3] != "/" {
			continue
		}
		switch g[0] {
		case "cgroup2":
			out["v2"] = f[4]
		case "cgroup":
			for _, option := range strings.Split(g[2], ",") {
				out[option] = f[4]
			}
		}
	}
	return out
}

// ownCgroups maps each v1 controller, and "" for v2, to this process's path.
func ownCgroups() map[string]string {
	out := map[string]string{}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for _, controller := range strings.Split(f[1], ",") {
			out[controller] = f[2]
		}
	}
	return out
}

// sweepCgroups removes what killed processes left: empty cgroups whose names
// carry a process that is gone.
func sweepCgroups() {
	mounts, paths := cgroupMounts(), ownCgroups()
	for key, mnt := range mounts {
		own := filepath.Join(mnt, paths[strings.TrimPrefix(key, "v2")])
		for _, parent := range []string{own, filepath.Dir(own)} {
			entries, err := os.ReadDir(parent)
			if err != nil || !within(mnt, parent) {
				continue
			}
			for _, e := range entries {
				if m := tempName.FindStringSubmatch(e.Name()); m != nil && !aliveSince(m[1], m[2]) {
					_ = unix.Rmdir(filepath.Join(parent, e.Name()))
				}
			}
		}
	}
}
