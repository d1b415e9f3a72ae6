package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/archive"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

type runExportCmd struct {
	ID      string `arg:"" predictor:"run" help:"The run; its first characters are enough."`
	Out     string `short:"o" predictor:"file" placeholder:"FILE" help:"Write to this file instead of standard output."`
	NoTrees bool   `help:"Leave the project's files out; the log, diffs, model answers and test output stay in."`
	Common  common `embed:""`
}

// Help implements kong's help provider.
func (runExportCmd) Help() string {
	return `The archive holds every event of the run and everything that they name: the files of the project too, unless
--no-trees is given. 'nexus run import' brings it into another state folder, where it can be shown and replayed.

Examples:
  nexus run export 2qcab5 > run.tar
  nexus run export 2qcab5 --no-trees -o run.tar`
}

// Run writes the archive of a run.
func (c *runExportCmd) Run(ctx context.Context, e *env) error {
	if c.Out == "" && e.width > 0 {
		return errors.New("an archive is no text: write it to a file with 'nexus run export ID > run.tar' or --out FILE")
	}
	return c.Common.with(ctx, e, c.ID, func(_ *node.Node, b *bus.Bus, _ bus.Log, s run.State) error {
		if !s.Closed {
			return fmt.Errorf("run %s is not closed yet: export it when it is ('nexus run watch %s')", s.ID, s.ID[:8])
		}
		write := func(w io.Writer) error {
			head, err := archive.Export(ctx, b, s.ID, w, archive.Options{NoTrees: c.NoTrees})
			if err != nil {
				return err
			}
			fmt.Fprintf(e.err, "run %s: %d events, %d artifacts\n", head.Run, head.Events, head.Artifacts)
			if n := len(head.Missing); n > 0 {
				fmt.Fprintf(e.err, "%d artifacts that it names are gone from this state folder\n", n)
			}
			return nil
		}
		if c.Out == "" {
			return write(e.out)
		}
		return whole(c.Out, write)
	})
}

// whole writes a file that is there completely and durably, or not at all.
func whole(path string, write func(io.Writer) error) (err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return rollback.SyncFolders(filepath.Dir(path))
}

type runImportCmd struct {
	File   string `arg:"" predictor:"file" help:"An archive that 'nexus run export' wrote; - reads standard input."`
	Common common `embed:""`
}

// Help implements kong's help provider.
func (runImportCmd) Help() string {
	return `An imported run can be shown, compared and replayed like one's own. Nobody works on it, and no folder is touched.

Example:
  nexus run import run.tar && nexus replay 2qcab5`
}

// Run reads an archive.
func (c *runImportCmd) Run(ctx context.Context, e *env) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	return c.Common.bus(ctx, e, func(n *node.Node, b *bus.Bus) error {
		if _, attached := n.Attached(); attached {
			return errors.New("another nexus runs on this state folder: end it first, or name another folder with --state")
		}
		head, err := archive.Import(ctx, b, in)
		switch {
		case errors.Is(err, bus.ErrRunKnown):
			return fmt.Errorf("%w: 'nexus run show %s'", err, head.Run[:8])
		case err != nil:
			return err
		}
		fmt.Fprintf(e.out, "run %s: %d events, %d artifacts\n", head.Run, head.Events, head.Artifacts)
		return nil
	})
}
