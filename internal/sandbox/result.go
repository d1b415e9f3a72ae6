package sandbox

import (
	"fmt"
	"time"
)

// Features states which mechanisms were really in force.
type Features struct {
	// Landlock is the kernel's Landlock ABI, 0 when it has none.
	Landlock int `json:"landlock"`
	// Seccomp is true when the deny list was installed.
	Seccomp bool `json:"seccomp"`
	// Namespaces lists the kinds the command had to itself.
	Namespaces []string `json:"namespaces,omitempty"`
	// Masked is true when home, temporary and runtime folders were hidden.
	Masked bool `json:"masked,omitempty"`
	// Cgroup is v1 or v2 when the tree was accounted by the kernel; else the
	// watchdog over /proc bounds memory and processes.
	Cgroup string `json:"cgroup,omitempty"`
	// Signals is true when the command cannot signal processes outside.
	Signals bool `json:"signals,omitempty"`
	// Network says what denies the network: namespace, seccomp, landlock
	// (TCP only), or open.
	Network string `json:"network"`
}

// Usage is what the whole process tree consumed.
type Usage struct {
	User   time.Duration `json:"user"`
	System time.Duration `json:"system"`
	// PeakBytes is the largest resident size of the tree that was seen.
	PeakBytes int64 `json:"peak_bytes"`
	// PeakProcesses is the largest number of processes and threads seen.
	PeakProcesses int `json:"peak_processes"`
}

// Result reports one run.
type Result struct {
	// Level is the isolation that the run really had, Why the reason that it
	// was not a better one.
	Level    Level
	Why      string
	Features Features
	// Exit is the exit status, -1 when a signal ended the command.
	Exit int
	// Signal names the signal that ended the command, such as SIGKILL.
	Signal string
	// Timeout is true when the wall clock ended the run.
	Timeout bool
	// Limit names the limit that ended the run, empty when none did.
	Limit string
	// Output is stdout and stderr in the order they were written.
	Output Output
	Usage  Usage
	// Outlived counts processes that were still alive when the command ended.
	Outlived int
	Seconds  float64
}

// Output is the bounded record of what a command printed.
type Output struct {
	Head, Tail []byte
	// Total is the number of bytes read, Dropped of those the number in
	// neither Head nor Tail.
	Total, Dropped int64
}

// Bytes joins head and tail, with a line that counts what was dropped.
func (o Output) Bytes() []byte {
	if o.Dropped == 0 {
		return append(append([]byte{}, o.Head...), o.Tail...)
	}
	mark := fmt.Sprintf("\n[... %d bytes dropped ...]\n", o.Dropped)
	out := make([]byte, 0, len(o.Head)+len(mark)+len(o.Tail))
	out = append(out, o.Head...)
	out = append(out, mark...)
	return append(out, o.Tail...)
}
