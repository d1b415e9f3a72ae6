package rollback

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"nexuscore.dev/nexus/internal/run"
)

// world draws random projects, candidates and edits by the user.
type world struct {
	*bundle
	rt *rapid.T
}

func (w world) path(label string) string {
	depth := rapid.IntRange(1, 3).Draw(w.rt, label+" depth")
	part := rapid.SampledFrom([]string{"a", "b", "c.py", "ü x", "-d", "new\nline", "e.sh"})
	parts := make([]string, depth)
	for i := range parts {
		parts[i] = part.Draw(w.rt, label)
	}
	return path.Join(parts...)
}

func (w world) text(label string) string {
	return rapid.SampledFrom([]string{"", "x", "a\r\nb\n", "\x00\xff", strings.Repeat("long\n", 3000), "$1 &amp; ${HOME}\n", "\ufeffbom"}).Draw(w.rt, label)
}

func (w world) plant(label string, most int) {
	for i := range rapid.IntRange(1, most).Draw(w.rt, label+" number") {
		p := filepath.Join(w.Dir, w.path(fmt.Sprint(label, i)))
		if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			continue // a file stands where the folder would
		}
		switch rapid.SampledFrom([]string{"file", "file", "file", "dir", "link", "latin"}).Draw(w.rt, "type") {
		case "file":
			mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600, 0o444}).Draw(w.rt, "mode")
			if info, err := os.Lstat(p); err == nil && !info.Mode().IsRegular() {
				continue
			}
			if os.WriteFile(p, []byte(w.text("text")), 0o600) == nil {
				require.NoError(w.rt, os.Chmod(p, mode))
			}
		case "dir":
			_ = os.Mkdir(p, 0o750) // there already
		case "link":
			_ = os.Symlink(rapid.SampledFrom([]string{"a", "../b", "/etc", "c.py", "none"}).Draw(w.rt, "target"), p)
		case "latin":
			_ = os.WriteFile(p+"\xe9", []byte(w.text("text")), 0o600)
		}
	}
}

// candidate draws changes that fit the manifest, most of the time.
func (w world) candidate(m Manifest) []run.Change {
	var out []run.Change
	for _, e := range m.Entries {
		if e.Type == TypeDir || strings.Contains(e.Path, "\xe9") {
			continue
		}
		actual, err := m.Resolve(e.Path)
		if err != nil {
			continue
		}
		target, _ := m.Lookup(actual)
		switch rapid.IntRange(0, 5).Draw(w.rt, "op") {
		case 0:
			out = append(out, run.Change{Path: e.Path, Op: run.OpModify, Base: target.SHA256, New: w.put(w.text("new"))})
		case 1:
			out = append(out, run.Change{Path: e.Path, Op: run.OpDelete, Base: target.SHA256})
		case 2:
			out = append(out, run.Change{Path: e.Path, Op: run.OpModify, Base: target.SHA256, New: target.SHA256, Mode: 0o755})
		}
	}
	for range rapid.IntRange(0, 3).Draw(w.rt, "creates") {
		out = append(out, run.Change{Path: w.path("create"), Op: run.OpCreate, New: w.put(w.text("new")), Mode: rapid.SampledFrom([]uint32{0, 0o755}).Draw(w.rt, "mode")})
	}
	return out
}

// alreadyNew checks the one case that Apply accepts and Manifest.With does not:
// a path that holds the new content already counts as delivered.
func (w world) alreadyNew(refusal error, changes []run.Change) {
	requireKind(w.t, refusal, KindDrift)
	now := w.snapshot()
	for _, c := range changes {
		p, err := now.Resolve(c.Path)
		require.NoError(w.rt, err)
		e, _ := now.Lookup(p)
		require.Equal(w.rt, c.New, e.SHA256, c.Path)
	}
}

// TestApplyThenRestoreIsTheIdentity drives random candidates, stacked on each
// other, in both ways of replacing a file. Apply must agree with the pure
// Manifest.With, or change nothing; Restore must bring back the base.
func TestApplyThenRestoreIsTheIdentity(t *testing.T) {
	t.Parallel()
	applied, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := world{setupInMemory(t, files{"keep.py": "1\n"}), rt}
		w.plain = rapid.Bool().Draw(rt, "plain")
		w.plant("tree", 8)
		w.base = w.take()
		now := w.base
		for range rapid.IntRange(1, 3).Draw(rt, "candidates") {
			changes := w.candidate(now)
			next, refusal := Stage(t.Context(), now, changes, w.blobs)
			err := w.apply(changes...)
			if refusal != nil && err == nil {
				w.alreadyNew(refusal, changes)
				now = w.snapshot()
				continue
			}
			if refusal != nil {
				refused++
				require.Error(rt, err, "%v: %v", refusal, changes)
				require.Equal(rt, now.Hash(), w.hash())
				continue
			}
			applied++
			require.NoError(rt, err)
			got := w.snapshot()
			if got.Hash() != next.Hash() {
				for _, p := range next.Differs(got) { // only folders of this run that became empty
					base, _ := w.base.Lookup(p)
					e, _ := next.Lookup(p)
					require.True(rt, base.Type != TypeDir && e.Type == TypeDir, "%q differs", p)
				}
			}
			now = got
		}
		user := filepath.Join(w.Dir, "user's notes")
		require.NoError(rt, os.WriteFile(user, []byte("mine"), 0o600))
		r := w.restore()
		require.Empty(rt, r.Conflicts)
		require.Equal(rt, []string{"user's notes"}, r.Foreign)
		require.NoError(rt, os.Remove(user))
		require.Equal(rt, w.base.Hash(), w.hash(), w.base.Differs(w.snapshot()))
		require.NoError(t, os.RemoveAll(filepath.Dir(w.Dir)))
	})
	t.Logf("%d applied, %d refused", applied, refused)
	require.Greater(t, applied, 20)
	require.Greater(t, refused, 5)
}
