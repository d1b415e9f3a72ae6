package llm_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/failure"
	"nexuscore.dev/nexus/internal/llm"
	"nexuscore.dev/nexus/internal/llm/llmtest"
)

// files is a Store in a folder, as plain as one can be.
type files string

func (f files) Get(_ context.Context, key string) ([]byte, bool, error) {
	data, err := os.ReadFile(filepath.Join(string(f), key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

func (f files) Put(_ context.Context, key string, data []byte) error {
	return os.WriteFile(filepath.Join(string(f), key), data, 0o600)
}

func TestBudget(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t, llmtest.Step{Kind: llmtest.Answer, Text: "x", Finish: "stop", Times: llmtest.Forever})
	b := llm.NewBudget(5, 2)
	m := llm.Budgeted(client(t, s.URL), b)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = m.Ask(t.Context(), llm.Request{Prompt: "p"}) })
	}
	wg.Wait()
	require.Equal(t, 3, s.Count())
	require.Equal(t, 5, b.Used())
	_, err := m.Ask(t.Context(), llm.Request{Prompt: "p"})
	var spent *llm.SpentError
	require.ErrorAs(t, err, &spent)
	require.Equal(t, llm.SpentError{Max: 5, Used: 5}, *spent)
	check(t, err, failure.Unexpected)

	_, err = llm.Budgeted(client(t, s.URL), llm.NewBudget(0, 0)).Ask(t.Context(), llm.Request{Prompt: "p"})
	require.ErrorAs(t, err, &spent)
	require.Equal(t, 3, s.Count(), "zero means no call at all")

	_, err = llm.Budgeted(client(t, s.URL), nil).Ask(t.Context(), llm.Request{Prompt: "p"})
	require.NoError(t, err)
	require.Zero(t, (*llm.Budget)(nil).Used())
}

func TestRecording(t *testing.T) {
	t.Parallel()
	store := files(t.TempDir())
	s := llmtest.New(t, llmtest.Say("first"), llmtest.Refuse(500, "no"), llmtest.Say("second"), llmtest.Say("third"))
	budget := llm.NewBudget(4, 0)
	m := llm.Recording(llm.Budgeted(client(t, s.URL), budget), store, "scripted")

	for range 3 {
		a, err := m.Ask(t.Context(), llm.Request{Prompt: "one <b>"})
		require.NoError(t, err)
		require.Equal(t, "first", a.Text)
	}
	require.Equal(t, 1, budget.Used(), "an answer is paid once")

	_, err := m.Ask(t.Context(), llm.Request{Prompt: "two"})
	check(t, err, failure.Connection)
	a, err := m.Ask(t.Context(), llm.Request{Prompt: "two"})
	require.NoError(t, err, "a failure is not recorded")
	require.Equal(t, "second", a.Text)
	a, err = m.Ask(t.Context(), llm.Request{Prompt: "two", Model: "other"})
	require.NoError(t, err)
	require.Equal(t, "third", a.Text, "the same words to another model are another request")

	replay := llm.Replaying(store, "scripted")
	a, err = replay.Ask(t.Context(), llm.Request{Prompt: "two"})
	require.NoError(t, err)
	require.Equal(t, "second", a.Text)
	_, err = replay.Ask(t.Context(), llm.Request{Prompt: "three"})
	require.ErrorIs(t, err, llm.ErrNoRecording)
	require.Equal(t, 4, s.Count())
}

// TestKeyIsStable: a recording of one release must be found by the next.
func TestKeyIsStable(t *testing.T) {
	t.Parallel()
	half := 0.5
	k, err := llm.Key(llm.Request{
		Model: "m", System: "s", Messages: []llm.Message{{Role: "user", Text: "<ü>"}}, Prompt: "p", MaxTokens: 7, Temperature: &half,
	})
	require.NoError(t, err)
	require.Equal(t, "77f47779f1bac6536c0cb3b5f20cbc666d25b9dff8e4f78382c3c0b19c66a587", k)
}

