package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// Two agent processes share a server and nothing else: one has the workers
// that touch projects, the other the rest and the conductor. A client that is
// not ours hands the task in.
func TestAgentProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := external(t, true)
	agents := filepath.Join(w.dir, "agents")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agents, "../agents")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	var procs []*exec.Cmd
	for _, args := range [][]string{
		{"--only", "debugger,validate,test,guardian,policy"},
		{"--only", "snapshot,apply,deliver,rollback,report", "--no-conductor"},
	} {
		cmd := exec.CommandContext(t.Context(), agents, append([]string{"--nats", url}, args...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = w.env, &buffer{}, &buffer{}
		require.NoError(t, cmd.Start())
		procs = append(procs, cmd)
		ready, _ := cmd.Stdout.(*buffer)
		require.Eventually(t, func() bool { return strings.Contains(ready.String(), "working on "+strings.TrimPrefix(url, "nats://")) }, 30*time.Second, 20*time.Millisecond)
	}
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	dir := w.project("calc")
	body, err := json.Marshal(map[string]any{"dir": dir, "sources": []string{"engine"}})
	require.NoError(t, err)
	ack, err := nc.Request("nexus.task.local.heal", body, 10*time.Second)
	require.NoError(t, err)
	require.Contains(t, string(ack.Data), `"TASKS"`)
	var sum run.Summary
	require.Eventually(t, func() bool {
		r := w.nexus("run", "ls", "--json", "--nats", url)
		return json.Unmarshal([]byte(r.out), &sum) == nil && sum.Step == "closed"
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, run.Approved, sum.State, sum.Reason)
	for _, cmd := range procs {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	w.clean(dir)
}
