// Package sandbox runs a command that nobody trusts on a staged tree and
// reports what happened and how well it was isolated.
//
// The running binary is executed again as the sandbox's init: main, and
// TestMain of every test binary that runs commands, call MaybeInit before
// anything else. The init process sets the isolation up, starts the command,
// watches its memory and its number of processes, and ends only when no
// descendant of the command is left, whatever that command did.
//
// Two levels exist. LevelUser puts the command into user, mount, process,
// network, IPC and UTS namespaces of its own, hides home, temporary and
// runtime folders, and adds everything that LevelThin has. LevelThin is
// Landlock, a seccomp deny list, resource limits, no capabilities, and a
// child subreaper that ends the whole process tree. Nothing is downgraded in
// silence: Result and Report name the level, its features, and why it is not
// a better one.
package sandbox
