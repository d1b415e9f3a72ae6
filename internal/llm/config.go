package llm

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Environment variables of FromEnv. EnvAPIKeyFile names a file that holds the
// key, for those who keep keys out of the environment.
const (
	EnvBaseURL     = "NEXUS_MODEL_BASE_URL"
	EnvModel       = "NEXUS_MODEL"
	EnvAPIKey      = "NEXUS_MODEL_API_KEY"      //nolint:gosec // the name of a variable, not a key
	EnvAPIKeyFile  = "NEXUS_MODEL_API_KEY_FILE" //nolint:gosec // the name of a variable, not a key
	EnvTimeout     = "NEXUS_MODEL_TIMEOUT"
	EnvIdleTimeout = "NEXUS_MODEL_IDLE_TIMEOUT"
)

// Defaults of Config.
const (
	DefaultTimeout        = 10 * time.Minute
	DefaultIdle           = 2 * time.Minute
	DefaultMaxAnswerBytes = 4 << 20
)

// Secret is a value that no print, log or dump shows. The zero value is empty.
type Secret struct{ reveal func() string }

// NewSecret hides s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{func() string { return s }}
}

// Reveal returns the value itself.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// String is a mask.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return "***"
}

// GoString is a mask too.
func (s Secret) GoString() string { return s.String() }

// MarshalText is a mask, for JSON and other encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Config says which model to ask. Zero durations and sizes take the defaults.
type Config struct {
	// BaseURL ends in /v1 (any path is accepted, but no query and no user).
	BaseURL string
	Model   string
	// APIKey is optional: local servers want none.
	APIKey Secret
	// Timeout bounds a whole request, Idle the silence between two reads,
	// the wait for the first byte included.
	Timeout time.Duration
	Idle    time.Duration
	// MaxAnswerBytes bounds the text of an answer.
	MaxAnswerBytes int
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.MaxAnswerBytes == 0 {
		c.MaxAnswerBytes = DefaultMaxAnswerBytes
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return c
}

// Validate says in one sentence what to set when c cannot work.
func (c Config) Validate() error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.BaseURL == "":
		return fmt.Errorf("set %s to the server's address, such as http://127.0.0.1:11434/v1", EnvBaseURL)
	case err != nil:
		// The parse error quotes the address, which may hold a key.
		return fmt.Errorf("%s is no address: it should look like https://host/v1", EnvBaseURL)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("%s must begin with http:// or https:// and name a host, such as https://host/v1", EnvBaseURL)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("%s must hold no user, query or fragment; the key belongs in %s", EnvBaseURL, EnvAPIKey)
	case strings.HasSuffix(u.Path, "/chat/completions"):
		return fmt.Errorf("%s should end before /chat/completions, usually in /v1", EnvBaseURL)
	case c.Model == "":
		return fmt.Errorf("set %s to the name of the model", EnvModel)
	case strings.ContainsAny(c.APIKey.Reveal(), "\r\n\x00"):
		return fmt.Errorf("%s holds a line break", EnvAPIKey)
	case c.Timeout < 0, c.Idle < 0, c.MaxAnswerBytes < 0:
		return errors.New("the limits of a model must not be negative")
	}
	return nil
}

// FromEnv reads the configuration from the environment. The second result is
// false when no model is configured at all; a half-configured one is an error
// that says what to set.
func FromEnv(getenv func(string) string) (Config, bool, error) {
	c := Config{
		BaseURL: strings.TrimSpace(getenv(EnvBaseURL)),
		Model:   strings.TrimSpace(getenv(EnvModel)),
	}
	file := getenv(EnvAPIKeyFile)
	key := strings.TrimSpace(getenv(EnvAPIKey))
	if c.BaseURL == "" && c.Model == "" && key == "" && file == "" {
		return Config{}, false, nil
	}
	if file != "" && key == "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return Config{}, false, fmt.Errorf("%s: %w", EnvAPIKeyFile, err)
		}
		key = strings.TrimSpace(string(data))
	}
	c.APIKey = NewSecret(key)
	var err error
	if c.Timeout, err = duration(getenv, EnvTimeout); err != nil {
		return Config{}, false, err
	}
	if c.Idle, err = duration(getenv, EnvIdleTimeout); err != nil {
		return Config{}, false, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, false, err
	}
	return c.withDefaults(), true, nil
}

func duration(getenv func(string) string, name string) (time.Duration, error) {
	text := strings.TrimSpace(getenv(name))
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q is no positive duration, such as 90s", name, text)
	}
	return d, nil
}
