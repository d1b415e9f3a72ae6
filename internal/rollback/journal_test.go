package rollback

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// applied is a project with a whole journal; it returns the journal's bytes.
func applied(t *testing.T) (*bundle, []byte) {
	t.Helper()
	b := setup(t, files{"a.py": "1\n"})
	require.NoError(t, b.apply(b.modify("a.py", "2\n")))
	data, err := os.ReadFile(b.Journal)
	require.NoError(t, err)
	return b, data
}

// TestUnreadableJournal is case A161: what cannot be read is never empty.
func TestUnreadableJournal(t *testing.T) {
	t.Parallel()
	_, good := applied(t)
	lines := bytes.SplitAfter(good, []byte("\n"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, data := range map[string][]byte{
		"empty":             {},
		"zeros":             make([]byte, len(good)),
		"text":              []byte("not a journal\n"),
		"half a header":     good[:20],
		"no header":         join(lines[1:]...),
		"flipped bit":       bytes.Replace(good, []byte("a.py"), []byte("b.py"), 1),
		"flipped last line": join(lines[0], lines[1], bytes.Replace(lines[2], []byte(`"n":1`), []byte(`"n":2`), 1)),
		"lost line":         join(lines[0], lines[2]),
		"hole":              join(lines[0], make([]byte, len(lines[1])), []byte("\n"), lines[2]),
		"two headers":       join(lines[0], good),
		"newer":             newer(t),
		"other run":         reencode(t, record{Type: recHeader, Version: 1, Run: "run2"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := applied(t)
			require.NoError(t, os.WriteFile(b.Journal, data, 0o600))
			_, err := b.Restore(t.Context(), b.base, b.blobs)
			requireKind(t, err, KindJournal)
			requireKind(t, b.apply(b.create("n.py", "x")), KindJournal)
			require.Equal(t, "2\n", b.read("a.py"), "the project is not touched")
			now, err := os.ReadFile(b.Journal)
			require.NoError(t, err)
			require.Equal(t, data, now, "nor is the journal")
		})
	}
	b, _ := applied(t)
	require.NoError(t, os.Remove(b.Journal))
	require.NoError(t, os.Mkdir(b.Journal, 0o700))
	_, err := b.Restore(t.Context(), b.base, b.blobs)
	requireKind(t, err, KindJournal)
}

func reencode(t *testing.T, rec record) []byte {
	t.Helper()
	data, err := encodeLine(rec)
	require.NoError(t, err)
	return data
}

func newer(t *testing.T) []byte {
	t.Helper()
	return reencode(t, record{Type: recHeader, Version: journalVersion + 1, Run: "run1"})
}

// TestTornJournal cuts the journal at every byte of its last two lines, as a
// crash does, and fills the rest with zeros, as a lost block does.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	_, good := applied(t)
	header := bytes.IndexByte(good, '\n') + 1
	for cut := header; cut < len(good); cut++ {
		for _, tail := range []string{"", strings.Repeat("\x00", 7), strings.Repeat("\x00", 7) + "\n"} {
			path := filepath.Join(t.TempDir(), "j")
			whole := bytes.LastIndexByte(good[:cut], '\n') + 1
			if strings.HasSuffix(tail, "\n") && whole == cut {
				continue // a line of zeros after a whole line; covered by cut+1
			}
			require.NoError(t, os.WriteFile(path, append(bytes.Clone(good[:cut]), tail...), 0o600))
			j, err := openJournal(path, "run1", "dir")
			require.NoError(t, err, cut)
			require.NoError(t, j.begin(&batch{Kind: applying}))
			require.NoError(t, j.f.Close())
			h, err := readHistory(path)
			require.NoError(t, err, cut)
			require.Equal(t, int64(whole), h.good-int64(lastLine(t, path)), "the torn line is gone")
		}
	}
}

func lastLine(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return len(data) - bytes.LastIndexByte(data[:len(data)-1], '\n') - 1
}

func FuzzReadHistory(f *testing.F) {
	data, err := encodeLine(record{Type: recHeader, Version: 1, Run: "r"})
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"crc":"00000000","rec":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "j")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		h, err := readHistory(path)
		if err != nil {
			requireKind(t, err, KindJournal)
			return
		}
		require.Positive(t, h.good)
	})
}
