package main

import (
	"github.com/rs/zerolog"

	"nexuscore.dev/nexus/internal/node"
)

// common are the flags of every command that needs a bus.
type common struct {
	NATS     string `name:"nats" placeholder:"URL" env:"NEXUS_NATS" help:"External NATS server; default: an embedded one."`
	Replicas int    `default:"1" env:"NEXUS_REPLICAS" help:"Replicas of the streams on an external cluster."`
	State    string `predictor:"folder" placeholder:"DIR" env:"NEXUS_STATE" help:"State folder; default: $$XDG_STATE_HOME/nexus."`
}

// config is the configuration of a process with these flags.
func (c common) config(e *env) (node.Config, error) {
	cfg, err := node.FromEnv(c.State, logger(e))
	cfg.URL, cfg.Replicas = c.NATS, c.Replicas
	return cfg, err
}

// logger writes to standard error: warnings, or everything with --verbose.
func logger(e *env) zerolog.Logger {
	level := zerolog.ErrorLevel
	if e.verbose {
		level = zerolog.DebugLevel
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: e.err, NoColor: true}).Level(level).With().Timestamp().Logger()
}
