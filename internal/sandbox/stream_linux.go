package sandbox

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// stream is the output of one run: a pipe, and the goroutine that empties it.
type stream struct {
	output   *os.File
	captured *capture
	overflow chan struct{}
	drained  chan struct{}
	drainErr error
}

// newStream returns the stream and the end that the command writes to, which
// the caller closes once it was handed over. read must follow.
func newStream(spec Spec) (*stream, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: output: %w", ErrSetup, err)
	}
	return &stream{
		output: r, captured: newCapture(spec.Limits.KeepHead, spec.Limits.KeepTail),
		overflow: make(chan struct{}), drained: make(chan struct{}),
	}, w, nil
}

// read empties the pipe until its last writer is gone.
func (s *stream) read(spec Spec) {
	go func() {
		defer close(s.drained)
		s.drainErr = drain(s.output, s.captured, spec.Log, spec.Limits.OutputBytes, func() { close(s.overflow) })
	}()
}

// finish ends the reading once all processes are gone.
func (s *stream) finish() error {
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-s.drained:
	case <-timer.C:
		// Somebody outside the tree holds the pipe; what came has been read.
		_ = s.output.SetReadDeadline(time.Now())
		<-s.drained
	}
	if errors.Is(s.drainErr, os.ErrDeadlineExceeded) {
		return nil
	}
	return s.drainErr
}

// close releases the pipe; it may follow finish.
func (s *stream) close() {
	_ = s.output.SetReadDeadline(time.Now())
	<-s.drained
	_ = s.output.Close()
}
