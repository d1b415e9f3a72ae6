// Command nexus heals folders whose tests fail, over a message bus, and never
// leaves a byte that was not proved.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"nexuscore.dev/nexus/internal/node"
	"nexuscore.dev/nexus/internal/sandbox"
)

// cli is the command line.
type cli struct {
	Heal       healCmd       `cmd:"" help:"Make the failing tests of a folder pass, or leave the folder as it was."`
	Validate   validateCmd   `cmd:"" help:"Put a model's answer, from standard input, through the gates; nothing is written."`
	Policy     policyCmd     `cmd:"" help:"Print or check the rules for what may be delivered without a person."`
	Up         upCmd         `cmd:"" help:"Run server, all workers and the HTTP gateway until Ctrl-C."`
	Run        runCmd        `cmd:"" help:"Look at runs, or cancel one."`
	Test       testCmd       `cmd:"" help:"Say what the tests of one folder prove about another one."`
	Sandbox    sandboxCmd    `cmd:"" help:"Run a command that nobody trusts, and say what it used."`
	Undo       undoCmd       `cmd:"" help:"Take back what an approved run wrote."`
	Replay     replayCmd     `cmd:"" help:"Decide a recorded run again and compare."`
	Review     reviewCmd     `cmd:"" help:"Look at runs that wait for a person, and decide."`
	Dead       deadCmd       `cmd:"" help:"Look at messages that could not be handled, and start them again."`
	GC         gcCmd         `cmd:"" name:"gc" help:"Remove old runs and what only they need from the state folder."`
	Doctor     doctorCmd     `cmd:"" help:"Say what is there, what is missing, and what that costs."`
	Classify   classifyCmd   `cmd:"" help:"Say what kind of failure an error is."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell: bash, zsh or fish."`
	Help       helpCmd       `cmd:"" help:"Explain a command: 'nexus help heal'."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	Verbose     bool             `short:"v" help:"Log what goes on inside, to standard error."`
	VersionFlag kong.VersionFlag `name:"version" help:"Print the version."`
}

const description = `Heals folders whose tests fail.

A run takes a snapshot, runs the tests, asks its sources for a fix, puts each candidate through gates and tests in a
staged copy, and writes the folder only when a fix was proved. Everything else leaves it byte for byte as it was.

Exit status: 0 APPROVED, 2 NEEDS_HUMAN_REVIEW, 1 ERROR or wrong usage.

Examples:
  nexus heal .                          heal this folder
  nexus heal app --test "pytest -q app" name the test command
  nexus heal . --dry-run                find and prove a fix, write nothing
  nexus heal . --source engine --json   no model, one JSON object per event
  nexus validate --base . < answer.txt  judge a model's answer, write nothing
  nexus run ls                          list the runs
  nexus doctor                          what is there, what is missing
  source <(nexus completion bash)       complete with TAB (zsh and fish too)`

func main() {
	sandbox.MaybeInit()
	os.Exit(realMain(os.Args[1:], os.Stdout, os.Stderr))
}

// env is what a command may use of its process.
type env struct {
	out, err io.Writer
	// args are those that the command was given.
	args    []string
	verbose bool
	// width is the number of columns of the terminal that out is, else 0.
	width int
}

// exitError ends the program with a status and no further message.
type exitError int

// Error implements error.
func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// helpCmd stands in the list of commands; arguments turns it into --help.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain."`
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, node.VersionLine("nexus"))
	return err
}

// arguments spells what people try in the way that the parser knows.
func arguments(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	}
	if args[0] == "sandbox" && !slices.Contains(args, "--") {
		return args // some of them are the command's
	}
	return negatives(args)
}

func realMain(args []string, out, errOut io.Writer) (status int) {
	var c cli
	p, err := kong.New(&c, kong.Name("nexus"), kong.Description(description), kong.Vars{"version": node.VersionLine("nexus")},
		kong.Writers(out, errOut), kong.Exit(func(code int) { panic(exitError(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}))
	if err != nil {
		fmt.Fprintln(errOut, "nexus:", err)
		return 1
	}
	defer func() {
		if r := recover(); r != nil {
			code, ok := r.(exitError)
			if !ok {
				panic(r)
			}
			status = int(code)
		}
	}()
	ctx, err := p.Parse(arguments(args))
	if err != nil {
		fmt.Fprintf(errOut, "nexus: %v\nTry '%s --help'.\n", err, about(err))
		return 1
	}
	ctx.BindTo(context.Background(), (*context.Context)(nil))
	err = ctx.Run(&env{out: out, err: errOut, args: args, verbose: c.Verbose, width: terminalWidth(out)})
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(errOut, fold("nexus: "+err.Error(), 0, terminalWidth(errOut)))
	return 1
}

// about is the command whose help explains a wrong usage.
func about(err error) string {
	words := []string{"nexus"}
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		for _, p := range parse.Context.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(words, " ")
}
