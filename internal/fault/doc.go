// Package fault names the moments at which a crash matters. A drill builds
// the command with the nexusfault tag and kills a child process at each one;
// every other build compiles the points to nothing.
package fault
