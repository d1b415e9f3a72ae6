package failure_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
)

// TestSpecification holds the 44 cases that CR-NEXUS-051 names, section by
// section (4.1.1 to 4.1.7).
func TestSpecification(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   failure.Signal
		want failure.Category
	}{
		// 4.1.1: own types
		{"own rate limit", failure.Signal{Type: "ModelRateLimitError"}, failure.RateLimit},
		{"own timeout", failure.Signal{Type: "ModelTimeoutError"}, failure.Timeout},
		{"own connection", failure.Signal{Type: "ModelConnectionError"}, failure.Connection},
		{"own invalid output", failure.Signal{Type: "InvalidModelOutputError"}, failure.InvalidOutput},
		{"own sandbox", failure.Signal{Type: "SandboxExecutionError"}, failure.Sandbox},
		{"own patch", failure.Signal{Type: "PatchApplyError"}, failure.PatchApply},
		{"own base", failure.Signal{Type: "NexusCoreError", Message: "connection lost"}, failure.Unexpected},
		{"own unexpected", failure.Signal{Type: "UnexpectedSystemError", Message: "timeout"}, failure.Unexpected},
		// 4.1.2: messages
		{"429", failure.Signal{Message: "HTTP 429: slow down"}, failure.RateLimit},
		{"rate limit", failure.Signal{Message: "the rate limit was hit"}, failure.RateLimit},
		{"timeout", failure.Signal{Message: "request timeout"}, failure.Timeout},
		{"timed out", failure.Signal{Message: "the request timed out"}, failure.Timeout},
		{"connection", failure.Signal{Message: "connection lost"}, failure.Connection},
		{"network", failure.Signal{Message: "network is down"}, failure.Connection},
		{"dns", failure.Signal{Message: "dns lookup went wrong"}, failure.Connection},
		{"json type", failure.Signal{Type: "JSONParseError", Message: "something"}, failure.InvalidOutput},
		{"json message", failure.Signal{Message: "no valid json"}, failure.InvalidOutput},
		{"parse type", failure.Signal{Type: "ParseError", Message: "something"}, failure.InvalidOutput},
		{"sandbox", failure.Signal{Message: "sandbox exited with 3"}, failure.Sandbox},
		{"subprocess", failure.Signal{Message: "subprocess gone"}, failure.Sandbox},
		{"patch", failure.Signal{Message: "the patch was rejected"}, failure.PatchApply},
		// 4.1.3: type names
		{"TimeoutError", failure.Signal{Type: "TimeoutError", Message: "x"}, failure.Timeout},
		{"ConnectionError", failure.Signal{Type: "ConnectionError", Message: "x"}, failure.Connection},
		// 4.1.4: fallback
		{"unknown", failure.Signal{Message: "something else"}, failure.Unexpected},
		{"KeyError", failure.Signal{Type: "KeyError", Message: "'timeout'"}, failure.Unexpected},
		{"AttributeError", failure.Signal{Type: "AttributeError", Message: "no attribute 'connection'"}, failure.Unexpected},
		// 4.1.7: edges
		{"empty", failure.Signal{}, failure.Unexpected},
		{"priority", failure.Signal{Message: "timeout of the connection: 429 too many requests, bad json"}, failure.RateLimit},
		{"case", failure.Signal{Message: "ReQuEsT TiMeD oUt"}, failure.Timeout},
		{"line breaks", failure.Signal{Message: "first\nconnection refused\r\nlast"}, failure.Connection},
		{"special characters", failure.Signal{Message: "<<\x00!! dns ::: 🤖 >>"}, failure.Connection},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, failure.ExplainSignal(c.in).Category)
		})
	}
}

// TestSpecificationConvert holds sections 4.1.5 and 4.1.6.
func TestSpecificationConvert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		category failure.Category
		typeName string
	}{
		"rate limit exceeded":        {failure.RateLimit, "ModelRateLimitError"},
		"request timed out":          {failure.Timeout, "ModelTimeoutError"},
		"connection lost":            {failure.Connection, "ModelConnectionError"},
		"invalid json":               {failure.InvalidOutput, "InvalidModelOutputError"},
		"sandbox failed":             {failure.Sandbox, "SandboxExecutionError"},
		"patch failed":               {failure.PatchApply, "PatchApplyError"},
		"anything else":              {failure.Unexpected, "UnexpectedSystemError"},
		"original: API key is wrong": {failure.Unexpected, "UnexpectedSystemError"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			cause := errors.New(text)
			e := failure.Convert(cause, "step")
			require.Equal(t, want.category, e.Category)
			require.Equal(t, want.typeName, e.Category.TypeName())
			require.Equal(t, "step: "+text, e.Error(), "the message is kept")
			require.ErrorIs(t, e, cause)
			require.NotEmpty(t, e.Reason)
			require.Same(t, e, failure.Convert(e, "another step"), "an own error is returned as it is")

			var caught *failure.Error // one type catches every category
			require.ErrorAs(t, fmt.Errorf("outer: %w", e), &caught)
			require.Equal(t, want.category, caught.Category)
		})
	}
}
