package wire_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
	"nexuscore.dev/nexus/schemas"
)

func tasks(t testing.TB) *wire.Tasks {
	t.Helper()
	ts, err := wire.NewTasks()
	require.NoError(t, err)
	return ts
}

const fullTask = `{
	"dir": "/home/user/project", "home": "host-1", "test": "python -m pytest", "targets": ["calc.py"],
	"sources": ["engine", "model"], "deliver": "patch", "in_place": true, "report": true,
	"limits": {"debug_attempts": 5, "ast_fails": 3, "review_rounds": 0, "model_calls": 0, "seconds": 1.5, "events": 50, "delay_scale": 0.1},
	"driver": {"pid": 12, "start": 9007199254740992, "host": "host-1"},
	"kind": "heal"
}`

func TestATaskIsRead(t *testing.T) {
	t.Parallel()
	got, err := tasks(t).Decode(nil, wire.KindHeal, []byte(fullTask))
	require.NoError(t, err)
	h := got.Heal
	require.Equal(t, "/home/user/project", h.Dir)
	require.Equal(t, []string{"engine", "model"}, h.Sources)
	require.Equal(t, &run.Driver{PID: 12, Start: 1 << 53, Host: "host-1"}, h.Driver)
	require.True(t, h.InPlace && h.Report)
	zero := 0
	require.Equal(t, run.Limits{
		DebugAttempts: 5, ASTFails: 3, ModelCalls: &zero, Seconds: 1.5, Events: 50, DelayScale: 0.1,
	}, h.Limits.Over(run.DefaultLimits()))

	var none *wire.HealLimits
	require.Equal(t, run.DefaultLimits(), none.Over(run.DefaultLimits()))
	require.Equal(t, run.DefaultLimits(), (&wire.HealLimits{}).Over(run.DefaultLimits()))
}

// What the schema takes for an integer is one, however it is written.
func TestNumbersOfOtherLanguages(t *testing.T) {
	t.Parallel()
	got, err := tasks(t).Decode(nil, wire.KindHeal, []byte(`{"dir":"/a","limits":{"debug_attempts":3.0,"events":1e2,"seconds":1e2}}`))
	require.NoError(t, err)
	require.Equal(t, 3, *got.Heal.Limits.DebugAttempts)
	require.Equal(t, 100, *got.Heal.Limits.Events)
	require.InDelta(t, 100, *got.Heal.Limits.Seconds, 0)
}

// A field that no version of ours reads may be what keeps a folder from being
// written: the task is refused, with the field that was meant.
func TestAnUnknownFieldIsRefused(t *testing.T) {
	t.Parallel()
	for field, says := range map[string]string{
		`"dry_run":true`:                 `unknown field "dry_run": a task says "deliver": "none"`,
		`"dry-run":true`:                 `a task says "deliver": "none"`,
		`"max_calls":0`:                  `"limits": {"model_calls": …}`,
		`"timeout":4`:                    `"limits": {"seconds": …}`,
		`"delivr":"none"`:                `unknown field "delivr": did you mean "deliver"?`,
		`"DELIVER":"none"`:               `unknown field "DELIVER": did you mean "deliver"?`,
		`"te\u017ft":"rm"`:               `did you mean "test"?`,
		`"inplace":true`:                 `did you mean "in_place"?`,
		`"seconds":4`:                    `unknown field "seconds": did you mean "limits/seconds"?`,
		`"limits":{"model_call":0}`:      `unknown field "limits/model_call": did you mean "model_calls"?`,
		`"limits":{"Events":50}`:         `unknown field "limits/Events": did you mean "events"?`,
		`"zzzzzzzz":1,"deliver":"patch"`: `unknown field "zzzzzzzz": the known ones are child, deliver, dir,`,
		`"a\nb":1`:                       `unknown field "a\nb"`,
		`"driver":{"pid":1,"start":2,"host":"h","uid":0}`:                                       `unknown field "driver/uid"`,
		`"child":{"parent":"aaaaaaaaaaaaaaaaaaaaaaaaaa","decision":"retry","by":"me","hnt":""}`: `did you mean "hint"?`,
		`"kind":"bake"`: "/kind",
	} {
		_, err := tasks(t).Decode(nil, wire.KindHeal, []byte(`{"dir":"/a",`+field+`}`))
		require.ErrorIs(t, err, wire.ErrMalformed, field)
		require.ErrorContains(t, err, says, field)
		require.NotContains(t, err.Error(), "\n", field)
	}
}

