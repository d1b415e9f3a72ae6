package node

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Execute is a program from its arguments to its exit status: it parses them
// into grammar, a pointer to a struct that kong reads, and calls run. Help and
// version end with 0, wrong usage and an error of run with 1 and one sentence
// on errs.
func Execute(name, description string, grammar any, run func() error, args []string, out, errs io.Writer) int {
	shown := false
	parser, err := kong.New(grammar, kong.Name(name), kong.Description(description), kong.Writers(out, errs),
		kong.Vars{"version": VersionLine(name)},
		kong.Exit(func(int) { shown = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}))
	if err == nil {
		_, err = parser.Parse(args)
	}
	switch {
	case shown:
		return 0
	case err != nil:
		err = fmt.Errorf("%w; see '%s --help'", err, name)
	default:
		err = run()
	}
	if err != nil {
		fmt.Fprintln(errs, name+":", strings.TrimPrefix(err.Error(), name+": "))
		return 1
	}
	return 0
}
