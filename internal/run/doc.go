// Package run is the pure core of NexusCore. A run is a log of events; Fold
// turns the log into a State, Decide turns a State into the commands that
// must be appended next, and Judge turns evidence into a verdict. Nothing in
// here reads a file, a socket, a clock or a random number: time and ids come
// in through events, so a replay of a log always reaches the same decisions.
package run

// Decider is the version of Decide. Every event names the version that made
// it, so that a verification under another one reports differing decisions
// and not corruption.
const Decider = 1
