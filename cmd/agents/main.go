// Command agents runs any set of workers against a NATS server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
)

type cli struct {
	NATS      string   `name:"nats" placeholder:"URL" env:"NEXUS_NATS" help:"The NATS server, credentials included. Needed."`
	Replicas  int      `default:"1" env:"NEXUS_REPLICAS" help:"Replicas of the streams."`
	State     string   `placeholder:"DIR" env:"NEXUS_STATE" help:"Folder for journals, patches and reports; default: $$XDG_STATE_HOME/nexus."`
	Only      []string `placeholder:"NAME" help:"Run only these workers (comma-separated); default: all of the list above."`
	Policy    string   `placeholder:"FILE" env:"NEXUS_POLICY" help:"Rules file of the worker policy, see 'nexus policy'; default: the default rules."`
	Conductor bool     `default:"true" negatable:"" help:"Run a conductor and the sweeper as well."`
	Verbose   bool     `short:"v" help:"Log what goes on inside."`

	Version kong.VersionFlag `help:"Print the version."`
}

func description() string {
	names := make([]string, 0, len(agents.Names()))
	for _, n := range agents.Names() {
		names = append(names, string(n))
	}
	return `Runs workers of NexusCore against a NATS server until Ctrl-C. What is in hand then is given back at once.

Workers: ` + strings.Join(names, ", ") + `

guardian and policy serve every host; the others serve the projects of this host and state folder.

Examples:
  agents --nats nats://127.0.0.1:4222
  agents --nats nats://127.0.0.1:4222 --only debugger,test --no-conductor`
}

func main() {
	sandbox.MaybeInit()
	ctx, stop := signal.NotifyContext(context.Background(), node.Signals()...)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is the command from its arguments to its exit status.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	var c cli
	return node.Execute("agents", description(), &c, func() error { return c.run(ctx, out, errs) }, args, out, errs)
}

func (c *cli) run(ctx context.Context, out, errs io.Writer) (err error) {
	if c.NATS == "" {
		return errors.New("name the NATS server, as in 'agents --nats nats://127.0.0.1:4222' or in NEXUS_NATS; " +
			"'nexus up' runs server and workers in one process")
	}
	level := zerolog.WarnLevel
	if c.Verbose {
		level = zerolog.DebugLevel
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: errs, NoColor: true}).Level(level).With().Timestamp().Logger()
	cfg, err := node.FromEnv(c.State, log)
	if err != nil {
		return err
	}
	cfg.URL, cfg.Replicas, cfg.NoConductor = c.NATS, c.Replicas, !c.Conductor
	if cfg.Policy, _, err = node.Policy(c.Policy, cfg.Rules.Roots...); err != nil {
		return err
	}
	for _, name := range c.Only {
		if !slices.Contains(agents.Names(), run.Worker(name)) {
			return fmt.Errorf("no worker %q; see the list in 'agents --help'", name)
		}
		cfg.Workers = append(cfg.Workers, run.Worker(name))
	}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := n.Start(ctx, "", true); err != nil {
		return err
	}
	fmt.Fprintf(out, "agents: working on %s as host %s\n", bus.Hosts(c.NATS), cfg.Rules.Home)
	select {
	case <-ctx.Done():
		return nil
	case <-n.Failed():
		return n.Failure()
	}
}
