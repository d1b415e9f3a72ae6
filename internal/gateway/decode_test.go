package gateway

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/wire"
)

func tasks(tb testing.TB) *wire.Tasks {
	tb.Helper()
	t, err := wire.NewTasks()
	require.NoError(tb, err)
	return t
}

func event(data string) string {
	return `{"specversion":"1.0","id":"7","source":"/ci","type":"dev.nexuscore.task.heal","traceparent":"00-1",` + data + `}`
}

func TestTasksAreRead(t *testing.T) {
	t.Parallel()
	dec := tasks(t)
	byEvent := []string{"event", "/ci", "7"}
	for _, c := range []struct {
		name, body string
		header     http.Header
		key        []string
	}{
		{"plain", `{"kind":"heal","dir":"/p"}`, http.Header{"Content-Type": {"application/json"}}, nil},
		{"charset", `{"kind":"heal","dir":"/p"}`, http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, nil},
		{"key", `{"kind":"heal","dir":"/p"}`, http.Header{
			"Content-Type": {"application/json"}, "Idempotency-Key": {"a b"},
		}, []string{"key", "a b"}},
		{"structured", event(`"data":{"dir":"/p"}`), http.Header{"Content-Type": {mediaStructured}}, byEvent},
		{"base64", event(`"data_base64":"eyJkaXIiOiIvcCJ9"`), http.Header{"Content-Type": {mediaStructured}}, byEvent},
		{"binary", `{"dir":"/p"}`, http.Header{
			"Content-Type": {"application/json"}, "Ce-Type": {"dev.nexuscore.task.heal"}, "Ce-Id": {"7"}, "Ce-Source": {"/ci"},
		}, byEvent},
	} {
		got, err := decodeTask(dec, c.header, []byte(c.body))
		require.NoError(t, err, c.name)
		require.Equal(t, "/p", got.Heal.Dir, c.name)
		require.Equal(t, c.key, got.Key, c.name)
	}
}

func TestWhatIsNoTaskIsRefusedWithOneSentence(t *testing.T) {
	t.Parallel()
	dec := tasks(t)
	const good = `{"kind":"heal","dir":"/p"}`
	plain := http.Header{"Content-Type": {mediaJSON}}
	structured := http.Header{"Content-Type": {mediaStructured}}
	with := func(name string, values ...string) http.Header {
		return http.Header{"Content-Type": {mediaJSON}, name: values}
	}
	for _, c := range []struct {
		body   string
		header http.Header
		status int
		says   string
	}{
		{``, plain, 400, "not JSON"},
		{`{"kind":"heal"`, plain, 400, "not JSON"},
		{good + ` x`, plain, 400, "not JSON"},
		{`null`, plain, 400, "malformed task"},
		{`{"kind":"heal"}`, plain, 400, "dir"},
		{`{"dir":"/p"}`, plain, 400, "missing kind"},
		{`{"KIND":"heal","dir":"/p"}`, plain, 400, "missing kind"},
		{`{"kind":7,"dir":"/p"}`, plain, 400, "must be a string"},
		{`{"kind":"build","dir":"/p"}`, plain, 400, "unknown kind"},
		{`{"kind":"heal","dir":"p"}`, plain, 400, "/dir"},
		{`{"kind":"heal","DIR":"/p"}`, plain, 400, "dir"},
		{`{"kind":"heal","dir":"/p","dry_run":true}`, plain, 400, `unknown field "dry_run": a task says "deliver": "none"`},
		{event(`"data":{"dir":"/p","dryrun":true}`), structured, 400, `unknown field "dryrun"`},
		{event(`"data":{"dir":"/p","limits":{"second":1}}`), structured, 400, `did you mean "seconds"?`},
		{`{"kind":"heal","dir":"/p","limits":{"seconds":-1}}`, plain, 400, "/limits/seconds"},
		{`{"kind":"heal","dir":"/p","driver":{"pid":1,"start":1,"host":"h"}}`, plain, 400, "driver"},
		{"{\"kind\":\"heal\",\"dir\":\"/\xff\"}", plain, 400, "UTF-8"},
		{`{"kind":"heal","dir":"/p","test":"` + strings.Repeat("<", 4097) + `"}`, plain, 400, "/test"},
		{`{"kind":"heal","dir":"/p","targets":["` + many(300, strings.Repeat("<", 1000)) + `"]}`, plain, 413, "1 MiB"},
		{good, http.Header{}, 415, "content type"},
		{good, http.Header{"Content-Type": {"text/plain"}}, 415, "content type"},
		{good, http.Header{"Content-Type": {"application/json; charset=latin1"}}, 415, "UTF-8"},
		{good, with("Idempotency-Key", "ä"), 400, "Idempotency-Key"},
		{good, with("Idempotency-Key", ""), 400, "Idempotency-Key"},
		{good, with("Idempotency-Key", "a", "b"), 400, "Idempotency-Key"},
		{good, structured, 400, "missing type"},
		{event(`"data":{"kind":"heal"}`), structured, 400, "dir"},
		{event(`"x":1`), structured, 400, "missing data"},
		{`{"dir":"/p"}`, with("Ce-Type", "heal"), 400, "unknown ce-type"},
	} {
		_, err := decodeTask(dec, c.header, []byte(c.body))
		var p *problem
		require.ErrorAs(t, err, &p, c.body)
		require.Equal(t, c.status, p.Status, "%.200s: %s", c.body, p.Detail)
		require.Contains(t, p.Detail, c.says, "%.200s", c.body)
		require.NotContains(t, p.Detail, "\n")
	}
}

