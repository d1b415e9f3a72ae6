package sandbox

import "time"

// initMarker is the first argument of the re-executed binary.
const initMarker = "__sandbox-init"

// Descriptors of the init process. Extra files follow from fdExtra on.
const (
	fdControl = 3
	fdStdin   = 4
	fdOutput  = 5
	fdExtra   = 6
)

// order is the parent's one message to init. Init does nothing before it
// arrives, and a closed control socket means that the parent is gone.
type order struct {
	Path      string
	Argv, Env []string
	Dir       string
	ReadOnly  []string
	Writable  []string
	Extra     []int
	Level     Level
	Network   Network
	Limits    Limits
	// Doors is the number of cgroup control files, passed after the extra
	// files, through which the command enters its cgroups.
	Doors int
	// Parent and Group are the process and the group that must not be
	// signalled from inside.
	Parent, Group int
	// Counted says that RLIMIT_NPROC counts the command's processes alone.
	Counted bool
	// Probe reports the features without running anything.
	Probe bool
}

// stop asks init to end the tree at once.
type stop struct {
	Stop bool
}

// report is what init answers: first Ready (or Error), at last Done.
type report struct {
	Ready bool `json:",omitempty"`
	Done  bool `json:",omitempty"`
	// Error says why nothing was run; NotFound that the command is missing.
	Error    string `json:",omitempty"`
	NotFound bool   `json:",omitempty"`
	Features Features
	Exit     int
	Signal   int
	// Stopped is true when the command was still running when init was asked
	// to end it, so that a command which ended at the same moment keeps its
	// own status.
	Stopped  bool   `json:",omitempty"`
	Limit    string `json:",omitempty"`
	Outlived int    `json:",omitempty"`
	User     time.Duration
	System   time.Duration
	Peak     int64
	Procs    int
}
