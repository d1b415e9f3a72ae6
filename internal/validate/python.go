package validate

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

//go:embed worker.py
var workerSource string

// errPathological means that a source made the interpreter die or hang.
var errPathological = errors.New("the interpreter could not cope with the file")

// python keeps one worker warm for a while. Calls take turns; a worker that
// dies, hangs or answers nonsense is replaced by the next call.
type python struct {
	cfg Config

	mu   sync.Mutex
	proc *session
	next int
	// idle ends a worker that nobody has asked for some time.
	idle *time.Timer
}

// workerIdle is how long a worker waits for the next question: a sandbox
// costs a little even at rest, and a start takes less than a tenth of a second.
const workerIdle = 30 * time.Second

func newPython(cfg Config) *python { return &python{cfg: cfg} }

// session is the life of one worker process.
type session struct {
	proc  *boxed
	born  time.Time
	lines chan []byte
	done  chan struct{}
	// why says how the process ended; set by end.
	why error
}

// request and report are the two messages of worker.py.
type request struct {
	ID  int    `json:"id"`
	Old []byte `json:"old"`
	New []byte `json:"new"`
	*question
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
	answers
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
	// Stub says that the function newly does nothing.
	Stub    bool   `json:"stub"`
	OldSpan [2]int `json:"old_span"`
	NewSpan [2]int `json:"new_span"`
}

// Analyse judges after against old, which is nil for a new file. It returns
// errPathological when the worker died of the file or ran out of time.
func (p *python) Analyse(ctx context.Context, old, after []byte) (*report, error) {
	return p.exchange(ctx, request{Old: old, New: after})
}

// exchange sends one request, which gets its number here.
func (p *python) exchange(ctx context.Context, q request) (*report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer p.rest()
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	p.next++
	q.ID = p.next
	r, err := s.ask(ctx, p.cfg.Timeout, q)
	if err != nil {
		p.proc = nil
		return nil, errors.Join(err, s.end(true))
	}
	return r, nil
}

// session starts a worker when none is warm and fresh.
func (p *python) session(ctx context.Context) (*session, error) {
	if s := p.proc; s != nil {
		select {
		case <-s.done:
		default:
			if time.Since(s.born) < workerLife {
				return s, nil
			}
		}
		p.proc = nil
		if err := s.end(true); err != nil {
			return nil, err
		}
	}
	argv := []string{p.cfg.Python, "-I", "-S", "-B", "-c", answersSource + workerSource, strconv.FormatInt(p.cfg.MemoryBytes, 10)}
	proc, err := p.cfg.start(context.WithoutCancel(ctx), argv)
	if err != nil {
		return nil, fmt.Errorf("validate: start %s: %w", p.cfg.Python, err)
	}
	s := &session{proc: proc, born: time.Now(), lines: make(chan []byte), done: make(chan struct{})}
	go s.read()
	if _, err := s.ask(ctx, p.cfg.Timeout, request{New: []byte("pass\n")}); err != nil {
		return nil, s.mute(p.cfg.Python, err)
	}
	p.proc = s
	return s, nil
}

// rest ends the worker when nobody asks before long.
func (p *python) rest() {
	if p.idle != nil {
		p.idle.Stop()
	}
	s, n := p.proc, p.next
	if s == nil {
		return
	}
	p.idle = time.AfterFunc(p.cfg.idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.proc == s && p.next == n {
			p.proc = nil
			//nolint:errcheck,gosec // nobody is left to hear of it; the next call starts anew
			s.end(false)
		}
	})
}

// maxReport bounds one answer: the interpreter may be any program.
const maxReport = 8 << 20

// read passes the worker's lines on until it ends, says too much, or nobody
// listens.
func (s *session) read() {
	defer close(s.done)
	r := bufio.NewReaderSize(s.proc.out, 1<<16)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxReport, err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return
		case err == nil:
			s.lines <- line
			line = nil
		}
	}
}

func (s *session) ask(ctx context.Context, timeout time.Duration, req request) (*report, error) {
	msg, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := s.proc.in.Write(append(msg, '\n'))
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
	return &r, nil
}

// mute ends a worker that did not even greet, and says why.
func (s *session) mute(python string, err error) error {
	ended := s.end(true)
	if errors.Is(err, errPathological) {
		err = errors.New("it ended or was silent for too long")
	}
	if s.why != nil && !errors.Is(s.why, context.Canceled) {
		err = s.why
	}
	return errors.Join(fmt.Errorf("validate: %s does not answer: %w", python, err), ended)
}

// end closes the worker's input, kills it when asked to or when it lingers,
// and waits for the reader and the process.
func (s *session) end(kill bool) error {
	err := s.proc.in.Close()
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	if kill {
		s.proc.Kill()
	}
	for {
		select {
		case <-s.lines:
		case <-patience.C:
			s.proc.Kill()
		case <-s.done:
			// Nobody listens any more: an exit status says nothing now.
			s.proc.Kill()
			s.why = s.proc.Wait()
			return err
		}
	}
}

// Close ends the warm worker.
func (p *python) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		p.idle.Stop()
	}
	if p.proc == nil {
		return nil
	}
	s := p.proc
	p.proc = nil
	return s.end(false)
}
