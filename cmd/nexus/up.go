package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"nexuscore.dev/nexus/internal/node"
)

type upCmd struct {
	Port   int    `default:"0" placeholder:"PORT" help:"Port of the embedded server on loopback; 0 picks a free one."`
	Common common `embed:""`
}

// Help adds an example to the command's help.
func (upCmd) Help() string {
	return `Example:
  nexus up --port 4222
Then any NATS client may publish a task on nexus.task.local.heal; the address with its password is printed and lies in
the state folder (owner.json), which only you can read.`
}

// Run serves until a signal comes.
func (c *upCmd) Run(ctx context.Context, e *env) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	cfg.Port = c.Port
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if pid, attached := n.Attached(); attached {
		return fmt.Errorf("process %d runs the bus on %s already", pid, cfg.State)
	}
	if err := n.Start(ctx, "", true); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "nexus is up\n  bus    %s\n  state  %s\n  stop   Ctrl-C\n", n.URL(), cfg.State)
	select {
	case <-ctx.Done():
		fmt.Fprintln(e.out, "stopping: what is in hand is given back")
		return nil
	case <-n.Failed():
		return errors.New("conductor or workers have stopped")
	}
}
