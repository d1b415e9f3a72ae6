package wire_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
	"nexuscore.dev/nexus/schemas"
)

func parsed(t require.TestingT, body []byte) any {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err)
	return doc
}

func outcomeSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := schemas.Compile(schemas.Outcome)
	require.NoError(t, err)
	return s
}

func TestOutcomesSurviveTheWire(t *testing.T) {
	t.Parallel()
	schema := outcomeSchema(t)
	for _, o := range []wire.Outcome{
		{Answer: &run.Answer{Snapshot: &run.SnapshotAnswer{Tree: run.Tree{Hash: "h", Files: 1}}}},
		{Answer: &run.Answer{Review: &run.ReviewAnswer{Word: run.WordHuman, Reasons: []string{"<&>\u2028"}}}},
		{Failure: &run.Failure{Category: "timeout", Message: ""}},
		{Failure: &run.Failure{
			Category: "rate_limit", Op: "llm: ask", Message: "slow", RetryAfter: 1.5, Exhausted: true, Quota: 3600, Status: 429, Calls: 2,
			BadInput: true,
		}},
		{Order: &run.Order{Kind: run.OrderResume, Reason: "go on", Driver: &run.Driver{PID: 1, Start: 1 << 60, Host: "h"}}},
	} {
		body, err := wire.EncodeOutcome(o)
		require.NoError(t, err)
		require.NoError(t, schema.Validate(parsed(t, body)), "%s", body)
		got, err := wire.DecodeOutcome(body)
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	for _, o := range []wire.Outcome{{}, {Answer: &run.Answer{}, Order: &run.Order{}}} {
		_, err := wire.EncodeOutcome(o)
		require.Error(t, err)
	}
}

func TestARefusedOutcomeNamesTheField(t *testing.T) {
	t.Parallel()
	schema := outcomeSchema(t)
	for body, says := range map[string]string{
		`{}`:   "exactly one",
		`null`: "not an object",
		`[]`:   "cannot unmarshal",
		`{"answer":{"test":{}},"failure":{"category":"x","message":""}}`:      "exactly one",
		`{"answer":{"test":{}},"order":null}`:                                 "exactly one",
		`{"Answer":{"test":{}}}`:                                              "exactly one",
		`{"answer":{}}`:                                                       "answer",
		`{"answer":{"test":{},"debug":{}}}`:                                   "answer",
		`{"answer":7}`:                                                        "answer",
		`{"failure":{"category":"x"}}`:                                        "message",
		`{"failure":{"message":"x"}}`:                                         "category",
		`{"failure":{"category":"","message":"x"}}`:                           "category",
		`{"failure":{"Category":"x","message":"x"}}`:                          "category",
		`{"failure":{"category":"x","message":null}}`:                         "message",
		`{"failure":{"category":"x","message":"x","op":null}}`:                "op",
		`{"failure":{"category":"x","message":"x","calls":-1}}`:               "calls",
		`{"failure":{"category":"x","message":"x","retry_after":-0.1}}`:       "retry_after",
		`{"failure":{"category":"x","message":"x","status":"429"}}`:           "status",
		`{"failure":[]}`:                                                      "failure",
		`{"order":{"kind":"explode"}}`:                                        "kind",
		`{"order":{}}`:                                                        "kind",
		`{"order":[]}`:                                                        "order",
		`{"order":{"kind":"park","reason":null}}`:                             "reason",
		`{"order":{"kind":"resume","driver":null}}`:                           "driver",
		`{"order":{"kind":"resume","driver":{"pid":1,"start":2}}}`:            "host",
		`{"order":{"kind":"resume","driver":{"pid":0,"start":2,"host":"h"}}}`: "pid",
	} {
		require.Error(t, schema.Validate(parsed(t, []byte(body))), body)
		_, err := wire.DecodeOutcome([]byte(body))
		require.ErrorIs(t, err, wire.ErrMalformed, body)
		require.ErrorContains(t, err, says, body)
	}
	_, err := wire.DecodeOutcome([]byte(`{"answer":`))
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// Unknown fields are ignored, and those that only look like known ones are
// unknown.
func TestUnknownFieldsOfAnOutcome(t *testing.T) {
	t.Parallel()
	o, err := wire.DecodeOutcome([]byte(
		`{"failure":{"category":"timeout","message":"m","CALLS":"many","new":1},"trace":"t","ORDER":{"kind":"cancel"}}`))
	require.NoError(t, err)
	require.Equal(t, wire.Outcome{Failure: &run.Failure{Category: "timeout", Message: "m"}}, o)
}

// TestDecoderAndSchemaAgree mixes outcomes of right and wrong pieces: the
// decoder takes exactly those that the published schema takes.
func TestDecoderAndSchemaAgree(t *testing.T) {
	t.Parallel()
	schema := outcomeSchema(t)
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		body := object(t, map[string][]string{
			"answer":  {`{"report":{"path":"x"}}`, `{}`, `null`, `{"test":{},"debug":{}}`, `{"unheard_of":{}}`},
			"failure": {failureBody(t), failureBody(t), `null`, `[]`},
			"order":   {orderBody(t), orderBody(t), `"cancel"`},
			"other":   {`1`, `null`},
		})
		want := schema.Validate(parsed(t, []byte(body)))
		_, got := wire.DecodeOutcome([]byte(body))
		if (want == nil) != (got == nil) {
			t.Fatalf("%s\nschema:  %v\ndecoder: %v", body, want, got)
		}
		if got == nil {
			accepted++
		}
	})
	require.Positive(t, accepted)
}

