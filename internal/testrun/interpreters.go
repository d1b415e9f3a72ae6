package testrun

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Interpreters asks every interpreter that this machine offers to projects
// without one of their own, in order of preference, and hands each answer to
// do: the interpreter, or why it cannot be used.
func Interpreters(ctx context.Context, do func(path string, in *Interpreter, problem error)) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("interpreters: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	empty, err := os.MkdirTemp("", "nexus-none-") // a project that has nothing
	if err != nil {
		return fmt.Errorf("interpreters: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(empty)) }()
	s := search{root: empty, home: home, path: os.Getenv("PATH"), getenv: os.Getenv, self: self}
	seen := map[string]bool{}
	for _, python := range s.candidates() {
		a, err := s.probe(ctx, python, nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && a.tooOld():
			err = errTooOld
		}
		if err != nil {
			do(python, nil, err)
			continue
		}
		if in := s.interpreter(a); !seen[in.Path] {
			seen[in.Path] = true
			do(python, in, nil)
		}
	}
	return nil
}
