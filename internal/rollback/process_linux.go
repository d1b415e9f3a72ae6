package rollback

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProcessStart is the moment a process began, in clock ticks since boot. With
// the pid it names a process for good: a pid that is used again has another
// start.
func ProcessStart(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command's name stands in parentheses and may hold blanks itself.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const start = 22 - 3 // field 22; the first after the name is field 3
	if len(fields) <= start {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)+2)
	}
	if bytes.ContainsAny(fields[0], "ZX") {
		return 0, fmt.Errorf("process %d has ended: %w", pid, os.ErrProcessDone)
	}
	return strconv.ParseUint(string(fields[start]), 10, 64)
}

// ProcessAlive reports whether the process with this pid and start still runs.
// A zombie does not.
func ProcessAlive(pid int, start uint64) bool {
	now, err := ProcessStart(pid)
	return err == nil && now == start
}

// bootID changes with every start of the machine, empty when unknown.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
