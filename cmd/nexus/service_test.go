package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// up starts `nexus up` and returns the address of its gateway.
func (w *world) up() (url string, stop func()) {
	w.t.Helper()
	cmd := w.background("up", "--listen", "127.0.0.1:0", "--root", w.dir)
	out, _ := cmd.Stdout.(*buffer)
	address := regexp.MustCompile(`gateway +(http://\S+)`)
	require.Eventually(w.t, func() bool { return address.MatchString(out.String()) }, 30*time.Second, 20*time.Millisecond)
	return address.FindStringSubmatch(out.String())[1], func() {
		require.NoError(w.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(w.t, cmd.Wait(), out.String())
	}
}

// until polls the gateway until the run is closed.
func (w *world) until(url, id string) run.Summary {
	w.t.Helper()
	var sum run.Summary
	require.Eventually(w.t, func() bool {
		res, err := http.Get(url + "/v1/runs/" + id) //nolint:noctx // bounded by the test
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return err == nil && json.Unmarshal(body, &sum) == nil && sum.Step == "closed"
	}, time.Minute, 50*time.Millisecond)
	return sum
}

func TestGatewayHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, stop := w.up()
	defer stop()
	dir := w.project("calc")
	res, err := http.Post(url+"/v1/tasks", "application/json", //nolint:noctx // bounded by the test
		strings.NewReader(`{"kind":"heal","sources":["engine"],"dir":"`+dir+`"}`))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusAccepted, res.StatusCode)
	var took struct {
		Run string `json:"run"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&took))
	require.Equal(t, run.Approved, w.until(url, took.Run).State)
	w.clean(dir)

	res, err = http.Post(url+"/v1/tasks", "application/json", //nolint:noctx // bounded by the test
		strings.NewReader(`{"kind":"heal","dir":"`+dir+`-gone"}`))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, "no run is opened for a folder that is not there")
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "has no such folder")
}

// readme returns the first fenced block of a language in the README.
func readme(t *testing.T, lang string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "```"+lang+"\n")
	require.True(t, ok)
	block, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	return block
}

// The README's client knows nothing of this code base: it speaks to the socket.
func TestReadmeClientHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, stop := w.up()
	defer stop()
	dir := w.project("calc")
	state := filepath.Join(w.dir, "xdg", "nexus")
	out, err := exec.Command("python3", "-c", readme(t, "python"), state, dir).CombinedOutput() //nolint:noctx // the README's own text
	require.NoError(t, err, string(out))
	id := w.only(url)
	require.Equal(t, run.Approved, w.until(url, id).State)
}

// only waits for the one run that there is.
func (w *world) only(url string) string {
	w.t.Helper()
	var list struct {
		Runs []struct {
			Run string `json:"run"`
		} `json:"runs"`
	}
	require.Eventually(w.t, func() bool {
		res, err := http.Get(url + "/v1/runs") //nolint:noctx // bounded by the test
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return json.NewDecoder(res.Body).Decode(&list) == nil && len(list.Runs) == 1
	}, 30*time.Second, 50*time.Millisecond)
	return list.Runs[0].Run
}

// A stranger's malformed messages become dead letters, and nothing stops.
func TestStrangersNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, stop := w.up()
	defer stop()
	state := filepath.Join(w.dir, "xdg", "nexus")
	client := strings.Replace(readme(t, "python"), `json.dumps({"dir": os.path.abspath(sys.argv[2])}).encode()`, `b"{not json"`, 1)
	out, err := exec.Command("python3", "-c", client, state, "x").CombinedOutput() //nolint:noctx // the README's own text
	require.NoError(t, err, string(out))
	dir := w.project("calc")
	out, err = exec.Command("python3", "-c", readme(t, "python"), state, dir).CombinedOutput() //nolint:noctx // the README's own text
	require.NoError(t, err, string(out))
	require.Equal(t, run.Approved, w.until(url, w.only(url)).State)
}

// external starts a stand-alone NATS server.
func external(t *testing.T, jetstream bool) string {
	t.Helper()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: jetstream, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	require.NoError(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	require.True(t, ns.ReadyForConnections(10*time.Second))
	addr, ok := ns.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return "nats://" + addr.String()
}

func TestExternalServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.project("calc")
	url := external(t, true)
	sum, r := w.heal(dir, "--source", "engine", "--nats", url)
	require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
	r = w.nexus("run", "ls", "--nats", url)
	require.Contains(t, r.out, sum.Run[:8])
}

func TestUnsuitableServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.nexus("heal", w.project("calc"), "--nats", external(t, false))
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "JetStream")
}

// Eight heals of eight folders share one state folder. When the process that
// runs the bus is killed, and the next one that runs it too, the others go on
// without them, and the next command of the two folders gets them right.
func TestEightHealsAndTheOwnerDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script("answer times=* " + `"` + strings.ReplaceAll(strings.ReplaceAll(fenced(calcFixed), "\n", `\n`), `"`, `\"`) + `"`)
	cmds := map[int]*exec.Cmd{}
	var dirs []string
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		dir := w.project(name)
		dirs = append(dirs, dir)
		args := []string{"heal", dir, "--source", "model"}
		if i%2 == 1 {
			args = append(args, "--in-place")
		}
		cmd := w.background(args...)
		cmds[cmd.Process.Pid] = cmd
	}
	for range 2 {
		<-m.Arrived()
		owner := w.owner()
		_ = cmds[owner].Process.Kill() // it may be done
		_ = cmds[owner].Wait()
		delete(cmds, owner)
	}
	for _, cmd := range cmds {
		_ = cmd.Wait()
		out, errs := cmd.Stdout.(*buffer).String(), cmd.Stderr.(*buffer).String()
		require.Zero(t, cmd.ProcessState.ExitCode(), "%s\n%s", out, errs)
		require.Equal(t, 1, strings.Count(out, "snapshot "), "no step is shown twice: %s", out)
	}
	for _, dir := range dirs {
		sum, r := w.heal(dir, "--source", "model")
		require.Equal(t, run.Approved, sum.State, "%s\n%s", r.out, r.err)
		text, err := os.ReadFile(filepath.Join(dir, "calc.py"))
		require.NoError(t, err)
		require.Equal(t, calcFixed, string(text))
	}
	for _, dir := range dirs {
		w.clean(dir)
	}
}

// TestServiceWaitsForAHeal: a service that is started again while a heal has
// taken the bus over begins when that heal has ended; beside another service it
// is an error.
func TestServiceWaitsForAHeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.script(`hang times=* "def"`)
	shows := func(cmd *exec.Cmd, text string) {
		t.Helper()
		out := cmd.Stdout.(*buffer)
		require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, 40*time.Second, 10*time.Millisecond, "%s", text)
	}
	up := w.background("up", "--listen", "off")
	shows(up, "nexus is up")
	r := w.nexus("up", "--listen", "off")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "is a nexus service")
	heal := w.background("heal", w.project("calc"), "--source", "model")
	<-m.Arrived()
	require.NoError(t, up.Process.Kill())
	_ = up.Wait()
	shows(heal, "goes on without it")
	again := w.background("up", "--listen", "off")
	shows(again, "for its heal; this service begins when it has ended")
	require.NoError(t, heal.Process.Signal(syscall.SIGTERM))
	require.Error(t, heal.Wait())
	require.Equal(t, 2, heal.ProcessState.ExitCode(), "%s", heal.Stdout)
	shows(again, "nexus is up")
	require.NoError(t, again.Process.Signal(syscall.SIGTERM))
	require.NoError(t, again.Wait())
}

// owner is the process that runs the bus.
func (w *world) owner() int { return w.address().PID }

// address is how the owner says that it can be reached.
type address struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
}

func (w *world) address() (a address) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "xdg", "nexus", "owner.json"))
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(text, &a))
	return a
}

// TestServiceTellsOfABurst: runs that fail one after the other in a way that
// nothing classifies are told to whoever looks at the service.
func TestServiceTellsOfABurst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(`status 401 times=* "bad key"`)
	cmd := w.background("up", "--listen", "off")
	out, _ := cmd.Stdout.(*buffer)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "nexus is up") }, time.Minute, 20*time.Millisecond)
	for i := range 5 {
		if i == 4 {
			require.NotContains(t, w.nexus("doctor").out, "nothing classifies")
		}
		sum, r := w.heal(w.project(fmt.Sprint("calc", i)), "--source", "model")
		require.Equal(t, run.Failed, sum.State, r.out)
	}
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "5 runs failed within 10m0s") }, time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), out.String())
	require.Regexp(t, `✗ failures .*5 runs failed`, w.nexus("doctor").out, "also after a restart")
}
