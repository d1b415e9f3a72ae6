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
	// Masked is true when the command saw system folders, the tree and granted
	// paths, and nothing else.
	Masked bool `json:"masked,omitempty"`
	// Tree says how the staged tree was mounted: overlay (nothing the command
	// writes reaches it), bind (it is written, at the path of the project), or
	// nothing (it is written, at its own path).
	Tree string `json:"tree,omitempty"`
	// ReadOnlyOver is true when Spec.ReadOnlyOver was in force.
	ReadOnlyOver bool `json:"read_only_over,omitempty"`
	// User is nobody when the command's user owns nothing on the machine, and
	// caller when it is the caller's own.
	User string `json:"user,omitempty"`
	// Bounds says for each limit who holds it, such as memory: cgroup v1.
	Bounds map[string]string `json:"bounds,omitempty"`
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
	// TreeBytes and TreeFiles are what the run's own file system held at the
	// end: what was added to the tree, to home and to temporary folders. Both
	// are 0 at LevelThin, where nothing counts them.
	TreeBytes int64 `json:"tree_bytes"`
	TreeFiles int64 `json:"tree_files"`
	// OutputBytes is what the command printed.
	OutputBytes int64 `json:"output_bytes"`
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
