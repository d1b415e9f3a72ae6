package archive

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
)

// artifacts finds the blobs that nothing names which stays. Whatever looks
// like the name of a blob counts as one, wherever it stands, in the journals
// too; only a manifest names further blobs.
func (v *survey) artifacts(ctx context.Context, s *Sweep, names map[string]bool) (err error) {
	if s.stored, s.loose, err = v.bus.Artifacts().List(ctx); err != nil {
		return err
	}
	if err := v.journals(names); err != nil {
		return err
	}
	for name := range maps.Clone(names) {
		if _, ok := s.stored[name]; !ok {
			continue
		}
		data, err := v.bus.Artifacts().Get(ctx, name)
		if bus.Gone(err) {
			continue // nobody can read the tree that it may be the manifest of
		}
		if err != nil {
			return err
		}
		m, err := rollback.Decode(data)
		if err != nil {
			continue // no manifest
		}
		for _, f := range m.Entries {
			names[f.SHA256] = true
		}
	}
	for name, at := range s.stored {
		if validName(name) && !names[name] {
			s.Artifacts = append(s.Artifacts, name)
			s.Bytes += at.Size
		}
	}
	slices.Sort(s.Artifacts)
	return nil
}

// journals marks what the journals of runs that stay name: they take a folder
// back even when the log is lost.
func (v *survey) journals(names map[string]bool) error {
	files, err := filepath.Glob(filepath.Join(v.State, journals, "*.journal"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if v.gone[RunOfFile(filepath.Base(file))] {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mark(text, names)
	}
	return nil
}

// mark adds everything in a text that looks like the name of an artifact.
func mark(text []byte, names map[string]bool) {
	tokens(text, isNameByte, nameLength, func(name string) { names[name] = true })
}

const (
	nameLength = 64 // of a SHA-256 in hex
	runLength  = 26
)

func isNameByte(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

func isRunByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '2' && c <= '7' }

// tokens calls do with every longest row of such bytes that has that length.
func tokens(text []byte, ok func(byte) bool, length int, do func(string)) {
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && ok(text[i]) {
			continue
		}
		if i-begin == length {
			do(string(text[begin:i]))
		}
		begin = i + 1
	}
}
