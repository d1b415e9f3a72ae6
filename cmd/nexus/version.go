package main

import (
	"fmt"
	"runtime/debug"

	"nexuscore.dev/nexus/internal/run"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *env) error {
	fmt.Fprintln(e.out, versionLine())
	return nil
}

func versionLine() string { return fmt.Sprintf("nexus %s (decider %d)", version(), run.Decider) }

// version is the module's version, or the commit it was built from.
func version() string {
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
