package main

import (
	"fmt"
	"os"
	"strings"

	"nexuscore.dev/nexus/internal/gateway"
)

// token returns the bearer token, or "" when none is set. One that is named
// but empty or too short is an error: nobody means to run without it.
func (c *cli) token() (string, error) {
	text, set := os.LookupEnv(envToken)
	from := envToken
	if c.TokenFile != "" {
		data, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		text, set, from = string(data), true, c.TokenFile
	}
	text = strings.TrimSpace(text)
	switch {
	case !set:
		return "", nil
	case len(text) < gateway.MinToken:
		return "", fmt.Errorf("the token in %s has %d characters, at least %d are needed", from, len(text), gateway.MinToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("the token in %s must be printable ASCII without spaces", from)
	}
	return text, nil
}
