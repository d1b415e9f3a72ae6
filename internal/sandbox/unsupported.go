//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Report says what this machine grants, for doctor.
type Report struct {
	Level    Level    `json:"level"`
	Features Features `json:"features"`
	Missing  []string `json:"missing,omitempty"`
}

func unsupported() error {
	return fmt.Errorf("%w: %s has no Landlock, seccomp or namespaces; run on Linux", ErrUnavailable, runtime.GOOS)
}

// MaybeInit does nothing: this system has no sandbox.
func MaybeInit() {}

// Run refuses: this system has no sandbox.
func Run(context.Context, Spec) (Result, error) { return Result{Level: LevelNone}, unsupported() }

// Detect reports LevelNone and what is missing.
func Detect(context.Context, Level) Report {
	return Report{Level: LevelNone, Missing: []string{unsupported().Error()}}
}

func startTime(int) (uint64, error) { return 0, unsupported() }

func sweepCgroups() {}
