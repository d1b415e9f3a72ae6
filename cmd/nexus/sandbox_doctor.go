package main

import (
	"cmp"
	"fmt"
	"strings"

	"nexuscore.dev/nexus/internal/sandbox"
)

// describeSandbox prints what the sandbox does here, one line for each
// feature, and then what is missing.
func describeSandbox(e *env, rep sandbox.Report) {
	line := func(name, format string, v ...any) {
		fmt.Fprintf(e.out, "             %-10s %s\n", name, fold(fmt.Sprintf(format, v...), 24, e.width))
	}
	if f := rep.Features; rep.Level != sandbox.LevelNone {
		line("namespaces", "%s", cmp.Or(strings.Join(f.Namespaces, ", "), "none"))
		line("tree", "%s", map[string]string{
			"overlay": "at the project's own path, as an overlay in memory: nothing written reaches the disk",
			"bind":    "at the project's own path; what is written reaches the staged copy",
			"nothing": "a staged copy at a path of its own",
		}[f.Tree])
		line("read-only", "%s", yes(f.ReadOnlyOver, "tests and configuration over it", "tests and configuration are compared, not held"))
		line("files", "%s", yes(f.Masked, "system folders, the tree and granted paths; nothing else exists", "others are refused by Landlock, their names are visible"))
		line("user", "%s", map[string]string{"nobody": "owns nothing on this machine", "caller": "the caller's own, without any capability"}[f.User])
		line("network", "denied by %s", f.Network)
		line("signals", "%s", yes(f.Signals, "stay inside", "refused for the parent only"))
		line("landlock", "ABI %d", f.Landlock)
		line("seccomp", "%s", yes(f.Seccomp, "deny list", "none"))
		for _, name := range []string{"memory", "processes", "cpu", "filesize", "tree", "inodes", "output", "wall"} {
			line(name, "bounded by %s", f.Bounds[name])
		}
	}
	for _, m := range rep.Missing {
		fmt.Fprintf(e.out, "             %s\n", fold(m, 13, e.width))
	}
}

func yes(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
