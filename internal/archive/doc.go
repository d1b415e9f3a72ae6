// Package archive carries a run from one bus to another as a tar file, so
// that a bug report can hold everything that its decisions were made of.
//
// An archive holds nexus-run/run.json, the body of each event under
// nexus-run/events/, and each artifact under nexus-run/artifacts/ by the
// SHA-256 of its content. An imported run can be shown and replayed; nobody
// works on it.
package archive
