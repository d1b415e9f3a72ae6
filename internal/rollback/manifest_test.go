package rollback

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sample() Manifest {
	return Manifest{
		Entries: []Entry{
			{Path: "a.py", Type: TypeFile, Mode: 0o644, Size: 2, SHA256: hashOf([]byte("1\n"))},
			{Path: "empty", Type: TypeDir, Mode: 0o755},
			{Path: "empty.py", Type: TypeFile, Mode: 0o644, SHA256: emptySHA},
			{Path: "lat-\xff", Type: TypeLink, Target: "tar-\xfe"},
			{Path: "pkg", Type: TypeDir, Mode: 0o700},
			{Path: "pkg/<ü>\n.sh", Type: TypeFile, Mode: 0o755, Size: 3, SHA256: hashOf([]byte("sh\n"))},
		},
		Ignore: []string{"*.log"}, Environments: []string{"env"}, Special: []string{"fifo"}, HardLinked: []string{"a.py"},
	}
}

// TestGolden holds the stored form and the tree hash: both outlive a version.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := sample().Encode()
	require.NoError(t, err)
	golden := filepath.Join("testdata", "manifest.v1.json")
	if *update {
		require.NoError(t, os.WriteFile(golden, data, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))
	m, err := Decode(want)
	require.NoError(t, err)
	require.Equal(t, sample(), m)
	require.Equal(t, "c3ec9bb91d5afea4fab79ad5a7e60840a3282823dc82d4287f7539fc11a8be1c", m.Hash())
}

func TestHashCoversEverything(t *testing.T) {
	t.Parallel()
	seen := map[string]string{sample().Hash(): "sample"}
	for name, change := range map[string]func(*Manifest){
		"path":          func(m *Manifest) { m.Entries[0].Path = "a.pz" },
		"mode":          func(m *Manifest) { m.Entries[0].Mode = 0o755 },
		"folder's mode": func(m *Manifest) { m.Entries[1].Mode = 0o700 },
		"content":       func(m *Manifest) { m.Entries[0].SHA256 = emptySHA },
		"target":        func(m *Manifest) { m.Entries[3].Target = "x" },
		"type":          func(m *Manifest) { m.Entries[1] = Entry{Path: "empty", Type: TypeLink, Target: "x"} },
		"empty file":    func(m *Manifest) { m.Entries = append(m.Entries[:2:2], m.Entries[3:]...) },
		"empty folder":  func(m *Manifest) { m.Entries = append(m.Entries[:1:1], m.Entries[2:]...) },
		"moved border":  func(m *Manifest) { m.Entries[3].Path, m.Entries[3].Target = "lat-\xfft", "ar-\xfe" },
	} {
		m := sample()
		change(&m)
		require.NotContains(t, seen, m.Hash(), name)
		seen[m.Hash()] = name
		require.NotEmpty(t, sample().Differs(m), name)
	}
	m := sample()
	m.Ignore, m.Special, m.HardLinked, m.Entries[0].Size = nil, nil, nil, 77
	require.Equal(t, sample().Hash(), m.Hash())
	require.Empty(t, sample().Differs(m))
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	sha := hashOf([]byte("x"))
	file := func(p string) Entry { return Entry{Path: p, Type: TypeFile, Mode: 0o644, SHA256: sha} }
	for name, entries := range map[string][]Entry{
		"outside":           {file("../x")},
		"absolute":          {file("/x")},
		"root":              {{Path: ".", Type: TypeDir}},
		"no path":           {file("")},
		"nul":               {file("a\x00")},
		"unclean":           {{Path: "a", Type: TypeDir}, file("a//b")},
		"twice":             {file("a"), file("a")},
		"unsorted":          {file("b"), file("a")},
		"orphan":            {file("a/b")},
		"below a file":      {file("a"), file("a/b")},
		"below a link":      {{Path: "a", Type: TypeLink, Target: "/etc"}, file("a/b")},
		"no hash":           {{Path: "a", Type: TypeFile}},
		"short hash":        {{Path: "a", Type: TypeFile, SHA256: "ab"}},
		"no target":         {{Path: "a", Type: TypeLink}},
		"mode of a link":    {{Path: "a", Type: TypeLink, Target: "x", Mode: 0o777}},
		"set-id":            {{Path: "a", Type: TypeFile, SHA256: sha, Mode: 0o4755}},
		"size":              {{Path: "a", Type: TypeFile, SHA256: sha, Size: -1}},
		"content of folder": {{Path: "a", Type: TypeDir, SHA256: sha}},
		"type":              {{Path: "a", Type: "fifo"}},
	} {
		data, err := Manifest{Entries: entries}.Encode()
		require.NoError(t, err)
		_, err = Decode(data)
		requireKind(t, err, KindManifest)
		requireKind(t, Materialise(t.Context(), Manifest{Entries: entries}, filepath.Join(t.TempDir(), name), nil), KindManifest)
	}
	for _, text := range []string{"", "[]", `{"v":2,"entries":[]}`, `{"entries":[]}`, `{"v":1,"entries":[{"p":{"b64":"!"}}]}`} {
		_, err := Decode([]byte(text))
		requireKind(t, err, KindManifest)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := sample().Encode()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			requireKind(t, err, KindManifest)
			return
		}
		again, err := m.Encode()
		require.NoError(t, err)
		back, err := Decode(again)
		require.NoError(t, err)
		require.Equal(t, m.Hash(), back.Hash())
	})
}

func TestStoreAndLoad(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "12345", "e": ""})
	tree, err := b.base.Store(t.Context(), b.blobs)
	require.NoError(t, err)
	require.Equal(t, 2, tree.Files)
	require.Equal(t, int64(5), tree.Bytes)
	m, err := Load(t.Context(), b.blobs, tree)
	require.NoError(t, err)
	require.Equal(t, b.base, m)
	wrong := tree
	wrong.Hash = emptySHA
	_, err = Load(t.Context(), b.blobs, wrong)
	requireKind(t, err, KindManifest)
	_, err = Load(t.Context(), b.blobs, run.Tree{Manifest: run.Ref{SHA256: hashOf([]byte("none"))}})
	requireKind(t, err, KindBlob)
}

func TestDiffIsTheInverseOfWith(t *testing.T) {
	t.Parallel()
	b := setup(t, files{"a.py": "1\n", "d/b.py": "1\n", "l": "→a.py"})
	changes := []run.Change{b.modify("l", "2\n"), b.del("d/b.py"), b.create("n/n.py", "n\n")}
	next, err := Stage(t.Context(), b.base, changes, b.blobs)
	require.NoError(t, err)
	diff, err := Diff(b.base, next)
	require.NoError(t, err)
	require.Len(t, diff, 3)
	require.NoError(t, b.apply(diff...))
	require.Equal(t, next.Hash(), b.scan().Hash())
	e, _ := next.Lookup("a.py")
	require.Equal(t, int64(2), e.Size)
	_, err = Diff(b.base, Manifest{})
	requireKind(t, err, KindUnsafe)
}
