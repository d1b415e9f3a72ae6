package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
)

// A run is carried to a place that never saw its folder, and says the same
// there.
func TestRunIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(wrong)), answer(fenced(calcFixed)))
	sum, r := w.heal(w.project("calc"), "--source", "model")
	require.Equal(t, run.Approved, sum.State, r.out)
	file := filepath.Join(w.dir, "run.tar")
	out := w.nexus("run", "export", sum.Run[:8], "-o", file)
	require.Zero(t, out.exit, out.err)
	piped := w.nexus("run", "export", sum.Run)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(data), piped.out, "the same run is the same archive")

	there := newWorld(t)
	require.Zero(t, there.nexus("run", "import", file).exit)
	again := there.nexus("run", "import", file)
	require.Zero(t, again.exit, "importing twice changes nothing: %s", again.err)
	for _, args := range [][]string{{"run", "show", sum.Run}, {"run", "diff", sum.Run}, {"replay", sum.Run[:6], "--verify"}} {
		here, other := w.nexus(args...), there.nexus(args...)
		require.Zero(t, other.exit, other.err)
		require.Equal(t, here.out, other.out, args)
	}
	require.Contains(t, there.nexus("run", "ls").out, sum.Run[:8])
	onward := there.nexus("run", "export", sum.Run)
	require.Equal(t, string(data), onward.out, "an imported run can be carried on")

	small := w.nexus("run", "export", sum.Run, "--no-trees")
	require.Less(t, len(small.out), len(data))
	require.NotContains(t, small.out, "mine\r\nwithout end")
	require.Contains(t, piped.out, "mine\r\nwithout end")
	known := w.nexus("run", "import", file)
	require.Equal(t, 1, known.exit)
	require.Contains(t, known.err, "knows the run already")
}

// regexpEvents finds how many events an archive says that it holds.
var regexpEvents = regexp.MustCompile(`"events": (\d+)`)

func less(t *testing.T, n string) string {
	t.Helper()
	i, err := strconv.Atoi(n)
	require.NoError(t, err)
	return strconv.Itoa(i - 1)
}

// retar passes every part of an archive through change; nil leaves it out.
func retar(t *testing.T, data []byte, change func(name string, body []byte) (string, []byte)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		name, body := change(h.Name, body)
		if body == nil {
			continue
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(body)), Typeflag: tar.TypeReg}))
		_, err = w.Write(body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// What is no archive, or not a whole one, is refused with the reason and
// leaves no run behind.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(answer(fenced(calcFixed)))
	sum, _ := w.heal(w.project("calc"), "--source", "model")
	data := []byte(w.nexus("run", "export", sum.Run).out)
	there := newWorld(t)
	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"text":  {[]byte("not a tar file, whatever its name says"), "not the archive"},
		"empty": {nil, "cut short"},
		"cut":   {data[:len(data)/2], "archive"},
		"an event is gone": {retar(t, data, func(n string, b []byte) (string, []byte) {
			if strings.Contains(n, "0003-") {
				return n, nil
			}
			return n, b
		}), "cut short"},
		"an event is no JSON": {retar(t, data, func(n string, b []byte) (string, []byte) {
			return n, bytes.ReplaceAll(b, []byte(`"word":"approve"`), []byte(`"word":approve`))
		}), "event"},
		"an artifact was changed": {retar(t, data, func(n string, b []byte) (string, []byte) {
			if strings.Contains(n, "artifacts/") {
				return n, append(b, 'x')
			}
			return n, b
		}), "has the hash"},
		"a name leads out": {retar(t, data, func(n string, b []byte) (string, []byte) {
			return strings.Replace(n, "artifacts/", "artifacts/../../", 1), b
		}), "no artifact"},
		"a newer format": {retar(t, data, func(n string, b []byte) (string, []byte) {
			return n, bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 9`), 1)
		}), "newer nexus"},
		"the run is open": {retar(t, data, func(n string, b []byte) (string, []byte) {
			if strings.Contains(n, "-closed.json") {
				return n, nil
			}
			if strings.HasSuffix(n, "run.json") {
				head := regexpEvents.FindSubmatch(b)
				return n, bytes.Replace(b, head[0], []byte(`"events": `+less(t, string(head[1]))), 1)
			}
			return n, b
		}), "not closed"},
	} {
		file := filepath.Join(there.dir, "damaged.tar")
		require.NoError(t, os.WriteFile(file, c.archive, 0o600))
		r := there.nexus("run", "import", file)
		require.Equal(t, 1, r.exit, name)
		require.Contains(t, r.err, c.says, name)
	}
	require.Contains(t, there.nexus("run", "ls").out, "no runs yet")
}
