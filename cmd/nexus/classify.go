package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"nexuscore.dev/nexus/internal/failure"
)

type classifyCmd struct {
	Type    string `placeholder:"T" help:"Name of the error's type, such as RateLimitError."`
	Message string `placeholder:"M" help:"The error's text."`
	Status  string `placeholder:"N" help:"HTTP status."`
	Origin  string `placeholder:"O" help:"Which part raised it: model, sandbox, test, patch, workspace, bus."`
	TSV     string `name:"tsv" predictor:"file" placeholder:"FILE" help:"Classify each line of a table with the columns type, message, http_status, origin; - reads standard input."`
	JSON    bool   `name:"json" help:"One JSON object a line, with the reason."`
}

// Help implements kong's help provider.
func (classifyCmd) Help() string {
	return `Prints the category that decides what happens after a failure: rate_limit, timeout, connection and invalid_output
are tried again within bounds; sandbox, security, patch_apply and unexpected are not.

Examples:
  nexus classify --type APIStatusError --status 429
  nexus classify --message "read: connection reset by peer" --origin model --json
  nexus classify --tsv errors.tsv`
}

// Run classifies one error, or a table of them.
func (c *classifyCmd) Run(_ context.Context, e *env) error {
	if c.TSV != "" {
		if c.Type+c.Message+c.Status+c.Origin != "" {
			return errors.New("classify: --tsv takes the errors from the file: leave --type, --message, --status and --origin out")
		}
		return c.table(e.out)
	}
	if c.Type+c.Message+c.Status == "" {
		return errors.New("classify: say what is to be classified: --type, --message or --status, or a table with --tsv")
	}
	sig, err := namedError(c.Type, c.Message, c.Status, c.Origin)
	if err != nil {
		return fmt.Errorf("classify: %w", err)
	}
	return c.print(e.out, sig)
}

// table classifies line by line, so that a long table needs no memory.
func (c *classifyCmd) table(out io.Writer) (err error) {
	in := io.Reader(os.Stdin)
	if c.TSV != "-" {
		f, err := os.Open(c.TSV)
		if err != nil {
			return fmt.Errorf("classify: %w", err)
		}
		defer f.Close()
		in = f
	}
	buffered := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, buffered.Flush()) }()
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && line == "":
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("classify: %s: %w", c.TSV, err)
		}
		if err := c.row(buffered, strings.TrimRight(line, "\r\n"), n); err != nil {
			return fmt.Errorf("classify: %w", err)
		}
	}
}

// row classifies one line. Every line but a heading gets exactly one answer,
// so that answers can be pasted beside the table: what is no status says
// nothing.
func (c *classifyCmd) row(out io.Writer, line string, n int) error {
	cell := append(strings.Split(line, "\t"), "", "", "")
	if n == 1 && cell[0] == "type" && cell[1] == "message" {
		return nil
	}
	sig := failure.Signal{Type: cell[0], Message: strings.ReplaceAll(cell[1], `\n`, "\n"), Origin: failure.Origin(cell[3])}
	if n, err := strconv.Atoi(cell[2]); err == nil {
		sig.Status = n
	}
	return c.print(out, sig)
}

func namedError(typ, message, status, origin string) (failure.Signal, error) {
	sig := failure.Signal{Type: typ, Message: message, Origin: failure.Origin(origin)}
	if origin != "" && !slices.Contains(failure.Origins(), sig.Origin) {
		return sig, fmt.Errorf("unknown origin %q: one of %v", origin, failure.Origins())
	}
	if status == "" {
		return sig, nil
	}
	var err error
	if sig.Status, err = strconv.Atoi(status); err != nil || sig.Status < 100 || sig.Status > 599 {
		return sig, fmt.Errorf("%q is no HTTP status", status)
	}
	return sig, nil
}

// classified is one line of the answer with --json.
type classified struct {
	Category failure.Category   `json:"category"`
	Reason   string             `json:"reason"`
	Matches  []failure.Category `json:"matches"`
	Unknown  bool               `json:"unknown"`
}

func (c *classifyCmd) print(out io.Writer, sig failure.Signal) error {
	x := failure.ExplainSignal(sig)
	if !c.JSON {
		_, err := fmt.Fprintln(out, x.Category)
		return err
	}
	return json.NewEncoder(out).Encode(classified{x.Category, x.Reason, x.Matches, x.Unknown})
}
