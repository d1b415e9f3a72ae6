package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/wire"
)

// view shows a run: a live line for the step in progress on a terminal,
// plain lines otherwise, or one JSON object per event.
type view struct {
	out  io.Writer
	err  io.Writer
	json bool
	live bool
	// decides is true where the decisions about the run follow its result.
	decides bool
	// width is the number of columns of the terminal, else 0; a live line that
	// is longer would leave its first part behind.
	width int
	// opened is called once, when the run is open, and ended with its result;
	// nil for nobody.
	opened func(run string)
	ended  func(run.Summary)
	// told is true once the result was printed: with --json nothing follows it.
	told atomic.Bool

	mu    sync.Mutex
	began time.Time
	step  string
	stop  chan struct{}
	wg    sync.WaitGroup
}

func newView(e *env, asJSON bool) *view {
	v := &view{out: e.out, err: e.err, json: asJSON, width: e.width}
	v.live = !asJSON && terminalWidth(e.out) > 0 && os.Getenv("TERM") != "dumb"
	return v
}

// eventLine is one event with --json.
type eventLine struct {
	Type string          `json:"type"`
	Run  string          `json:"run"`
	N    int             `json:"n"`
	Name string          `json:"name"`
	Step string          `json:"step"`
	At   time.Time       `json:"at"`
	Text string          `json:"text"`
	Body json.RawMessage `json:"body"`
}

func (v *view) start(dir string) {
	if !v.json {
		v.line(mark(" "), "heal "+clean(dir))
	}
}

// Note is a sentence about the command itself.
func (v *view) Note(text string) {
	switch {
	case v.json && v.told.Load():
		fmt.Fprintln(v.err, "nexus:", text)
		return
	case v.json:
		v.print(map[string]string{"type": "note", "text": text})
		return
	}
	v.line(mark("!"), text)
}

// Warn tells what went wrong and changes nothing of the run.
func (v *view) Warn(err error) { fmt.Fprintln(v.err, "nexus:", err) }

// Event shows one event of the log and, on a terminal, what is waited for.
func (v *view) Event(ev run.Event, s run.State) {
	if v.opened != nil {
		v.opened(s.ID)
		v.opened = nil
	}
	text, ok := describe(ev, s)
	if v.json {
		body, err := wire.EncodeEvent(ev)
		if err != nil {
			body = []byte("null")
		}
		v.print(eventLine{"event", s.ID, ev.N, ev.Command.Name(), s.Step(), s.At, text, body})
		return
	}
	v.idle()
	if text != "" {
		v.line(mark(ok), text)
	}
	if !s.Closed {
		v.waiting(waitText(s))
	}
}

