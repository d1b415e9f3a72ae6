package testrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"nexuscore.dev/nexus/internal/sandbox"
)

// resultFD is where programs that print their report print it: a descriptor
// apart from what the tests print.
const resultFD = 9

// apart makes a command print to resultFD, and closes that number, so that
// what the command starts does not inherit it.
const apart = `exec "$@" >&9 9>&-`

// printing runs a command whose standard output is read on its own: take gets
// it as it comes and must read to the end. Standard error stays in the result.
func printing(ctx context.Context, spec sandbox.Spec, take func(io.Reader)) (sandbox.Result, error) {
	spec.Argv = append([]string{"/bin/sh", "-c", apart, "sh"}, spec.Argv...)
	return recording(ctx, spec, resultFD, take)
}

// recording runs a command that writes to the descriptor fd.
func recording(ctx context.Context, spec sandbox.Spec, fd int, take func(io.Reader)) (sandbox.Result, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("run tests: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		take(io.LimitReader(r, maxRecord))
		_, _ = io.Copy(io.Discard, r) // what is too much, so that the writer ends by itself
		_ = r.Close()
	}()
	spec.ExtraFiles = append(spec.ExtraFiles, sandbox.ExtraFile{File: w, FD: fd})
	res, err := sandbox.Run(ctx, spec)
	err = errors.Join(err, w.Close())
	<-done
	return res, err
}