func failureBody(t *rapid.T) string {
	numbers := []string{"0", "1", "-1", `"1"`, "null"}
	return object(t, map[string][]string{
		"category": {`"timeout"`, `"timeout"`, `"timeout"`, `""`, "7"}, "message": {`"m"`, `"m"`, `""`, "null"},
		"op": {`"o"`, "null"}, "retry_after": append(numbers, "0.5"), "quota": numbers, "exhausted": {"true", "1"},
		"status": numbers, "bad_input": {"false", "null"}, "calls": numbers, "Category": {"7"}, "new": {"null"},
	})
}

func orderBody(t *rapid.T) string {
	driver := object(t, map[string][]string{
		"pid": {"1", "1", "0", `"1"`}, "start": {"2", "2", "-2"}, "host": {`"h"`, `"h"`, "null"}, "Pid": {"5"},
	})
	return object(t, map[string][]string{
		"kind": {`"park"`, `"resume"`, `"cancel"`, `"x"`, "null"}, "reason": {`"r"`, "null"}, "driver": {driver, "null"},
	})
}

// object is a JSON object with some of the fields, each with one of its
// values; the first value is the likeliest.
func object(t *rapid.T, fields map[string][]string) string {
	var b bytes.Buffer
	for _, name := range sorted(fields) {
		likely := name == "category" || name == "message" || name == "kind" || name == "pid" || name == "start" || name == "host"
		if !likely && rapid.IntRange(0, 3).Draw(t, name) < 2 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, rapid.SampledFrom(fields[name]).Draw(t, name))
	}
	return "{" + b.String() + "}"
}

// FuzzOutcome: a decoder never panics, and what it accepts the schema accepts.
func FuzzOutcome(f *testing.F) {
	f.Add([]byte(`{"failure":{"category":"timeout","message":"m","calls":1}}`))
	f.Add([]byte(`{"order":{"kind":"resume","driver":{"pid":1,"start":2,"host":"h"}}}`))
	f.Add([]byte(`{"answer":{"test":{"results":[{"rank":0,"verdict":{"kind":"passed"}}]}}}`))
	schema := outcomeSchema(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := wire.DecodeOutcome(body)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		require.NoError(t, schema.Validate(parsed(t, body)), "%s", body)
		again, err := wire.EncodeOutcome(o)
		require.NoError(t, err)
		back, err := wire.DecodeOutcome(again)
		if o.Answer == nil || *o.Answer != (run.Answer{}) {
			require.NoError(t, err, "%s", again)
			twice, err := wire.EncodeOutcome(back)
			require.NoError(t, err)
			require.Equal(t, string(again), string(twice))
		}
	})
}
