package sandbox

import (
	"context"
	"fmt"
	"os"
)

// EnvRunsc names gVisor's runsc, which LevelVM needs.
const EnvRunsc = "NEXUS_SANDBOX_RUNSC"

// runsc finds the configured program.
func runsc() (string, error) {
	path := os.Getenv(EnvRunsc)
	if path == "" {
		return "", fmt.Errorf("%w: level vm needs gVisor: set %s to the path of runsc", ErrUnavailable, EnvRunsc)
	}
	if err := executable(path); err != nil {
		return "", fmt.Errorf("%w: level vm: %s=%s: %w", ErrUnavailable, EnvRunsc, path, err)
	}
	return path, nil
}

func runVM(context.Context, Spec) (Result, error) {
	if _, err := runsc(); err != nil {
		return Result{}, err
	}
	return Result{}, fmt.Errorf("%w: vm", ErrUnavailable)
}

func probeVM() (Features, error) {
	_, err := runsc()
	return Features{}, err
}
