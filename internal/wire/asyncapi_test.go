package wire_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
	"nexuscore.dev/nexus/schemas"
)

// asyncAPI is what the test reads of schemas/asyncapi.yaml.
type asyncAPI struct {
	AsyncAPI string `yaml:"asyncapi"`
	Channels map[string]struct {
		Address    string `yaml:"address"`
		Parameters map[string]struct {
			Enum []string `yaml:"enum"`
		} `yaml:"parameters"`
	} `yaml:"channels"`
	Components struct {
		Parameters map[string]struct {
			Enum []string `yaml:"enum"`
		} `yaml:"parameters"`
	} `yaml:"components"`
}

// TestAsyncAPIIsTrue holds the published description against the code: the
// same subject spaces, the same names in each.
func TestAsyncAPIIsTrue(t *testing.T) {
	t.Parallel()
	text, err := schemas.Text(schemas.AsyncAPI)
	require.NoError(t, err)
	var doc asyncAPI
	require.NoError(t, yaml.Unmarshal(text, &doc))
	require.Equal(t, "3.0.0", doc.AsyncAPI)

	spaces := append(wire.RunSpaces(), wire.TaskSpace, wire.OutcomeSpace, wire.DeadSpace, wire.LaterSpace, wire.TimerSpace, wire.BurstSpace)
	described, listed := map[string]bool{}, map[string]string{}
	for _, c := range doc.Channels {
		described[space(c.Address)] = true
		for _, name := range append(c.Parameters["worker"].Enum, c.Parameters["kind"].Enum...) {
			if strings.HasSuffix(c.Address, ".{run}.{n}") {
				listed[name] = strings.Split(c.Address, ".")[1]
			}
		}
	}
	require.ElementsMatch(t, spaces, sorted(described))
	require.Equal(t, names, listed)
	require.Equal(t, []string{wire.KindHeal}, doc.Channels["tasks"].Parameters["kind"].Enum)
	require.ElementsMatch(t,
		[]string{run.TimerDeadline, run.TimerRetry, run.TimerWriter, run.TimerClosing}, doc.Components.Parameters["timer"].Enum)

	speakers := []string{string(run.ByOperator), string(run.BySweeper)}
	for _, e := range everyEvent() {
		if ask, ok := e.Command.(run.Ask); ok {
			speakers = append(speakers, string(ask.Worker))
		}
	}
	require.ElementsMatch(t, speakers, doc.Channels["outcomes"].Parameters["by"].Enum)
}

// space is an address with an asterisk for every parameter.
func space(address string) string {
	tokens := strings.Split(address, ".")
	for i, t := range tokens {
		if strings.HasPrefix(t, "{") {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}

// Every schema that is published compiles, and says where it belongs.
func TestEverySchemaCompiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{schemas.Heal, schemas.Outcome} {
		_, err := schemas.Compile(name)
		require.NoError(t, err, name)
		text, err := schemas.Text(name)
		require.NoError(t, err)
		require.Contains(t, string(text), `"$id": "https://nexuscore.dev/schemas/`+name+`"`)
	}
	_, err := schemas.Compile("absent.json")
	require.Error(t, err)
	_, err = schemas.Compile(schemas.AsyncAPI)
	require.Error(t, err)
	_, err = schemas.Text("absent.json")
	require.Error(t, err)
}
