package llm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is a made-up key in no provider's format.
const key = "hush-hush-4711-key"

// client is a Client of a scripted server.
func client(t *testing.T, url string, change ...func(*llm.Config)) *llm.Client {
	t.Helper()
	cfg := llm.Config{BaseURL: url, Model: "scripted", APIKey: llm.NewSecret(key), Timeout: time.Minute, Idle: 30 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	c, err := llm.New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// ask asks a server with one step.
func ask(t *testing.T, step llmtest.Step, change ...func(*llm.Config)) (llm.Answer, error) {
	t.Helper()
	s := llmtest.New(t, step)
	return client(t, s.URL, change...).Ask(t.Context(), llm.Request{Prompt: "fix it"})
}

// failed asserts that err is a failure of category c that holds no key.
func failed(t *testing.T, err error, c failure.Category) *failure.Error {
	t.Helper()
	var f *failure.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, c, f.Category, "%v", err)
	require.Equal(t, c, failure.Classify(err), "%v", err)
	require.Equal(t, failure.OriginModel, f.Origin)
	for e := err; e != nil; e = errors.Unwrap(e) {
		require.NotContains(t, e.Error(), key)
	}
	return f
}

// check is failed for those who need no more of it.
func check(t *testing.T, err error, c failure.Category) {
	t.Helper()
	require.Error(t, failed(t, err, c))
}
