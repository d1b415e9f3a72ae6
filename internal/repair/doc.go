// Package repair is the source of candidates that needs no model: it changes
// a Python project's sources at syntax positions, one small edit at a time in
// order of suspicion, and proposes those edits under which every failing test
// turns green and no passing one breaks.
//
// The work is done by a harness, Python modules embedded here, that runs under
// the interpreter that runs the tests. It traces the tests once, ranks the
// statements by suspicion, generates edits lazily and best first, and judges
// them in forked children, so that neither the interpreter nor the test runner
// starts again for a candidate.
//
// A Fix is a proposal and no verdict: candidates run in a process that they
// could forge, so whoever takes a Fix puts it through the gates and the
// trusted test run. Candidates are mutated programs: they may loop, eat memory
// or delete files. The harness bounds time and memory and mends the tree it
// works on; keeping everything else safe is the Launcher's part.
package repair
