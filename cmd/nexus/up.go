package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/gateway"
	"nexuscore.dev/nexus/internal/node"
)

type upCmd struct {
	Port   int      `default:"0" placeholder:"PORT" help:"Port of the embedded server on loopback; 0 picks a free one."`
	Listen string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Host and port of the HTTP gateway; port 0 picks one, 'off' serves none (default: ${default}). Anything but loopback needs a token in NEXUS_GATEWAY_TOKEN."`
	Root   []string `sep:"none" type:"existingdir" predictor:"folder" placeholder:"DIR" help:"Folder below which the gateway heals projects (repeatable); default: the current folder."`
	Policy string   `predictor:"file" placeholder:"FILE" env:"NEXUS_POLICY" help:"Rules file for what may be delivered without a person, see 'nexus policy'; default: the default rules."`
	Common common   `embed:""`
}

// Help adds an example to the command's help.
func (upCmd) Help() string {
	return `Example:
  nexus up --port 4222 --listen 127.0.0.1:8080 --root ~/projects
Then any NATS client may publish a task on nexus.task.local.heal. The address is printed; with its password it lies in
owner.json in the state folder, which only you can read.`
}

// Run serves until a signal comes.
func (c *upCmd) Run(ctx context.Context, e *env) (err error) {
	ctx, stop := signal.NotifyContext(ctx, node.Signals()...)
	defer stop()
	cfg, err := c.Common.config(e)
	if err != nil {
		return err
	}
	cfg.Port = c.Port
	if cfg.Policy, _, err = node.Policy(c.Policy, append(c.Root, cfg.Rules.Roots...)...); err != nil {
		return err
	}
	token := os.Getenv("NEXUS_GATEWAY_TOKEN")
	if c.Listen != "off" {
		if err := gateway.CheckListen(c.Listen, token); err != nil {
			return err
		}
	}
	cfg.Service = true
	n, err := lead(ctx, e, cfg)
	if err != nil || n == nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := n.Start(ctx, "", true); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	address := "off"
	if c.Listen != "off" {
		ln, serve, err := c.gateway(ctx, n, token, cfg.Log)
		if err != nil {
			return err
		}
		address = "http://" + ln.Addr().String()
		g.Go(serve)
	}
	fmt.Fprintf(e.out, "nexus is up\n  bus      %s\n  gateway  %s\n  state    %s\n  stop     Ctrl-C\n", listening(n), address, cfg.State)
	g.Go(func() error {
		n.Bus().Bursts(ctx, func(b bus.Burst) { fmt.Fprintln(e.out, "!", burstText(b)) })
		return nil
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-n.Failed():
			return n.Failure()
		}
	})
	err = g.Wait()
	fmt.Fprintln(e.out, "stopping: what is in hand is given back")
	return err
}

// lead opens the bus as its owner. It waits while a heal runs the bus, and
// returns nil when it is stopped meanwhile; another service is an error.
func lead(ctx context.Context, e *env, cfg node.Config) (*node.Node, error) {
	for told := 0; ; {
		n, err := node.Open(ctx, cfg)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return nil, err
		}
		pid, attached := n.Attached()
		if !attached {
			return n, nil
		}
		if n.Served() {
			return nil, errors.Join(fmt.Errorf("process %d is a nexus service on %s already", pid, cfg.State), n.Close())
		}
		if told != pid {
			fmt.Fprintf(e.out, "process %d runs the bus on %s for its heal; this service begins when it has ended (Ctrl-C gives up)\n", pid, cfg.State)
			told = pid
		}
		select {
		case <-ctx.Done():
		case <-n.Bus().Lost():
		}
		if err := n.Close(); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
}

// burstText says what a person should look at.
func burstText(b bus.Burst) string {
	return fmt.Sprintf("%s: %d runs failed within %s in a way that nothing classifies, the newest %s: %s; 'nexus dead ls' lists them",
		b.At.Local().Format(time.DateTime), b.Count, time.Duration(b.Seconds)*time.Second, clean(b.Run), clean(b.Reason))
}

// listening says where other clients reach the bus.
func listening(n *node.Node) string {
	if addr := n.Addr(); addr != "" {
		return addr + " (role local; its password is in owner.json)"
	}
	return bus.Hosts(n.URL()) + " (external)"
}

// gateway opens the HTTP gateway of this process.
func (c *upCmd) gateway(ctx context.Context, n *node.Node, token string, log zerolog.Logger) (net.Listener, func() error, error) {
	roots := c.Root
	if len(roots) == 0 {
		dir, err := os.Getwd()
		if err != nil {
			return nil, nil, err
		}
		roots = []string{dir}
	}
	s, err := gateway.New(gateway.Config{Bus: n.Bus(), Roots: roots, Token: token, Log: log})
	if err != nil {
		return nil, nil, err
	}
	ln, err := gateway.Listen(ctx, c.Listen, token)
	if err != nil {
		return nil, nil, err
	}
	return ln, func() error { return s.Run(ctx, ln) }, nil
}
