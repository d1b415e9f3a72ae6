// Package sandboxtest is the conformance suite of the sandbox: hostile
// programs, what each tries, and what must come of it at every level. All of
// them are bounded (at most 300 processes, 200 MiB, one CPU for a second) and
// speak to the machine's own loopback at most, so that a level that fails does
// not take the machine with it.
//
// What a level cannot do is stated by its Features; a program that a level
// cannot stand is not run there, and the table says so.
package sandboxtest
