package node

import (
	"fmt"
	"runtime/debug"

	"nexuscore.dev/nexus/internal/run"
)

// VersionLine is what a command of that name answers to --version.
func VersionLine(command string) string {
	return fmt.Sprintf("%s %s (decider %d)", command, Version(), run.Decider)
}

// Version is the module's version, or the commit it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = "devel " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return v
}
