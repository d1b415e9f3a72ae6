package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// testCommand is the value of --test.
type testCommand string

// UnmarshalText refuses a command that is none: a variable of the caller's that
// is empty would silently run other tests than were meant.
func (t *testCommand) UnmarshalText(text []byte) error {
	if strings.TrimSpace(string(text)) == "" {
		return errors.New("the test command is empty: leave --test out, and the project's own files decide")
	}
	*t = testCommand(text)
	return nil
}

// count is a number of things.
type count int

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("must be a number, 0 or more, not %q", text)
	}
	*c = count(n)
	return nil
}

// negative is a value that the parser would take for a flag of one letter.
var negative = regexp.MustCompile(`^-\.?\d`)

// negatives joins a negative number to the flag before it, so that the flag
// says what is wrong with it.
func negatives(args []string) []string {
	var out []string
	for i, arg := range args {
		switch last := len(out) - 1; {
		case arg == "--":
			return append(out, args[i:]...)
		case last >= 0 && negative.MatchString(arg) && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "="):
			out[last] += "=" + arg
		default:
			out = append(out, arg)
		}
	}
	return out
}
