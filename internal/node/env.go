package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/rs/zerolog"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
)

// The environment variables of a process.
const (
	envDebugMax  = "NEXUS_DEBUG_MAX_RETRIES"
	envASTFails  = "NEXUS_AST_FAIL_LIMIT"
	envReviewMax = "NEXUS_REVIEW_MAX_RETRIES"
	envScale     = "NEXUS_DELAY_SCALE"
	envRoots     = "NEXUS_ALLOWED_ROOTS"
	envHome      = "NEXUS_HOME_NAME"
)

// FromEnv is the configuration of a process: the given state folder (empty
// means $XDG_STATE_HOME/nexus), and everything else from the environment. An
// error says which variable to set how.
func FromEnv(state string, log zerolog.Logger) (Config, error) {
	cfg := Config{Log: log}
	var err error
	if cfg.State, err = StateDir(state); err != nil {
		return cfg, err
	}
	path, err := rollback.ClaimsPath()
	if err != nil {
		return cfg, err
	}
	cfg.Claims = rollback.Claims{Path: path}
	if cfg.Rules, err = rules(cfg.State); err != nil {
		return cfg, err
	}
	if cfg.Model, err = model(cfg.State); err != nil {
		return cfg, err
	}
	cfg.Rules.Sources = []run.Source{run.SourceEngine}
	if cfg.Model != nil {
		cfg.Rules.Sources = []run.Source{run.SourceModel, run.SourceEngine}
	}
	return cfg, nil
}

// homeFile names a state folder's home, and is as old as the folder.
const homeFile = "home"

// StateDir is the folder that a flag names, else $XDG_STATE_HOME/nexus, else
// ~/.local/state/nexus. It is made, and links in its path are followed, so that
// two spellings are one folder.
func StateDir(flag string) (string, error) {
	dir, err := StatePath(flag)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", bus.FullDisk(filepath.Dir(dir), fmt.Errorf("state folder: %w", err))
	}
	return filepath.EvalSymlinks(dir)
}

// StatePath is the path of StateDir as it is written; nothing is made.
func StatePath(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nexus"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home folder: name a state folder with --state")
	}
	return filepath.Join(home, ".local", "state", "nexus"), nil
}

// rules reads the limits and the allowed folders from the environment.
func rules(state string) (Rules, error) {
	r := Rules{Limits: run.DefaultLimits()}
	for name, dst := range map[string]*int{
		envDebugMax: &r.Limits.DebugAttempts, envASTFails: &r.Limits.ASTFails, envReviewMax: &r.Limits.ReviewRounds,
	} {
		if v := os.Getenv(name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return r, fmt.Errorf("%s must be a whole number, not %q", name, v)
			}
			*dst = n
		}
	}
	if v := os.Getenv(envScale); v != "" {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return r, fmt.Errorf("%s must be a number, not %q", envScale, v)
		}
		r.Limits.DelayScale = f
	}
	if err := r.Limits.Validate(); err != nil {
		return r, fmt.Errorf("the limits in the environment (NEXUS_…) are wrong: %w", err)
	}
	if v := os.Getenv(envRoots); v != "" {
		r.Roots = filepath.SplitList(v)
	}
	var err error
	r.State = state
	r.Home, err = homeName(state)
	return r, err
}

var notToken = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// homeName names this host and state folder as a token of a subject: the
// journals of a project lie in the state folder, so only a process with the
// same one may write the project. The name stays when the host is renamed.
func homeName(state string) (string, error) {
	if name := os.Getenv(envHome); name != "" {
		if notToken.MatchString(name) {
			return "", fmt.Errorf("%s may hold letters, digits, - and _ only, not %q", envHome, name)
		}
		return name, nil
	}
	file := filepath.Join(state, homeFile)
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("state folder: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "home"
	}
	host = strings.Trim(notToken.ReplaceAllString(host, "-"), "-")
	sum := sha256.Sum256([]byte(state))
	name := host[:min(len(host), 40)] + "-" + hex.EncodeToString(sum[:4])
	if err := renameio.WriteFile(file, []byte(name), 0o600); err != nil {
		return "", bus.FullDisk(state, fmt.Errorf("state folder: %w", err))
	}
	return name, nil
}

// model is the configured model, or nil.
func model(state string) (*agents.Model, error) {
	cfg, ok, err := llm.FromEnv(os.Getenv)
	if err != nil || !ok {
		return nil, err
	}
	client, err := llm.New(cfg)
	if err != nil {
		return nil, err
	}
	m := &agents.Model{Client: client, Name: client.Name(), Recordings: filepath.Join(state, "recordings")}
	if key := cfg.APIKey.Reveal(); key != "" {
		m.Secrets = append(m.Secrets, key)
	}
	return m, nil
}
