package llmtest

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Kind is the verb of a Step.
type Kind string

// The verbs; see the package documentation.
const (
	Answer Kind = "answer"
	Echo   Kind = "echo"
	Status Kind = "status"
	Cut    Kind = "cut"
	Hang   Kind = "hang"
	Error  Kind = "error"
	Raw    Kind = "raw"
	JSON   Kind = "json"
)

// Values of Step.After.
const (
	AfterAll  = -1 // the whole text comes first
	AfterNone = -2 // not even the headers come
)

// Forever is the value of Step.Times for a step that never ends.
const Forever = -1

// Step is what happens to one request, or to Times of them.
type Step struct {
	Kind Kind
	Text string
	// Status and Header are for the kind Status.
	Status int
	Header http.Header
	// Times is how many requests the step answers; 0 means 1.
	Times int
	// Chunks is the number of events, 0 for 16 bytes each.
	Chunks int
	// After is the number of chunks before Cut, Hang and Error.
	After int
	// Finish is the stop reason, empty for none.
	Finish string
	// NoDone leaves [DONE] out.
	NoDone bool
	// If, when not empty, is a text that the request must contain.
	If string
}

// Say is an Answer step.
func Say(text string) Step { return Step{Kind: Answer, Text: text, Finish: "stop"} }

// Refuse is a Status step; headers are pairs of names and values.
func Refuse(status int, body string, headers ...string) Step {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return Step{Kind: Status, Status: status, Text: body, Header: h}
}

// Parse reads a script; an error names the line.
func Parse(script string) ([]Step, error) {
	var steps []Step
	for i, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("script line %d: %w", i+1, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func parseStep(line string) (Step, error) {
	verb, rest, _ := strings.Cut(line, " ")
	s := Step{Kind: Kind(verb), Finish: "stop", After: 1, Header: http.Header{}}
	switch s.Kind {
	case Answer, Echo, Cut, Hang, Error, Raw, JSON:
	case Status:
		number, more, _ := strings.Cut(strings.TrimSpace(rest), " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 200 || n > 599 {
			return Step{}, fmt.Errorf("%q is no HTTP status", number)
		}
		s.Status, rest = n, more
	default:
		return Step{}, fmt.Errorf("unknown verb %q", verb)
	}
	rest, err := s.options(strings.TrimSpace(rest))
	if err != nil {
		return Step{}, err
	}
	s.Text, err = text(rest)
	return s, err
}

// options takes the name=value pairs off the front.
func (s *Step) options(rest string) (string, error) {
	for {
		name, more, found := strings.Cut(rest, "=")
		if !found || name == "" || strings.ContainsAny(name, " \"`@") {
			return rest, nil
		}
		value, more, err := word(more)
		if err != nil {
			return "", err
		}
		if err := s.set(name, value); err != nil {
			return "", err
		}
		rest = strings.TrimSpace(more)
	}
}

// word takes a quoted string or everything up to a blank off the front.
func word(s string) (value, rest string, err error) {
	if quoted, err := strconv.QuotedPrefix(s); err == nil {
		value, err := strconv.Unquote(quoted)
		return value, s[len(quoted):], err
	}
	value, rest, _ = strings.Cut(s, " ")
	return value, rest, nil
}

func (s *Step) set(name, value string) (err error) {
	switch name {
	case "times":
		s.Times, err = number(value, "*", Forever)
	case "chunks":
		s.Chunks, err = number(value, "", 0)
	case "after":
		if value == "none" {
			s.After = AfterNone
			return nil
		}
		s.After, err = number(value, "all", AfterAll)
	case "finish":
		s.Finish = value
		if value == "none" {
			s.Finish = ""
		}
	case "done":
		s.NoDone = value == "no"
	case "if":
		s.If = value
	default:
		if s.Kind != Status || name[0] < 'A' || name[0] > 'Z' {
			return fmt.Errorf("unknown option %q", name)
		}
		s.Header.Add(name, value)
	}
	return err
}

func number(value, special string, meaning int) (int, error) {
	if special != "" && value == special {
		return meaning, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number", value)
	}
	return n, nil
}

func text(rest string) (string, error) {
	switch {
	case strings.HasPrefix(rest, "@"):
		data, err := os.ReadFile(rest[1:])
		return string(data), err
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "`"):
		return strconv.Unquote(rest)
	default:
		return rest, nil
	}
}
