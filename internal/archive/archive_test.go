package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBus is an embedded bus in a folder of its own.
func newBus(t *testing.T) *bus.Bus {
	t.Helper()
	srv, err := bus.StartServer(bus.ServerConfig{StateDir: t.TempDir(), NoSync: true, Log: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	b, err := srv.Core(t.Context(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.Provision(t.Context(), 1))
	return b
}

// What the project of the run holds: bytes that are no text, under a name
// that is none either.
const (
	foreignName = "caf\xe9.bin"
	foreignData = "\x00\xff\r\nmine\x1b[31m"
)

// lost is an artifact that the run names and no store has.
var lost = sum("lost")

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// imported brings a run of a released log onto a bus, with a project behind
// it, and returns its id and events.
func imported(t *testing.T, b *bus.Bus) (string, []bus.RawEvent) {
	t.Helper()
	ctx := t.Context()
	file, err := b.Artifacts().Put(ctx, []byte(foreignData))
	require.NoError(t, err)
	m := rollback.Manifest{Entries: []rollback.Entry{
		{Path: foreignName, Type: rollback.TypeFile, Mode: 0o640, Size: file.Size, SHA256: file.SHA256},
		{Path: "link", Type: rollback.TypeLink, Target: "/nowhere"},
	}}
	tree, err := m.Store(ctx, b.Artifacts())
	require.NoError(t, err)
	diff, err := b.Artifacts().Put(ctx, []byte("--- a/calc.py\n+++ b/calc.py\n"))
	require.NoError(t, err)
	names := strings.NewReplacer(`"manifest-origin"`, `"`+tree.Manifest.SHA256+`"`, `"tree-origin"`, `"`+tree.Hash+`"`,
		`"diff-text-b"`, `"`+diff.SHA256+`"`, `"text-b"`, `"`+lost+`"`)
	log, err := os.Open("../wire/testdata/golden/v1-approved.jsonl")
	require.NoError(t, err)
	defer log.Close()
	id, events := "", []bus.RawEvent(nil)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Subject string          `json:"subject"`
			Body    json.RawMessage `json:"body"`
		}
		require.NoError(t, json.Unmarshal([]byte(names.Replace(lines.Text())), &l))
		a, err := wire.ParseEvent(l.Subject)
		require.NoError(t, err)
		id, events = a.Run, append(events, bus.RawEvent{N: a.N, Name: a.Name, Body: l.Body})
	}
	require.NoError(t, lines.Err())
	require.NoError(t, b.ImportLog(ctx, id, events))
	return id, events
}

func export(t *testing.T, b *bus.Bus, id string, o Options) (Head, []byte) {
	t.Helper()
	var out bytes.Buffer
	head, err := Export(t.Context(), b, id, &out, o)
	require.NoError(t, err)
	return head, out.Bytes()
}

// A run that is carried on is the same archive again, every byte of its
// project included; what the store has no more is said, not left out.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	here, there := newBus(t), newBus(t)
	id, events := imported(t, here)
	head, data := export(t, here, id, Options{})
	require.Equal(t, id, head.Run)
	require.Equal(t, len(events), head.Events)
	require.Equal(t, []string{lost}, head.Missing)
	require.Equal(t, 3, head.Artifacts, "the project's file, its manifest and the diff")

	got, err := Import(t.Context(), there, bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, head, got)
	_, err = Import(t.Context(), there, bytes.NewReader(data))
	require.NoError(t, err, "importing again changes nothing")
	log, err := there.RawLog(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, events, log)
	file, err := there.Artifacts().Get(t.Context(), sum(foreignData))
	require.NoError(t, err)
	require.Equal(t, foreignData, string(file))
	_, again := export(t, there, id, Options{})
	require.Equal(t, data, again)

	small, bare := export(t, here, id, Options{NoTrees: true})
	require.Equal(t, 2, small.Artifacts)
	require.NotContains(t, string(bare), foreignData)

	_, err = Export(t.Context(), here, wire.RunID("local", "key", "nobody"), io.Discard, Options{})
	require.ErrorContains(t, err, "no run")
}

// part is one file of an archive.
type part struct {
	name string
	body []byte
	kind byte
}

func parts(t *testing.T, data []byte) (out []part) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		out = append(out, part{h.Name, body, h.Typeflag})
	}
}

