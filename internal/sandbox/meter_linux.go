package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// meter is the parent's watch over one run in namespaces. With a cgroup the
// kernel counts and bounds, and the meter only asks; without one it looks at
// every process of the tree.
type meter struct {
	pid    int
	group  *cgroup
	limits Limits
	// store is what the run's own file system holds, as process 1 last said.
	store int64
	peak  int64
	procs int
	looks int
	// cpu is the largest processor time of the tree that was seen.
	cpu time.Duration
	// memfds is the size of the files in memory that no process has mapped.
	memfds int64
	total  unix.Rusage
}

// memfdEvery is how many looks pass between two over all descriptors.
const memfdEvery = 5

// look returns the limit that was passed, if one was.
func (m *meter) look() string {
	m.looks++
	if m.group != nil {
		m.procs = max(m.procs, m.group.processes())
		if hit := m.group.hit(); hit != "" {
			return hit
		}
		if m.limits.CPU > 0 && m.group.cpu() > m.limits.CPU {
			return LimitCPU
		}
		return ""
	}
	list := quickDescendants(m.pid)
	var rss int64
	var cpu time.Duration
	threads := 0
	for _, p := range list {
		rss += p.rss
		cpu += p.cpu
		threads += max(p.threads, 1)
	}
	if m.looks%memfdEvery == 0 {
		m.memfds = memfds(list)
	}
	if rss+m.store+m.memfds > m.limits.MemoryBytes {
		rss = sharedOnce(list)
	}
	m.peak, m.procs = max(m.peak, rss+m.store+m.memfds), max(m.procs, threads)
	if init, err := readStat(m.pid); err == nil {
		cpu += init.cpu
	}
	m.cpu = max(m.cpu, cpu)
	switch {
	case rss+m.store+m.memfds > m.limits.MemoryBytes:
		return LimitMemory
	case threads > m.limits.Processes:
		return LimitProcesses
	case m.limits.CPU > 0 && cpu > m.limits.CPU:
		return LimitCPU
	default:
		return ""
	}
}

// memfds adds up the files in memory that the processes hold open, each once.
// A mapped one counts twice, here and as resident memory: the error is on the
// safe side.
func memfds(list []procStat) int64 {
	seen := map[uint64]bool{}
	var sum int64
	for _, p := range list {
		dir := fmt.Sprintf("/proc/%d/fd", p.pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if text, err := os.Readlink(name); err != nil || !strings.HasPrefix(text, "/memfd:") {
				continue
			}
			fi, err := os.Stat(name)
			if err != nil {
				continue
			}
			if st, ok := fi.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * 512
			}
		}
	}
	return sum
}

// usage is what the run took, from the note that process 1 left and from what
// the kernel and the meter saw.
func (m *meter) usage(last note) Usage {
	cpu := last.Usage
	if last.Kind != noteEnded {
		cpu = m.total
	}
	u := Usage{
		User: time.Duration(cpu.Utime.Nano()), System: time.Duration(cpu.Stime.Nano()),
		PeakBytes: max(m.peak, cpu.Maxrss<<10), PeakProcesses: max(m.procs, 1),
		TreeBytes: last.used(), TreeFiles: int64(last.Store.Files - last.Store.Ffree), //nolint:gosec // bounded by the mount
	}
	if m.group != nil {
		m.cpu = max(m.cpu, m.group.cpu())
		u.PeakBytes = max(m.group.peak(), u.PeakBytes)
		u.PeakProcesses = max(m.group.peakProcesses(), u.PeakProcesses)
	}
	// Time of processes that nobody waited for is in no process's account.
	u.User += max(0, m.cpu-u.User-u.System)
	return u
}
