package repair

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed harness/*.py
var sources embed.FS

const (
	// maxLine bounds one message of the harness: a file of 1 MiB in hex.
	maxLine = 4 << 20
	// maxErrorText is how much of the harness's standard error is kept.
	maxErrorText = 4 << 10
)

// order is the one line that the harness is sent.
type order struct {
	Modules     map[string]string `json:"modules"`
	Runner      string            `json:"runner"`
	Targets     []string          `json:"targets"`
	Protected   []string          `json:"protected"`
	Failing     []string          `json:"failing"`
	Passing     []string          `json:"passing"`
	Args        []string          `json:"args"`
	Limit       int               `json:"limit"`
	Workers     int               `json:"workers"`
	Seconds     float64           `json:"seconds"`
	TestSeconds float64           `json:"test_seconds"`
	Memory      int64             `json:"memory"`
}

// message is one line of the harness.
type message struct {
	Type  string `json:"type"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
	foundFix
	Report *Report `json:"report"`
	Trace  string  `json:"trace"`
}

// foundFix is a message of type fix.
type foundFix struct {
	Path     string  `json:"path"`
	Operator string  `json:"operator"`
	Line     int     `json:"line"`
	Score    float64 `json:"score"`
	Reason   string  `json:"reason"`
	New      string  `json:"new"`
	content  []byte
}

// modules returns the text of boot.py and of every other module by its name.
func modules() (boot string, rest map[string]string, err error) {
	entries, err := sources.ReadDir("harness")
	if err != nil {
		return "", nil, fmt.Errorf("repair: embedded harness: %w", err)
	}
	rest = make(map[string]string, len(entries))
	for _, entry := range entries {
		data, err := sources.ReadFile(path.Join("harness", entry.Name()))
		if err != nil {
			return "", nil, fmt.Errorf("repair: embedded harness: %w", err)
		}
		rest[strings.TrimSuffix(entry.Name(), ".py")] = string(data)
	}
	boot = rest["boot"]
	delete(rest, "boot")
	return boot, rest, nil
}

// talk starts the harness, sends it the order and reads what it finds. The
// harness is killed, with all it has started, before talk returns.
func (e *Engine) talk(ctx context.Context, req Request) ([]foundFix, Report, error) {
	boot, line, err := e.order(req)
	if err != nil {
		return nil, Report{}, err
	}
	// The pipe's writing end stays open while the harness works: its end
	// tells the harness that nobody listens any more.
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, Report{}, fmt.Errorf("repair: %w", err)
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, Report{}, errors.Join(fmt.Errorf("repair: %w", err), stdin.Close(), feed.Close())
	}
	defer output.Close()
	var complaints tail
	process, err := e.cfg.Launcher.Start(ctx, Command{
		Argv: []string{e.cfg.Python, "-B", "-c", boot}, Dir: req.Dir, Env: e.environment(),
		Stdin: stdin, Stdout: stdout, Stderr: &complaints,
	})
	errClose := errors.Join(stdin.Close(), stdout.Close())
	if err != nil {
		return nil, Report{}, errors.Join(err, errClose, feed.Close())
	}
	// Closing the reading end unblocks listen; a second Close is harmless.
	stop := context.AfterFunc(ctx, func() { _ = output.Close() })
	defer stop()
	sent := make(chan error, 1)
	go func() { _, err := feed.Write(line); sent <- err }()
	found, report, errRead := listen(output, req.Progress)
	errFeed := feed.Close()
	errWait, errKill := finish(process)
	errSend := <-sent
	switch {
	case report != nil:
		return found, *report, errors.Join(errClose, errKill, errFeed)
	case ctx.Err() != nil:
		return found, Report{Reason: "the harness was stopped"}, errors.Join(ctx.Err(), errKill)
	default:
		return found, Report{}, fmt.Errorf("%w: %w; it said: %q", ErrNoReport,
			errors.Join(errRead, errSend, errWait, errKill), complaints.String())
	}
}

// ErrNoReport says that the harness ended before it had reported: the tests
// killed it, or what it needs is not there.
var ErrNoReport = errors.New("repair: the harness ended without a report")

// tidyTime is what the harness has, after its report, to end its children and
// remove its temporary files.
const tidyTime = 2 * time.Second

// finish waits for the harness, which ends itself when its input has ended,
// and then kills whatever is left.
func finish(process Process) (errWait, errKill error) {
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	timer := time.NewTimer(tidyTime)
	defer timer.Stop()
	select {
	case errWait = <-ended:
		return errWait, process.Kill()
	case <-timer.C:
		errKill = process.Kill()
		return <-ended, errKill
	}
}

func (e *Engine) order(req Request) (boot string, line []byte, err error) {
	boot, rest, err := modules()
	if err != nil {
		return "", nil, err
	}
	line, err = json.Marshal(order{
		Modules: rest, Runner: e.cfg.Runner, Targets: orEmpty(req.Targets), Protected: orEmpty(req.Protected),
		Failing: orEmpty(req.Failing), Passing: orEmpty(req.Passing), Args: orEmpty(req.TestArgs),
		Limit: req.Limit, Workers: e.cfg.Workers, Seconds: req.Budget.Seconds(),
		TestSeconds: e.cfg.TestTimeout.Seconds(), Memory: e.cfg.Memory,
	})
	if err != nil {
		return "", nil, fmt.Errorf("repair: encode the order: %w", err)
	}
	return boot, append(line, '\n'), nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// environment pins what would make two runs differ.
func (e *Engine) environment() []string {
	env := append([]string{}, e.cfg.Env...)
	return append(env, "PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1")
}

// listen reads the harness's messages until its report, its error or the end
// of the stream. The report is nil when there was none.
func listen(r io.Reader, progress func(done, total int)) ([]foundFix, *Report, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var found []foundFix
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return found, nil, fmt.Errorf("harness line: %w", err)
		}
		switch m.Type {
		case "progress":
			if progress != nil {
				progress(m.Done, m.Total)
			}
		case "fix":
			content, err := hex.DecodeString(m.New)
			if err != nil {
				return found, nil, fmt.Errorf("harness fix: %w", err)
			}
			m.content = content
			found = append(found, m.foundFix)
		case "done":
			if m.Report == nil {
				return found, nil, errors.New("harness report is empty")
			}
			return found, m.Report, nil
		case "error":
			return found, nil, fmt.Errorf("%s\n%s", m.Reason, m.Trace)
		default:
			return found, nil, fmt.Errorf("harness said %q", m.Type)
		}
	}
	return found, nil, lines.Err()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if len(t.data) > maxErrorText {
		t.data = append(t.data[:0], t.data[len(t.data)-maxErrorText:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.data))
}