func TestBrokenRecordings(t *testing.T) {
	t.Parallel()
	store := files(t.TempDir())
	req := llm.Request{Model: "m", Prompt: "p"}
	k, err := llm.Key(req)
	require.NoError(t, err)
	other, err := llm.EncodeExchange(llm.Request{Model: "m", Prompt: "q"}, llm.Answer{Text: "wrong"})
	require.NoError(t, err)
	never := llm.Func(func(context.Context, llm.Request) (llm.Answer, error) {
		t.Error("a broken recording must not be paid again in silence")
		return llm.Answer{}, nil
	})
	for name, data := range map[string]string{
		"other request": string(other), "garbage": "{", "other version": `{"v":2}`,
	} {
		require.NoError(t, store.Put(t.Context(), k, []byte(data)))
		_, err := llm.Recording(never, store, "m").Ask(t.Context(), req)
		require.Error(t, err, name)
		require.Equal(t, failure.Unexpected, failure.Classify(err), name)
	}
	// A folder in the place of the recording cannot be read.
	broken := files(t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(string(broken), k), 0o700))
	_, err = llm.Recording(never, broken, "m").Ask(t.Context(), req)
	require.Error(t, err)

	gone := files(filepath.Join(t.TempDir(), "gone"))
	echo := llm.Func(func(context.Context, llm.Request) (llm.Answer, error) { return llm.Answer{Text: "x"}, nil })
	_, err = llm.Recording(echo, gone, "m").Ask(t.Context(), req)
	require.ErrorContains(t, err, "llm: record", "an answer that cannot be kept would be paid twice")
}

func TestRedacting(t *testing.T) {
	t.Parallel()
	secret := "long-" + "exact-value"
	aws := "AK" + "IA" + "ZZZZZZZZZZZZZZZZ"
	s := llmtest.New(t, llmtest.Step{Kind: llmtest.Echo, Finish: "stop", Times: 1}, llmtest.Refuse(400, "you said "+secret))
	store := files(t.TempDir())
	m := llm.Redacting(llm.Recording(client(t, s.URL), store, "scripted"), llm.NewRedactor(secret))
	messages := []llm.Message{{Role: llm.RoleUser, Text: "m " + secret}}
	a, err := m.Ask(t.Context(), llm.Request{System: "s " + secret, Messages: messages, Prompt: "p " + aws})
	require.NoError(t, err)
	require.Equal(t, "p "+llm.MaskPrefix+"aws key id]", a.Text)
	require.Equal(t, "m "+secret, messages[0].Text, "the caller's request stays as it is")
	require.NotContains(t, s.Requests()[0].Body, secret)
	require.NotContains(t, s.Requests()[0].Body, aws)
	entries, err := os.ReadDir(string(store))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err := os.ReadFile(filepath.Join(string(store), entries[0].Name()))
	require.NoError(t, err)
	require.NotContains(t, string(data), secret)
	require.NotContains(t, string(data), aws)

	_, err = m.Ask(t.Context(), llm.Request{Prompt: "again"})
	f := failed(t, err, failure.Unexpected)
	require.NotContains(t, err.Error(), secret)
	require.Equal(t, 400, f.Status)
	require.NoError(t, llm.NewRedactor().Error(nil))
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	good := map[string]string{llm.EnvBaseURL: " http://127.0.0.1:1/v1/ ", llm.EnvModel: "m"}
	from := func(change map[string]string) (llm.Config, bool, error) {
		env := maps.Clone(good)
		maps.Copy(env, change)
		return llm.FromEnv(func(name string) string { return env[name] })
	}
	c, ok, err := from(map[string]string{llm.EnvAPIKeyFile: file, llm.EnvTimeout: "90s"})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "http://127.0.0.1:1/v1", c.BaseURL)
	require.Equal(t, key, c.APIKey.Reveal())
	require.Equal(t, 90*time.Second, c.Timeout)
	require.Equal(t, llm.DefaultIdle, c.Idle)

	_, ok, err = llm.FromEnv(func(string) string { return "" })
	require.NoError(t, err)
	require.False(t, ok)

	for says, change := range map[string]map[string]string{
		"set " + llm.EnvBaseURL: {llm.EnvBaseURL: ""},
		"set " + llm.EnvModel:   {llm.EnvModel: ""},
		"begin with http":       {llm.EnvBaseURL: "127.0.0.1/v1"},
		"no address":            {llm.EnvBaseURL: "http://[" + key},
		"no user":               {llm.EnvBaseURL: "http://me:" + key + "@host/v1"},
		"query":                 {llm.EnvBaseURL: "http://host/v1?key=" + key},
		"before /chat":          {llm.EnvBaseURL: "http://host/v1/chat/completions"},
		"line break":            {llm.EnvAPIKey: key + "\n" + key},
		llm.EnvAPIKeyFile:       {llm.EnvAPIKeyFile: file + ".none"},
		llm.EnvTimeout:          {llm.EnvTimeout: "soon"},
		llm.EnvIdleTimeout:      {llm.EnvIdleTimeout: "-1s"},
	} {
		_, ok, err := from(change)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), key)
		require.False(t, ok)
	}
	_, err = llm.New(llm.Config{})
	require.Error(t, err)
	require.Error(t, llm.Config{BaseURL: "http://h/v1", Model: "m", Idle: -1}.Validate())
}