// many repeats an element of a list of strings.
func many(n int, text string) string { return strings.Repeat(text+`","`, n-1) + text }

func TestAKeyIsMadeOrKept(t *testing.T) {
	t.Parallel()
	key, given := keyOf("local", wire.Received{})
	require.False(t, given)
	_, err := ulid.ParseStrict(key)
	require.NoError(t, err)
	key, given = keyOf("local", wire.Received{Key: []string{"key", "k"}})
	require.True(t, given)
	require.Equal(t, "k", key)
	key, given = keyOf("local", wire.Received{Key: []string{"event", "/ci", "7"}})
	require.True(t, given)
	require.Regexp(t, keyPattern, key)
	other, _ := keyOf("local", wire.Received{Key: []string{"event", "/ci7", ""}})
	require.NotEqual(t, key, other)
}

// FuzzDecodeTask holds that whatever is sent is a task that the decoder reads
// again in the same way, or is refused with a status of the caller.
func FuzzDecodeTask(f *testing.F) {
	for _, body := range []string{
		`{"kind":"heal","dir":"/p","targets":["a"],"limits":{"seconds":1e2,"events":50.0}}`, `{"dir":"/p"}`, `null`, `[]`, `{`,
		`{"kind":"heal","dir":"/p","dir":"/q","Dir":"/r"}`, event(`"data":{"dir":"/p"}`), event(`"data_base64":"e30="`),
		`{"kind":"heal","dir":"/\ud800"}`, `{"kind":"heal","dir":"/p","driver":null}`,
	} {
		f.Add(mediaJSON, "", "", []byte(body))
		f.Add(mediaStructured, "k", "dev.nexuscore.task.heal", []byte(body))
	}
	dec := tasks(f)
	f.Fuzz(func(t *testing.T, media, key, kind string, body []byte) {
		h := http.Header{"Content-Type": {media}}
		if key != "" {
			h.Set("Idempotency-Key", key)
		}
		if kind != "" {
			h.Set("Ce-Type", kind)
		}
		got, err := decodeTask(dec, h, body)
		if err != nil {
			var p *problem
			require.ErrorAs(t, err, &p)
			require.Contains(t, []int{400, 413, 415}, p.Status)
			text, err := json.Marshal(p)
			require.NoError(t, err)
			valid(t, "Problem", text)
			return
		}
		require.True(t, filepath.IsAbs(got.Heal.Dir))
		require.Nil(t, got.Heal.Driver)
		sent, err := json.Marshal(got.Heal)
		require.NoError(t, err)
		require.LessOrEqual(t, len(sent), maxTask)
		again, err := dec.Decode(wire.Header{"Content-Type": {mediaJSON}}, wire.KindHeal, sent)
		require.NoError(t, err, "%s", sent)
		require.Equal(t, got.Heal.Dir, again.Heal.Dir)
		resent, err := json.Marshal(again.Heal)
		require.NoError(t, err)
		require.Equal(t, string(sent), string(resent))
	})
}