// Result shows the end of the run, as soon as that is known; as JSON it is the
// last line.
func (v *view) Result(sum run.Summary) {
	if v.ended != nil {
		v.ended(sum)
	}
	if v.told.Store(true); v.json {
		v.print(struct {
			Type string `json:"type"`
			run.Summary
		}{"result", sum})
		return
	}
	v.idle()
	if sum.Diff != "" {
		fmt.Fprintf(v.out, "\n%s\n", strings.TrimRight(sandbox.Printable([]byte(sum.Diff)), "\n"))
	}
	reason := sum.Reason
	if sum.State == run.Running || sum.State == run.Waiting {
		reason = sum.Step
	}
	fmt.Fprintf(v.out, "\n%s  %s\n", v.paint(sum.State), fold(clean(reason), len(sum.State)+2, v.width))
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(v.out, "  %-9s %s\n", name, fold(text, 12, v.width))
		}
	}
	row("run", sum.Run)
	row("files", strings.Join(sum.Files, ", "))
	row("patch", sum.Patch)
	row("report", sum.Report)
	switch {
	case sum.FinalTree != "" && sum.FinalTree == sum.BaseTree && sum.Proven:
		row("folder", "byte for byte as before the run")
	case sum.State != run.Running && !sum.Proven && sum.FinalTree == "" && sum.BaseTree != "":
		row("folder", "NOT PROVEN to be as before the run: look at it before you go on")
	}
	for _, p := range sum.Conflicts {
		row("kept", clean(p)+" was changed during the run; it stays as it is and MAY HOLD A CHANGE OF THE RUN")
	}
	more := func(n int) {
		if n > 0 {
			row("", fmt.Sprintf("and %d more", n))
		}
	}
	more(sum.Kept.Conflicts - len(sum.Conflicts))
	if len(sum.Conflicts) > 0 {
		row("", "what it was before the run lies in saved/"+sum.Run+"/base of the state folder")
	}
	for _, p := range sum.Foreign {
		row("yours", clean(p)+" was changed by somebody else during the run; the run never wrote it")
	}
	more(sum.Kept.Foreign - len(sum.Foreign))
	row("level", sum.Level)
	row("time", fmt.Sprintf("%.1f s", sum.Seconds))
	switch sum.State {
	case run.NeedsHumanReview:
		if !v.decides {
			row("next", "'nexus review show "+sum.Run[:8]+"' lists every attempt and what you can decide")
		}
	case run.Running:
		row("next", "'nexus run watch "+sum.Run[:8]+"' follows it")
	case run.Waiting:
		row("next", "'nexus heal "+clean(sum.Dir)+"' goes on with it, or ends it")
	case run.Approved, run.Failed:
	}
}

func (v *view) paint(t run.Terminal) string {
	if !v.live || os.Getenv("NO_COLOR") != "" {
		return string(t)
	}
	color := map[run.Terminal]string{run.Approved: "32", run.NeedsHumanReview: "33", run.Running: "36", run.Waiting: "33"}[t]
	if color == "" {
		color = "31"
	}
	return "\x1b[1;" + color + "m" + string(t) + "\x1b[0m"
}

// mark is the sign before a line: done, refused, or a given one.
func mark(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "✓"
		}
		return "✗"
	}
	return " "
}

func (v *view) line(sign, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live && v.step != "" {
		fmt.Fprint(v.out, "\r\x1b[K")
	}
	indent := 2
	if label := text[:min(len(text), labelled)]; strings.HasSuffix(label, " ") && !strings.Contains(strings.TrimRight(label, " "), " ") {
		indent += labelled
	}
	fmt.Fprintf(v.out, "%s %s%s\n", sign, text[:indent-2], fold(text[indent-2:], indent, v.width))
}

// labelled is the column in which the text after the name of a step begins.
const labelled = len("snapshot   ")

func (v *view) print(doc any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	body, err := json.Marshal(doc)
	if err != nil {
		body = fmt.Appendf(nil, `{"type":"error","text":%q}`, err.Error())
	}
	fmt.Fprintf(v.out, "%s\n", body)
}

// waiting keeps the live line of a step up to date until idle is called.
func (v *view) waiting(step string) {
	if !v.live || step == "" {
		return
	}
	v.mu.Lock()
	v.step, v.began, v.stop = step, time.Now(), make(chan struct{})
	v.mu.Unlock()
	v.wg.Go(func() {
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for i := 0; ; i++ {
			v.mu.Lock()
			text := fmt.Sprintf("%c %s  %.1f s", spinner[i%len(spinner)], v.step, time.Since(v.began).Seconds())
			fmt.Fprint(v.out, "\r\x1b[K"+fit(text, v.width))
			v.mu.Unlock()
			select {
			case <-v.stop:
				return
			case <-t.C:
			}
		}
	})
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// columns is the width of a terminal, 80 where it does not tell.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

// idle removes the live line.
func (v *view) idle() {
	if v.stop == nil {
		return
	}
	close(v.stop)
	v.wg.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stop, v.step = nil, ""
	fmt.Fprint(v.out, "\r\x1b[K")
}

// clean makes text that came from a project safe to show.
func clean(s string) string {
	return strings.ReplaceAll(sandbox.Printable([]byte(s)), "\n", " ")
}
