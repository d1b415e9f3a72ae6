// Command corpus runs the gates over a folder of raw model answers and reports
// what they do with them: how many are accepted, which gate refuses the others
// and why, and every answer on which the gates and the label beside it differ.
// The answers are never part of this repository; make corpus CORPUS=DIR runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/testrun"
	"nexuscore.dev/nexus/internal/validate"
)

const usage = `usage: corpus [-all] DIR

DIR holds one folder an answer, at any depth:
  answer.txt   the raw text, as the model gave it
  base/        the tree that the answer is about; it may lie in any folder above
  label.txt    optional, first word: accepted or rejected by all gates;
               applicable (decoded, placed, it parses) or inapplicable as an edit
  want/        optional: files that must have exactly this content afterwards
  targets.txt  optional: the files to change, one a line
  task.txt     optional: the text of the task
  finish.txt   optional: the stop reason; without it "stop"

Exit status: 0 when every answer got a verdict, 1 when one made the gates panic
or could not be read. Differences from the labels are listed, not judged.
`

func main() {
	sandbox.MaybeInit() // the interpreter starts through this very program
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is the command from its arguments to its exit status.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage) }
	all := flags.Bool("all", false, "print the verdict on every answer")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		if err == nil {
			flags.Usage()
		}
		return 1
	}
	r, err := study(ctx, flags.Arg(0))
	if err != nil {
		fmt.Fprintln(errs, "corpus:", err)
		return 1
	}
	r.print(out, *all)
	if r.panicked() {
		return 1
	}
	return 0
}

// study runs the gates over every answer below dir.
func study(ctx context.Context, dir string) (_ *report, err error) {
	dirs, err := find(dir)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no answer.txt below %s", dir)
	}
	v, err := gates(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	r := &report{}
	var base *tree
	for _, d := range dirs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, err := load(dir, d, base)
		if err != nil {
			return nil, err
		}
		base = a.base
		r.add(judge(ctx, v, a))
	}
	return r, nil
}

// gates are those of a run. Without an interpreter they refuse Python by that
// reason, which the report then shows.
func gates(ctx context.Context, dir string) (*validate.Validator, error) {
	var cfg validate.Config
	python, err := testrun.FindPython(ctx, dir)
	switch {
	case err == nil:
		cfg.Python, cfg.ReadOnly = python.Path, python.ReadOnly
	case !errors.Is(err, testrun.ErrNoInterpreter):
		return nil, err
	}
	return validate.New(cfg)
}

// judge runs the gates over one answer and survives their panic.
func judge(ctx context.Context, v *validate.Validator, a *answer) (o outcome) {
	o = outcome{id: a.id, label: a.label}
	defer func() {
		if p := recover(); p != nil {
			o.panic = fmt.Sprint(p)
		}
	}()
	o.verdict = v.Check(ctx, validate.Input{
		Answer: a.text, Finish: a.finish, Base: a.base, Targets: a.targets, Task: a.task,
	})
	if o.verdict.Candidate.Hash != "" {
		o.unlike = a.unlike(o.verdict)
	}
	return o
}