func pack(t *testing.T, list []part) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range list {
		h := &tar.Header{Name: p.name, Mode: 0o600, Typeflag: p.kind, Size: int64(len(p.body))}
		if p.kind != tar.TypeReg {
			h.Linkname, h.Size, p.body = "/etc/passwd", 0, nil
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write(p.body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// An archive that was cut anywhere is refused, says so and leaves no run.
func TestCutArchive(t *testing.T) {
	t.Parallel()
	here := newBus(t)
	id, _ := imported(t, here)
	_, data := export(t, here, id, Options{})
	there := newBus(t)
	whole := parts(t, data)
	for n := range whole {
		_, err := Import(t.Context(), there, bytes.NewReader(pack(t, whole[:n])))
		require.ErrorIs(t, err, ErrArchive)
		require.ErrorContains(t, err, "cut short", n)
	}
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.IntRange(0, len(data)-1024-512).Draw(r, "at") // the end of a tar file is two empty blocks
		_, err := Import(t.Context(), there, bytes.NewReader(data[:at]))
		require.ErrorIs(r, err, ErrArchive)
	})
	runs, err := there.Imported(t.Context())
	require.NoError(t, err)
	require.Empty(t, runs)
}

// What a stranger can make of an archive is refused with its name, and leaves
// neither a run nor a file anywhere.
func TestHostileArchive(t *testing.T) {
	t.Parallel()
	here := newBus(t)
	id, events := imported(t, here)
	_, data := export(t, here, id, Options{})
	last := len(events) + 1 // the first artifact; before it lie head and events
	for name, c := range map[string]struct {
		change func([]part) []part
		says   string
	}{
		"leads out":           {func(p []part) []part { p[last].name = "../../evil"; return p }, `"../../evil" is unknown`},
		"leads out below":     {func(p []part) []part { p[last].name = artifactsDir + "../evil"; return p }, "is no artifact"},
		"absolute":            {func(p []part) []part { p[last].name = "/etc/evil"; return p }, "is unknown"},
		"capitals":            {func(p []part) []part { p[last].name = strings.ToUpper(p[last].name); return p }, "is unknown"},
		"no hash":             {func(p []part) []part { p[last].name = artifactsDir + strings.Repeat("g", 64); return p }, "is no artifact"},
		"a link":              {func(p []part) []part { p[last].kind = tar.TypeSymlink; return p }, "is no file"},
		"a hard link":         {func(p []part) []part { p[last].kind = tar.TypeLink; return p }, "is no file"},
		"a device":            {func(p []part) []part { p[last].kind = tar.TypeChar; return p }, "is no file"},
		"another content":     {func(p []part) []part { p[last].body = []byte("x"); return p }, "has the hash"},
		"more than it says":   {func(p []part) []part { return append(p, p[last]) }, "cut short"},
		"another head":        {func(p []part) []part { return append(p, p[0]) }, "out of place"},
		"no head":             {func(p []part) []part { return p[1:] }, "it begins with"},
		"head is no JSON":     {func(p []part) []part { p[0].body = []byte("{"); return p }, "run.json"},
		"head without a run":  {func(p []part) []part { p[0].body = []byte(`{"format":1,"run":"../x"}`); return p }, "is no run"},
		"a large head":        {func(p []part) []part { p[0].body = make([]byte, maxHead+1); return p }, "at most"},
		"a large event":       {func(p []part) []part { p[1].body = make([]byte, maxEvent+1); return p }, "at most"},
		"event numbers":       {func(p []part) []part { p[1], p[2] = p[2], p[1]; return p }, "follows event"},
		"an event's name":     {func(p []part) []part { p[1].name = eventsDir + "0001.json"; return p }, "is no event"},
		"an event's subject":  {func(p []part) []part { p[1].name = eventsDir + "0001-a.b>.json"; return p }, "event 1"},
		"an event twice":      {func(p []part) []part { return append(p[:2:2], p[1:]...) }, ""},
		"an event is no JSON": {func(p []part) []part { p[2].body = []byte("\xff\x00"); return p }, "event 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := newBus(t)
			_, err := Import(t.Context(), there, bytes.NewReader(pack(t, c.change(parts(t, data)))))
			require.Error(t, err)
			require.ErrorContains(t, err, c.says)
			runs, err := there.Imported(t.Context())
			require.NoError(t, err)
			require.Empty(t, runs)
		})
	}
	_, err := Import(t.Context(), here, strings.NewReader("no tar at all, however long the text may be"))
	require.ErrorIs(t, err, ErrArchive)
}

// A history that differs from the one that was imported is refused.
func TestAnotherHistory(t *testing.T) {
	t.Parallel()
	here := newBus(t)
	id, events := imported(t, here)
	_, data := export(t, here, id, Options{})
	list := parts(t, data)
	head := list[len(events)].body
	list[len(events)].body = bytes.Replace(head, []byte("{"), []byte("{ "), 1)
	_, err := Import(t.Context(), here, bytes.NewReader(pack(t, list)))
	require.ErrorIs(t, err, bus.ErrRunKnown)
}

// Refs finds a name wherever it stands, once, and nothing that only looks
// like one.
func TestRefs(t *testing.T) {
	t.Parallel()
	a, b := sum("a"), sum("b")
	doc := fmt.Sprintf(`{"x":[{"sha256":%q,"size":7},{"deep":{"sha256":%q}}],"sha256":%q,"y":{"sha256":3},"z":{"sha256":"short"},`+
		`"t":{"sha256":%q},"u":%q}`, b, a, b, strings.ToUpper(a), sum("c"))
	refs, err := Refs([]byte(doc))
	require.NoError(t, err)
	require.Len(t, refs, 2)
	require.ElementsMatch(t, []string{a, b}, []string{refs[0].SHA256, refs[1].SHA256})
	require.Less(t, refs[0].SHA256, refs[1].SHA256)
	refs, err = Refs([]byte(fmt.Sprintf(`[{"sha256":%q,"size":7}]`, b)))
	require.NoError(t, err)
	require.Equal(t, []run.Ref{{SHA256: b, Size: 7}}, refs)
	_, err = Refs([]byte("{"))
	require.Error(t, err)
}
