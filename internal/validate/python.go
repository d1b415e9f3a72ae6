package validate

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

//go:embed worker.py
var workerSource string

// Starter launches an interpreter. A caller with a sandbox passes its own; the
// process needs no file, no network and no environment.
type Starter func(ctx context.Context, argv []string) (Process, error)

// Process is a running interpreter.
type Process interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	// Kill ends the process at once; Wait returns when it is gone.
	Kill() error
	Wait() error
}

// errPathological means that a source made the interpreter die or hang.
var errPathological = errors.New("the interpreter could not cope with the file")

// python keeps one worker warm. Calls take turns; one that dies, hangs or
// answers nonsense is replaced by the next call.
type python struct {
	cfg Config

	mu   sync.Mutex
	proc *session
	next int
}

func newPython(cfg Config) *python { return &python{cfg: cfg} }

// session is the life of one worker process.
type session struct {
	proc  Process
	lines chan []byte
	done  chan struct{}
}

// request and report are the two messages of worker.py.
type request struct {
	ID  int    `json:"id"`
	Old []byte `json:"old"`
	New []byte `json:"new"`
}

type report struct {
	ID           int          `json:"id"`
	OK           bool         `json:"ok"`
	Error        *syntaxError `json:"error"`
	OldError     *syntaxError `json:"old_error"`
	Pathological bool         `json:"pathological"`
	Statements   int          `json:"statements"`
	// Lost holds [name, kind, line] of definitions, LostNames [name, line,
	// still used] of module variables.
	Lost      [][]any        `json:"lost"`
	LostNames [][]any        `json:"lost_names"`
	Functions []functionDiff `json:"functions"`
	// Bare lists the lines of new statements that are mere words.
	Bare    []int    `json:"bare"`
	Watched []string `json:"watched"`
}

// syntaxError is what the compiler said, with the text of its line.
type syntaxError struct {
	Type string `json:"type"`
	Msg  string `json:"msg"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// functionDiff counts the statements of a function on both sides; the empty
// name is the module's own statements.
type functionDiff struct {
	Name    string `json:"name"`
	Old     int    `json:"old"`
	New     int    `json:"new"`
	Kept    int    `json:"kept"`
	Deleted int    `json:"deleted"`
	Line    int    `json:"line"`
	OldSpan [2]int `json:"old_span"`
	NewSpan [2]int `json:"new_span"`
}

// Analyse judges after against old, which is nil for a new file. It returns
// errPathological when the worker died of the file or ran out of time.
func (p *python) Analyse(ctx context.Context, old, after []byte) (*report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	p.next++
	r, err := s.ask(ctx, p.cfg.Timeout, request{ID: p.next, Old: old, New: after})
	if err != nil {
		p.proc = nil
		return nil, errors.Join(err, s.end(true))
	}
	return r, nil
}

// session starts a worker when none is warm.
func (p *python) session(ctx context.Context) (*session, error) {
	if p.proc != nil {
		select {
		case <-p.proc.done:
			err := p.proc.end(true)
			p.proc = nil
			if err != nil {
				return nil, err
			}
		default:
			return p.proc, nil
		}
	}
	argv := []string{p.cfg.Python, "-I", "-S", "-B", "-c", workerSource, strconv.FormatInt(p.cfg.MemoryBytes, 10)}
	proc, err := p.cfg.Start(context.WithoutCancel(ctx), argv)
	if err != nil {
		return nil, fmt.Errorf("validate: start %s: %w", p.cfg.Python, err)
	}
	s := &session{proc: proc, lines: make(chan []byte), done: make(chan struct{})}
	go s.read()
	if _, err := s.ask(ctx, p.cfg.Timeout, request{New: []byte("pass\n")}); err != nil {
		return nil, errors.Join(fmt.Errorf("validate: %s does not answer", p.cfg.Python), s.end(true))
	}
	p.proc = s
	return s, nil
}

// read passes the worker's lines on until it ends or nobody listens.
func (s *session) read() {
	defer close(s.done)
	r := bufio.NewReaderSize(s.proc.Stdout(), 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		s.lines <- line
	}
}

func (s *session) ask(ctx context.Context, timeout time.Duration, req request) (*report, error) {
	msg, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := s.proc.Stdin().Write(append(msg, '\n'))
		sent <- err
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case err := <-sent:
			if err != nil {
				return nil, errPathological
			}
			sent = nil
		case line := <-s.lines:
			return parseReport(line, req.ID)
		case <-s.done:
			return nil, errPathological
		case <-timer.C:
			return nil, errPathological
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func parseReport(line []byte, id int) (*report, error) {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("validate: answer of the interpreter: %w", err)
	}
	if r.ID != id {
		return nil, fmt.Errorf("validate: the interpreter answered %d instead of %d", r.ID, id)
	}
	if r.Pathological {
		return &r, nil
	}
	return &r, nil
}

// end closes the worker's input, kills it when asked to or when it lingers,
// and waits for the reader and the process.
func (s *session) end(kill bool) error {
	err := s.proc.Stdin().Close()
	if kill {
		err = errors.Join(err, s.proc.Kill())
	}
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	for {
		select {
		case <-s.lines:
		case <-patience.C:
			err = errors.Join(err, s.proc.Kill())
		case <-s.done:
			s.wait()
			if kill {
				return nil
			}
			return err
		}
	}
}

// wait reaps the process; how it ended was decided by end.
func (s *session) wait() {
	//nolint:errcheck,gosec // a killed worker's exit status says nothing
	s.proc.Wait()
}

// Close ends the warm worker.
func (p *python) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	s := p.proc
	p.proc = nil
	return s.end(false)
}
