package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/node"
)

type completionCmd struct {
	Shell string  `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
	Line  *string `hidden:"" help:"Answer what may follow this command line; the scripts ask so."`
}

// Help implements kong's help provider.
func (completionCmd) Help() string {
	return `Completes commands, flags, their values, folders, files, and the ids of runs and dead letters.

Examples:
  source <(nexus completion bash)            bash: in ~/.bashrc
  source <(nexus completion zsh)             zsh: in ~/.zshrc
  nexus completion fish | source             fish: in ~/.config/fish/config.fish`
}

// scripts ask this program what may follow, and leave paths to the shell,
// which knows its own quotes and tildes.
//
//go:embed completion
var scripts embed.FS

// What a script hands to its shell.
const (
	askFolders = ":folders"
	askFiles   = ":files"
)

// idTime bounds the look for ids: a key press does not wait for a server.
const idTime = 2 * time.Second

// Run prints the script of a shell, or what may follow a line.
func (c *completionCmd) Run(ctx context.Context, k *kong.Context, e *env) error {
	if c.Line == nil {
		bin, err := os.Executable()
		if err != nil {
			return err
		}
		text, err := scripts.ReadFile("completion/nexus." + c.Shell)
		if err != nil {
			return err
		}
		quoted := "'" + strings.ReplaceAll(bin, "'", `'\''`) + "'"
		_, err = fmt.Fprint(e.out, strings.ReplaceAll(string(text), "@BIN@", quoted))
		return err
	}
	typed := words(*c.Line)
	list, err := follow(ctx, k.Kong, e, typed)
	if err != nil {
		return err
	}
	for _, word := range list {
		if flag, _, ok := flagValue(typed); ok && c.Shell == "fish" && !isPath(word) {
			word = flag + "=" + word // fish replaces the whole word
		}
		fmt.Fprintln(e.out, word)
	}
	return nil
}

// follow lists what may stand in the place of the last word, or the one word
// that asks the shell for paths.
func follow(ctx context.Context, app *kong.Kong, e *env, typed []string) ([]string, error) {
	args := typed[min(1, len(typed)):]
	if len(args) == 0 {
		return nil, nil
	}
	explain := len(args) > 1 && args[0] == "help"
	if explain {
		args = args[1:]
	}
	if flag, value, ok := flagValue(args); ok {
		args = append(args[:len(args)-1:len(args)-1], flag, value)
	}
	done, last := args[:len(args)-1], args[len(args)-1]
	before := ""
	if i := strings.LastIndex(last, ","); i >= 0 && len(done) > 0 && takesList(app.Model.Node, done[len(done)-1]) {
		before, last = last[:i+1], last[i+1:]
		args = append(slices.Clone(done), last)
	}
	ids := identities{ctx: ctx, env: e, common: place(done)}
	cmd, err := kongplete.Command(app, kongplete.WithPredictors(map[string]complete.Predictor{
		"folder": complete.PredictSet(askFolders),
		"file":   complete.PredictSet(askFiles),
		"run":    complete.PredictFunc(ids.runs),
		"letter": complete.PredictFunc(ids.letters),

		"undecided": complete.PredictFunc(ids.undecided),
	}))
	if err != nil {
		return nil, err
	}
	a := complete.Args{All: args, Completed: done, Last: last}
	if len(done) > 0 {
		a.LastCompleted = done[len(done)-1]
	}
	options := cmd.Predict(a)
	slices.Sort(options)
	options = slices.Compact(options)
	if i := slices.IndexFunc(options, isPath); i >= 0 && !strings.HasPrefix(last, "-") {
		if explain {
			return nil, nil
		}
		return options[i : i+1], nil
	}
	options = slices.DeleteFunc(options, func(o string) bool {
		taken := slices.Contains(strings.Split(before, ","), o)
		return o == "" || isPath(o) || !strings.HasPrefix(o, last) || taken
	})
	for i := range options {
		options[i] = before + options[i]
	}
	return options, nil
}

// takesList reports whether the flag of any command takes several of the words
// that it knows, with commas between them.
func takesList(n *kong.Node, flag string) bool {
	return slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool {
		return "--"+f.Name == flag && f.Enum != "" && f.IsSlice()
	}) || slices.ContainsFunc(n.Children, func(c *kong.Node) bool { return takesList(c, flag) })
}

func isPath(word string) bool { return word == askFolders || word == askFiles }

// flagValue takes --flag=value apart, where that is the last word.
func flagValue(list []string) (flag, value string, ok bool) {
	if len(list) == 0 || !strings.HasPrefix(list[len(list)-1], "--") {
		return "", "", false
	}
	return strings.Cut(list[len(list)-1], "=")
}

// place is the bus that a command line means.
func place(args []string) common {
	c := common{NATS: os.Getenv("NEXUS_NATS"), State: os.Getenv("NEXUS_STATE"), Replicas: 1}
	for i, arg := range args {
		flag, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "--nats":
			c.NATS = value
		case "--state":
			c.State = value
		}
	}
	return c
}

// identities looks up what a bus holds. Whatever fails has no answer: nobody
// asked for a message.
type identities struct {
	ctx    context.Context //nolint:containedctx // the predictors have no place for one
	env    *env
	common common
}

func (i identities) look(do func(context.Context, *bus.Bus) ([]string, error)) (out []string) {
	state, err := node.StatePath(i.common.State)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(state); err != nil && i.common.NATS == "" {
		return nil // a key press makes no state folder
	}
	ctx, cancel := context.WithTimeout(i.ctx, idTime)
	defer cancel()
	err = i.common.bus(ctx, i.env, func(_ *node.Node, b *bus.Bus) (err error) {
		out, err = do(ctx, b)
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

func (i identities) runs(complete.Args) []string {
	return i.look(func(ctx context.Context, b *bus.Bus) ([]string, error) {
		known, err := b.Runs(ctx)
		if err != nil {
			return nil, err
		}
		list, err := b.Imported(ctx)
		for id := range known {
			list = append(list, id)
		}
		return list, err
	})
}

// undecided lists the runs that a person can decide about, also those that
// nobody has to.
func (i identities) undecided(complete.Args) []string {
	return i.look(func(ctx context.Context, b *bus.Bus) ([]string, error) {
		all, err := items(ctx, b)
		var list []string
		for _, it := range all {
			if !it.solved && undecided(it.state, it.note) == nil {
				list = append(list, it.state.ID)
			}
		}
		return list, err
	})
}

func (i identities) letters(complete.Args) []string {
	return i.look(func(ctx context.Context, b *bus.Bus) ([]string, error) {
		all, err := b.DeadLetters(ctx)
		list := make([]string, 0, len(all))
		for _, l := range all {
			list = append(list, fmt.Sprint(l.ID))
		}
		return list, err
	})
}

// words splits a line as a shell does; its end may be inside of quotes. The
// last word is the one that is being typed, "" after a blank.
func words(line string) []string {
	list, word, quote := []string{}, []rune{}, rune(0)
	escaped := false
	for _, r := range strings.TrimLeft(line, " \t") {
		switch {
		case escaped:
			word, escaped = append(word, r), false
		case r == '\\' && quote != '\'':
			escaped = true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			if len(word) > 0 {
				list, word = append(list, string(word)), word[:0]
			}
		default:
			word = append(word, r)
		}
	}
	return append(list, string(word))
}
