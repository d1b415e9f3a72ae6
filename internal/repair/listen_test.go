package repair

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenReadsFixesUntilTheReport(t *testing.T) {
	t.Parallel()
	var seen []int
	fixes, report, err := listen(strings.NewReader(`{"type":"progress","done":3,"total":9}
{"type":"fix","path":"a.py","new":"6869","line":2,"score":0.5,"operator":"x"}
{"type":"done","report":{"tried":3,"seconds":1.5,"reason":""}}
{"type":"fix","path":"late.py","new":""}
`), func(done, total int) { seen = append(seen, done, total) })
	require.NoError(t, err)
	require.Equal(t, []int{3, 9}, seen)
	require.Len(t, fixes, 1)
	require.Equal(t, "hi", string(fixes[0].content))
	require.InDelta(t, 2.0, report.Rate(), 1e-9)
}

func TestListenRefusesOtherTalk(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":        "hello\n",
		"unknown type":   `{"type":"hello"}` + "\n",
		"bad content":    `{"type":"fix","new":"zz"}` + "\n",
		"empty report":   `{"type":"done"}` + "\n",
		"harness failed": `{"type":"error","reason":"broken"}` + "\n",
	} {
		_, report, err := listen(strings.NewReader(text), nil)
		require.Error(t, err, name)
		require.Nil(t, report, name)
	}
}

func FuzzListen(f *testing.F) {
	f.Add(`{"type":"fix","path":"a.py","new":"6869"}` + "\n" + `{"type":"done","report":{}}` + "\n")
	f.Add("{}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, report, err := listen(strings.NewReader(text), nil)
		if report != nil && err != nil {
			t.Fatal("a report and an error")
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add("12 (a b) c) S 1 12 7 0 -1")
	f.Add("")
	f.Fuzz(func(_ *testing.T, text string) { parseStat(text) })
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	pid, session, state := parseStat("12 (a (b) c) S 1 12 7 0 -1 4194560")
	require.Equal(t, 12, pid)
	require.Equal(t, 7, session)
	require.Equal(t, "S", state)
}
