package testrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Interpreters asks every interpreter that this machine offers to projects
// without one of their own, in order of preference, and hands each answer to
// do: the interpreter, or why it cannot be used.
func Interpreters(ctx context.Context, do func(path string, in *Interpreter, problem error)) error {
	return searching(func(s search) error {
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
			if in := s.interpreter(a); !seen[in.place()] {
				seen[in.place()] = true
				do(python, in, nil)
			}
		}
		return nil
	})
}

// place is the same for the names that one folder has for an interpreter, and
// not for two environments that share a program.
func (in *Interpreter) place() string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(in.Path))
	if err != nil {
		dir = filepath.Dir(in.Path)
	}
	return dir + " " + in.Version
}

// Toolchains asks what this machine offers to projects in Go and JavaScript,
// and hands do each of them, or why there is none: "go", then "node".
func Toolchains(ctx context.Context, do func(name string, tool *Tool, problem error)) error {
	return searching(func(s search) error {
		tool, err := s.goTool(ctx)
		do("go", tool, err)
		tool, err = s.askNode(ctx)
		do("node", tool, err)
		return ctx.Err()
	})
}

// searching calls do with the search of a project that has nothing.
func searching(do func(search) error) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("interpreters: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	empty, err := os.MkdirTemp("", "nexus-none-")
	if err != nil {
		return fmt.Errorf("interpreters: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(empty)) }()
	return do(search{root: empty, home: home, path: os.Getenv("PATH"), getenv: os.Getenv, self: self})
}
