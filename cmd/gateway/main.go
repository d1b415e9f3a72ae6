// Command gateway serves the HTTP API of a running bus.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/gateway"
	"nexuscore.dev/nexus/internal/node"
)

const description = `Serves the HTTP API of a running bus until Ctrl-C: POST /v1/tasks, GET /v1/runs, and what
GET /schemas/openapi.yaml describes. It serves loopback only, unless a bearer token is set: by --token-file, or in the
environment variable NEXUS_GATEWAY_TOKEN. The token travels as it is, so put TLS in front of anything but loopback.

Examples:
  gateway --root /srv/projects
  gateway --root /srv/projects --nats nats://127.0.0.1:4222
  gateway --root /srv/projects --listen 0.0.0.0:8080 --token-file /etc/nexus/token

  curl -H 'Content-Type: application/json' -d '{"kind":"heal","dir":"/srv/projects/calc"}' http://127.0.0.1:8080/v1/tasks`

// envToken names the variable that holds the bearer token.
const envToken = "NEXUS_GATEWAY_TOKEN"

type cli struct {
	Root      []string `sep:"none" placeholder:"DIR" help:"Folder below which projects may be healed; may be repeated. Needed."`
	Listen    string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Host and port to serve; port 0 picks one (default: ${default})."`
	NATS      string   `name:"nats" xor:"bus" placeholder:"URL" help:"The NATS server, credentials included ($$NEXUS_NATS)."`
	State     string   `xor:"bus" placeholder:"DIR" help:"State folder of a running nexus on this machine; default: $$XDG_STATE_HOME/nexus ($$NEXUS_STATE)."`
	TokenFile string   `placeholder:"FILE" help:"File that holds the bearer token; goes before NEXUS_GATEWAY_TOKEN."`
	Quiet     bool     `short:"q" help:"Log warnings only, no line for every request."`

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), node.Signals()...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is the command from its arguments to its exit status.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	var c cli
	return node.Execute("gateway", description, &c, func() error { return c.serve(ctx, out, errs) }, args, out, errs)
}

// serve runs the gateway until ctx ends or the bus is gone.
func (c *cli) serve(ctx context.Context, out, errs io.Writer) error {
	level := zerolog.InfoLevel
	if c.Quiet {
		level = zerolog.WarnLevel
	}
	log := zerolog.New(errs).Level(level).With().Timestamp().Logger()
	if len(c.Root) == 0 {
		return errors.New("name the folder below which projects may be healed, as in 'gateway --root /srv/projects'")
	}
	roots, err := folders(c.Root)
	if err != nil {
		return err
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	switch err := gateway.CheckListen(c.Listen, token); {
	case errors.Is(err, gateway.ErrExposed):
		return fmt.Errorf("%w: set a token with --token-file or %s, or --listen on 127.0.0.1", err, envToken)
	case err != nil:
		return err
	}
	b, err := c.connect(ctx, log)
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := gateway.New(gateway.Config{Bus: b, Roots: roots, Token: token, Log: log})
	if err != nil {
		return err
	}
	ln, err := gateway.Listen(ctx, c.Listen, token)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "gateway: serving http://%s\n", ln.Addr())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(ctx, ln) })
	g.Go(func() error {
		select {
		case <-b.Lost():
			return bus.ErrLost
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// connect reaches the given server, or the process that owns the state folder.
// A flag goes before both variables of the environment.
func (c *cli) connect(ctx context.Context, log zerolog.Logger) (*bus.Bus, error) {
	url, state := c.NATS, c.State
	if url == "" && state == "" {
		url, state = os.Getenv("NEXUS_NATS"), os.Getenv("NEXUS_STATE")
	}
	if url != "" {
		return bus.Connect(ctx, url, "nexus-gateway", log)
	}
	dir, err := node.StatePath(state)
	if err != nil {
		return nil, err
	}
	owner, err := bus.FindOwner(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no nexus runs on the state folder %s: start 'nexus up' first, or name a server with --nats", dir)
	}
	if err != nil {
		return nil, err
	}
	b, err := bus.Connect(ctx, owner.URL, "nexus-gateway", log)
	if err != nil {
		return nil, fmt.Errorf("process %d, which ran the bus on %s, does not answer (start 'nexus up' again): %w", owner.PID, dir, err)
	}
	return b, nil
}

// folders makes the roots absolute and refuses what is no folder.
func folders(given []string) ([]string, error) {
	roots := make([]string, 0, len(given))
	for _, name := range given {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("--root: %w", err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("--root: %s is no folder", dir)
		}
		roots = append(roots, dir)
	}
	return roots, nil
}
