package node

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/sandbox"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) {
	sandbox.MaybeInit()
	os.Exit(m.Run())
}

// place is a state folder, a registry and a project of one test.
type place struct {
	t   *testing.T
	cfg Config
	dir string
}

// newPlace makes a project whose test command looks into one file: it is red
// and no source knows a fix, unless the file says so.
func newPlace(t *testing.T) *place {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &place{t: t, dir: filepath.Join(top, "project")}
	state := filepath.Join(top, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	p.cfg = Config{
		State: state, Claims: rollback.Claims{Path: filepath.Join(top, "claims.json")}, Log: zerolog.Nop(),
		Rules: Rules{Home: "here", State: state, Limits: run.DefaultLimits(), Sources: []run.Source{run.SourceEngine}},
	}
	p.cfg.Rules.Limits.DelayScale = 0.01
	p.write("check.sh", "grep -q good answer.txt\n")
	p.write("answer.txt", "bad\n")
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(p.t, os.WriteFile(file, []byte(text), 0o644))
}

func (p *place) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	require.NoError(p.t, err)
	return string(data)
}

func (p *place) tree() string {
	p.t.Helper()
	m, err := rollback.Scan(p.t.Context(), p.dir, rollback.Limits{})
	require.NoError(p.t, err)
	return m.Hash()
}

// task is what the tests ask for.
func (p *place) task() wire.Heal { return wire.Heal{Dir: p.dir, Test: "sh check.sh"} }

// heal makes a heal and what it shows.
func (p *place) heal(task wire.Heal) (*Heal, *shown) {
	p.t.Helper()
	d := &shown{at: make(chan string, 1000)}
	h, err := NewHeal(p.cfg, task, d)
	require.NoError(p.t, err)
	return h, d
}

// claims lists the runs that hold a folder.
func (p *place) claims() []string {
	p.t.Helper()
	all, err := p.cfg.Claims.List()
	require.NoError(p.t, err)
	var out []string
	for _, c := range all {
		out = append(out, c.Run)
	}
	return out
}

// open is a node of this place that the test closes.
func (p *place) open(change func(*Config)) *Node {
	p.t.Helper()
	cfg := p.cfg
	if change != nil {
		change(&cfg)
	}
	n, err := Open(p.t.Context(), cfg)
	require.NoError(p.t, err)
	return n
}

// shown is a Display that remembers. at hears the step after every event.
type shown struct {
	mu     sync.Mutex
	notes  []string
	warned []error
	events []string
	result *run.Summary
	at     chan string
}

// Note implements Display.
func (d *shown) Note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, text)
}

// Warn implements Display.
func (d *shown) Warn(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.warned = append(d.warned, err)
}

// Event implements Display.
func (d *shown) Event(ev run.Event, s run.State) {
	d.mu.Lock()
	d.events = append(d.events, ev.Command.Name())
	d.mu.Unlock()
	d.at <- s.Step()
}

// Result implements Display.
func (d *shown) Result(sum run.Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result = &sum
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// until waits for a step of the run.
func (d *shown) until(t *testing.T, step string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case s := <-d.at:
			if s == step {
				return
			}
		case <-late:
			require.FailNow(t, "never reached "+step, "%v", d.events)
		}
	}
}

// driver is a process of its own that a run may belong to; end kills it.
func driver(t *testing.T) (d run.Driver, end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write([]byte("."))
	require.NoError(t, err)
	_, err = io.ReadFull(out, make([]byte, 1)) // it is the program now, and its start time stays
	require.NoError(t, err)
	start, err := rollback.ProcessStart(cmd.Process.Pid)
	require.NoError(t, err)
	return run.Driver{PID: cmd.Process.Pid, Start: start, Host: "here"}, sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// claimed writes a claim of dir into the registry as if the driver had made it.
func (p *place) claimed(dir, id string, d run.Driver) {
	p.t.Helper()
	_, err := p.cfg.Claims.Acquire(dir, rollback.Claim{Run: id, State: p.cfg.State})
	require.NoError(p.t, err)
	data, err := os.ReadFile(p.cfg.Claims.Path)
	require.NoError(p.t, err)
	var doc map[string]any
	require.NoError(p.t, json.Unmarshal(data, &doc))
	for _, c := range doc["claims"].([]any) {
		if c := c.(map[string]any); c["run"] == id {
			c["pid"], c["start_time"] = d.PID, d.Start
		}
	}
	data, err = json.Marshal(doc)
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(p.cfg.Claims.Path, data, 0o600))
}

// interrupted leaves a run of task at a step that no worker took, as a process
// does that is killed: its log, its claim, a driver that is dead.
func (p *place) interrupted(task wire.Heal, step run.Worker) string {
	p.t.Helper()
	d, end := driver(p.t)
	defer end()
	task.Home, task.Driver = "here", &d
	n := p.open(func(c *Config) {
		c.Workers = slices.DeleteFunc([]run.Worker{run.Snapshot, run.Test, run.Debugger}, func(w run.Worker) bool { return w == step })
	})
	require.NoError(p.t, n.Start(p.t.Context(), "", false))
	id, err := n.Bus().Submit(p.t.Context(), "local", p.t.Name()+task.Dir, task)
	require.NoError(p.t, err)
	require.NoError(p.t, n.Bus().Follow(p.t.Context(), id, func(_ run.Event, s run.State) bool { return s.Step() != string(step) }))
	require.NoError(p.t, n.Close())
	p.claimed(task.Dir, id, d)
	return id
}

// state folds a run's log.
func (p *place) state(id string) run.State {
	p.t.Helper()
	n := p.open(nil)
	defer func() { require.NoError(p.t, n.Close()) }()
	s, err := n.state(p.t.Context(), id)
	require.NoError(p.t, err)
	return s
}
