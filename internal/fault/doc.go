// Package fault names the moments at which a crash matters. A drill builds
// the command with the nexusfault tag and kills a child process at each one;
// every other build compiles the points to nothing.
package fault

// Environment variables that a drill sets for its child process.
const (
	// EnvKill is "name" or "name:n": the process gets SIGKILL when it
	// reaches that point for the n-th time, counted from 1 (the default).
	EnvKill = "NEXUS_FAULT_KILL"
	// EnvList is a file to which the name of every point reached is appended.
	EnvList = "NEXUS_FAULT_LIST"
)
