package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc: USER_HZ is 100 on every
// architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// procStat holds the fields of /proc/PID/stat that the sandbox needs.
type procStat struct {
	pid, ppid, group, threads int
	state                     byte
	start                     uint64
	rss                       int64
	// cpu is the time of the process and of the children it waited for.
	cpu time.Duration
}

func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	// The name is in parentheses and may itself hold spaces and parentheses.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[max(i+1, 0):]))
	if i < 0 || len(f) < 22 {
		return procStat{}, fmt.Errorf("stat of %d: unexpected format", pid)
	}
	s := procStat{pid: pid, state: f[0][0]}
	s.ppid, _ = strconv.Atoi(f[1])
	s.group, _ = strconv.Atoi(f[2])
	for _, field := range f[11:15] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		s.cpu += time.Duration(ticks) * clockTick
	}
	s.threads, _ = strconv.Atoi(f[17])
	s.start, _ = strconv.ParseUint(f[19], 10, 64)
	pages, _ := strconv.ParseInt(f[21], 10, 64)
	s.rss = pages * int64(os.Getpagesize())
	return s, nil
}

// startTime is the start of a process in clock ticks since boot; with the
// pid it names one process for ever.
func startTime(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.start, err
}

// descendants lists the living processes below root, without root itself.
func descendants(root int) ([]procStat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]procStat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			children[s.ppid] = append(children[s.ppid], s)
		}
	}
	return below(children, root), nil
}

func below(children map[int][]procStat, root int) []procStat {
	var out []procStat
	next := []int{root}
	for len(next) > 0 {
		pid := next[0]
		next = next[1:]
		for _, s := range children[pid] {
			out = append(out, s)
			next = append(next, s.pid)
		}
	}
	return out
}

// quickDescendants walks the kernel's own lists of children, which costs
// only what the tree is large. It misses processes that are being born, so
// it serves the watchdog, not the proof that none is left.
func quickDescendants(root int) []procStat {
	var out []procStat
	next := []int{root}
	for len(next) > 0 {
		pid := next[len(next)-1]
		next = next[:len(next)-1]
		for _, kid := range childrenOf(pid) {
			if s, err := readStat(kid); err == nil {
				out = append(out, s)
				next = append(next, kid)
			}
		}
	}
	return out
}

func childrenOf(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if kid, err := strconv.Atoi(f); err == nil {
				out = append(out, kid)
			}
		}
	}
	return out
}

// proportional is the process's share of the memory it maps: pages shared
// with n processes count 1/n. It is dearer than the resident size.
func proportional(pid int) (int64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err == nil
		}
	}
	return 0, false
}
