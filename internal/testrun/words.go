package testrun

import (
	"fmt"
	"strings"
)

// words splits a command like a POSIX shell does. The second result is true
// when the text holds something that only a shell can do: operators,
// redirection, substitution, globbing.
func words(text string) ([]string, bool, error) {
	var out []string
	var word strings.Builder
	open, shell := false, false
	rest := text
	for rest != "" {
		c := rest[0]
		rest = rest[1:]
		switch c {
		case ' ', '\t':
			if open {
				out = append(out, word.String())
				word.Reset()
				open = false
			}
		case '\'', '"':
			n, inner, special, err := quoted(c, rest)
			if err != nil {
				return nil, false, err
			}
			word.WriteString(inner)
			rest, open, shell = rest[n:], true, shell || special
		case '\\':
			if rest == "" {
				return nil, false, fmt.Errorf("%w: it ends in a backslash", ErrTestCommand)
			}
			word.WriteByte(rest[0])
			rest, open = rest[1:], true
		default:
			shell = shell || strings.IndexByte("|&;<>()$`*?[]#~!{}\n\r", c) >= 0
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	if len(out) == 0 {
		return nil, false, fmt.Errorf("%w: it is empty", ErrTestCommand)
	}
	return out, shell, nil
}

// quoted reads up to the closing quote and returns how many bytes it took.
func quoted(quote byte, text string) (n int, inner string, special bool, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			return i + 1, b.String(), special, nil
		case quote == '"' && c == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		default:
			special = special || quote == '"' && (c == '$' || c == '`')
			b.WriteByte(c)
		}
	}
	return 0, "", false, fmt.Errorf("%w: a quote is not closed", ErrTestCommand)
}
