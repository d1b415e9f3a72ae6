package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// deadLetter waits until the list holds one letter and returns its number.
func (w *world) deadLetter() string {
	w.t.Helper()
	var number string
	require.Eventually(w.t, func() bool {
		r := w.nexus("dead", "ls", "--json")
		var l struct {
			ID json.Number `json:"id"`
		}
		if r.exit != 0 || json.Unmarshal([]byte(strings.SplitN(r.out, "\n", 2)[0]), &l) != nil {
			return false
		}
		number = l.ID.String()
		return true
	}, time.Minute, 100*time.Millisecond)
	return number
}

// A stranger's malformed task is found, read, mended in an editor and becomes
// a run that heals.
func TestDeadLetterIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "no dead letters\n", w.nexus("dead", "ls").out)
	dir := w.project("calc")
	url, stop := w.up()
	defer stop()
	w.publish("nexus.task.local.heal", `{"folder":"`+dir+`","note":"\u001b[31m"}`)
	id := w.deadLetter()

	list := w.nexus("dead", "ls")
	require.Regexp(t, `(?m)^ID +CATEGORY +AT +RUN +REASON$`, list.out)
	require.Regexp(t, `(?m)^`+id+` +poison .*unknown field "folder"`, list.out)
	shown := w.nexus("dead", "show", id)
	require.Zero(t, shown.exit, shown.err)
	require.Contains(t, shown.out, `"folder"`)
	require.NotContains(t, shown.out, "\x1b")

	again := w.nexus("dead", "requeue", id)
	require.Equal(t, 1, again.exit)
	require.Contains(t, again.err, "folder")
	require.Contains(t, again.err, "letter "+id+" is kept")

	w.write(w.dir, "same.sh", "exit 0\n")
	same := w.with([]string{"VISUAL=sh " + filepath.Join(w.dir, "same.sh")}, "dead", "edit", id)
	require.Equal(t, 1, same.exit)
	require.Contains(t, same.err, "nothing was changed")

	w.write(w.dir, "edit.sh", `printf '{"dir":"%s","sources":["engine"]}' `+dir+` > "$1"`+"\n")
	edited := w.with([]string{"VISUAL=sh " + filepath.Join(w.dir, "edit.sh")}, "dead", "edit", id)
	require.Zero(t, edited.exit, edited.err)
	found := regexp.MustCompile(`is now run ([a-z2-7]{26})`).FindStringSubmatch(edited.out)
	require.NotNil(t, found, edited.out)
	require.Equal(t, run.Approved, w.until(url, found[1]).State)
	require.Equal(t, "no dead letters\n", w.nexus("dead", "ls").out)
	require.Contains(t, w.nexus("dead", "drop", id).err, "there is no dead letter "+id)
}

// A refused task is started again from a file, and what nobody wants is dropped.
func TestDeadLetterIsRequeued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, stop := w.up()
	defer stop()
	w.publish("nexus.task.local.heal", `{"dir":"relative"}`)
	id := w.deadLetter()
	dir := w.project("calc")
	w.write(w.dir, "task.json", `{"dir":"`+dir+`","sources":["engine"],"deliver":"none"}`)
	r := w.nexus("dead", "requeue", id, "--payload", filepath.Join(w.dir, "task.json"))
	require.Zero(t, r.exit, r.err)
	require.Equal(t, run.Approved, w.until(url, w.only(url)).State)

	w.publish("nexus.task.local.heal", `{"dir":"`+dir+`-gone"}`)
	id = w.deadLetter()
	shown := w.nexus("dead", "show", id)
	require.Contains(t, shown.out, "has no such folder")
	require.Contains(t, shown.out, "no run was opened; 'nexus dead requeue "+id+"'")
	require.NotContains(t, shown.out, "nexus run show", "there is none to show")
	drop := w.nexus("dead", "drop", id)
	require.Zero(t, drop.exit, drop.err)
	require.Equal(t, "no dead letters\n", w.nexus("dead", "ls").out)
}

// publish sends a message to the owner's server with the credentials that it
// gives to clients.
func (w *world) publish(subject, body string) {
	w.t.Helper()
	nc, err := nats.Connect(w.address().URL)
	require.NoError(w.t, err)
	defer nc.Close()
	require.NoError(w.t, nc.Publish(subject, []byte(body)))
	require.NoError(w.t, nc.Flush())
}
