// Package sandbox runs a command that nobody trusts on a staged tree and
// reports what happened and how well it was isolated.
//
// At LevelFull and LevelUser process 1 of the command's namespaces is a fork of
// the running process that executes a list of system calls made ready by its
// parent (program, space): a fresh root with system folders, the staged tree as
// an overlay at the project's own path and granted paths, and nothing else.
// LevelFull adds the kernel's account, a cgroup. Nothing of such a run touches
// the disk, and the kernel ends all of it when process 1 ends.
//
// At LevelThin, on machines without namespaces, the running binary is executed
// again as the sandbox's init: main, and TestMain of every test binary that
// runs commands, call MaybeInit before anything else. It starts the command
// under Landlock, seccomp and resource limits, watches its memory and its number
// of processes, and ends only when no descendant is left, whatever that did. The
// same init looks after runsc at LevelVM.
//
// Nothing is downgraded in silence: Result and Report name the level, its
// features, and why it is not a better one. The conformance suite is in
// sandboxtest.
package sandbox