func TestARefusalNamesTheField(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{}`:                                                      "'dir'",
		`{"dir":"relative"}`:                                      "/dir",
		`{"dir":"/"}`:                                             "/dir",
		`{"dir":"/a\u0000b"}`:                                     "/dir",
		`{"dir":7}`:                                               "/dir",
		`{"dir":"/a","home":"a.b"}`:                               "/home",
		`{"dir":"/a","test":["a"]}`:                               "/test",
		`{"dir":"/a","test":""}`:                                  "/test",
		`{"dir":"/a","test":" "}`:                                 "/test",
		`{"dir":"/a","targets":"a"}`:                              "/targets",
		`{"dir":"/a","targets":[""]}`:                             "/targets/0",
		`{"dir":"/a","sources":[]}`:                               "/sources",
		`{"dir":"/a","sources":["luck"]}`:                         "/sources/0",
		`{"dir":"/a","sources":["engine","engine"]}`:              "/sources",
		`{"dir":"/a","deliver":"fax"}`:                            "/deliver",
		`{"dir":"/a","in_place":"yes"}`:                           "/in_place",
		`{"dir":"/a","report":null}`:                              "/report",
		`{"dir":"/a","limits":[]}`:                                "/limits",
		`{"dir":"/a","limits":{"debug_attempts":0}}`:              "/limits/debug_attempts",
		`{"dir":"/a","limits":{"debug_attempts":51}}`:             "/limits/debug_attempts",
		`{"dir":"/a","limits":{"ast_fails":1.5}}`:                 "/limits/ast_fails",
		`{"dir":"/a","limits":{"review_rounds":-1}}`:              "/limits/review_rounds",
		`{"dir":"/a","limits":{"model_calls":1e30}}`:              "/limits/model_calls",
		`{"dir":"/a","limits":{"seconds":0}}`:                     "/limits/seconds",
		`{"dir":"/a","limits":{"events":901}}`:                    "/limits/events",
		`{"dir":"/a","limits":{"delay_scale":101}}`:               "/limits/delay_scale",
		`{"dir":"/a","driver":{"pid":1,"start":2}}`:               "'host'",
		`{"dir":"/a","driver":{"pid":0,"start":2,"host":"h"}}`:    "/driver/pid",
		`{"dir":"/a","driver":{"pid":1,"start":1e40,"host":"h"}}`: "/driver/start",
		`[]`:             "object",
		`null`:           "object",
		``:               "not JSON",
		`{"dir":"/a"`:    "not JSON",
		`{"dir":"/a"} x`: "not JSON",
	} {
		_, err := tasks(t).Decode(nil, wire.KindHeal, []byte(body))
		require.ErrorIs(t, err, wire.ErrMalformed, body)
		require.ErrorContains(t, err, field, body)
		require.NotContains(t, err.Error(), "\n", body)
	}
	_, err := tasks(t).Decode(nil, "bake", []byte(`{"dir":"/a"}`))
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, `"bake"`)
}

// Whatever the schema and the types let through, the limits of the core do
// not differ from those of the schema.
func TestSchemaAndCoreAgreeOnLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{
		`{"debug_attempts":1}`, `{"debug_attempts":50}`, `{"ast_fails":1}`, `{"ast_fails":50}`, `{"review_rounds":0}`,
		`{"review_rounds":50}`, `{"model_calls":0}`, `{"seconds":0.001}`, `{"seconds":604800}`, `{"events":50}`,
		`{"events":900}`, `{"delay_scale":0.001}`, `{"delay_scale":100}`,
	} {
		got, err := tasks(t).Decode(nil, wire.KindHeal, []byte(`{"dir":"/a","limits":`+limits+`}`))
		require.NoError(t, err, limits)
		require.NoError(t, got.Heal.Limits.Over(run.DefaultLimits()).Validate(), limits)
	}
}

func TestWhatIdentifiesATask(t *testing.T) {
	t.Parallel()
	event := func(id, source, rest string) string {
		return fmt.Sprintf(`{"specversion":"1.0","type":"x","id":%q,"source":%q%s}`, id, source, rest)
	}
	data := `,"traceparent":"00-1","dry_run":"an attribute is free","data":{"dir":"/a"}`
	encoded := `,"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(`{"dir":"/a"}`)) + `"`
	structured := wire.Header{"Content-Type": {"Application/CloudEvents+JSON; charset=utf-8"}}
	for name, c := range map[string]struct {
		header wire.Header
		body   string
		key    []string
	}{
		"plain":          {nil, `{"dir":"/a"}`, nil},
		"key":            {wire.Header{"Idempotency-Key": {"k"}}, `{"dir":"/a"}`, []string{"key", "k"}},
		"binary":         {wire.Header{"ce-id": {"1"}, "Ce-Source": {"/s"}}, `{"dir":"/a"}`, []string{"event", "/s", "1"}},
		"id alone":       {wire.Header{"ce-id": {"1"}}, `{"dir":"/a"}`, nil},
		"key before id":  {wire.Header{"ce-id": {"1"}, "ce-source": {"/s"}, "idempotency-key": {"k"}}, `{"dir":"/a"}`, []string{"key", "k"}},
		"structured":     {structured, event("1", "/s", data), []string{"event", "/s", "1"}},
		"base64":         {structured, event("1", "/s", encoded), []string{"event", "/s", "1"}},
		"empty header":   {wire.Header{"idempotency-key": {}}, `{"dir":"/a"}`, nil},
		"other json":     {wire.Header{"content-type": {"application/json"}}, `{"dir":"/a"}`, nil},
		"no media type":  {wire.Header{"content-type": {";;;"}}, `{"dir":"/a"}`, nil},
		"structured key": {wire.Header{"content-type": structured["Content-Type"], "Idempotency-Key": {"k"}}, event("1", "/s", data), []string{"key", "k"}},
	} {
		got, err := tasks(t).Decode(c.header, wire.KindHeal, []byte(c.body))
		require.NoError(t, err, name)
		require.Equal(t, "/a", got.Heal.Dir, name)
		require.Equal(t, c.key, got.Key, name)
	}
	for says, body := range map[string]string{
		"specversion":   `{"specversion":"0.3","id":"1","source":"/s","data":{"dir":"/a"}}`,
		"id and source": event("", "/s", data),
		"missing data":  event("1", "/s", ""),
		"structured":    `[]`,
		"/dir":          event("1", "/s", `,"data":{"dir":"a"}`),
		"base64":        event("1", "/s", `,"data_base64":"*"`),
	} {
		_, err := tasks(t).Decode(structured, wire.KindHeal, []byte(body))
		require.ErrorIs(t, err, wire.ErrMalformed, says)
		require.ErrorContains(t, err, says)
	}
}

// FuzzTask: a decoder never panics, and what it accepts the schema accepts
// and the core can check.
func FuzzTask(f *testing.F) {
	f.Add("application/json", []byte(fullTask))
	f.Add("application/cloudevents+json", []byte(`{"specversion":"1.0","id":"1","source":"/s","data":{"dir":"/a"}}`))
	f.Add("", []byte(`{"dir":"/a","DIR":"b","limits":{"events":50.0}}`))
	ts := tasks(f)
	heal, err := schemas.Compile(schemas.Heal)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		got, err := ts.Decode(wire.Header{"content-type": {media}}, wire.KindHeal, body)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.NotContains(t, strings.TrimSpace(err.Error()), "\n")
			return
		}
		again, err := json.Marshal(got.Heal)
		require.NoError(t, err)
		doc := parsed(t, again)
		require.NoError(t, heal.Validate(doc), "%s", again)
		require.NoError(t, got.Heal.Limits.Over(run.DefaultLimits()).Validate())
	})
}
