package agents

import (
	"errors"
	"fmt"
	"slices"

	"nexuscore.dev/nexus/internal/rollback"
)

// Base is a manifest's files as the gates read them: a validate.Base. Its
// interface has no errors, so they are kept for Err.
type Base struct {
	m    rollback.Manifest
	read func(rollback.Entry) ([]byte, error)
	err  error
}

// NewBase reads the files of m with read, which verifies what it returns.
func NewBase(m rollback.Manifest, read func(rollback.Entry) ([]byte, error)) *Base {
	return &Base{m: m, read: read}
}

// Err is what could not be read.
func (b *Base) Err() error { return b.err }

// Read implements validate.Base.
func (b *Base) Read(path string) ([]byte, bool) {
	e, ok := b.m.Lookup(path)
	if !ok || e.Type != rollback.TypeFile {
		return nil, false
	}
	data, err := b.read(e)
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("%s: %w", path, err))
		return nil, false
	}
	return data, true
}

// Paths implements validate.Base.
func (b *Base) Paths() []string {
	var out []string
	for _, e := range b.m.Entries {
		if e.Type == rollback.TypeFile {
			out = append(out, e.Path)
		}
	}
	return out
}

// Mode implements validate.Base.
func (b *Base) Mode(path string) uint32 {
	e, _ := b.m.Lookup(path)
	return e.Mode
}

// Resolve implements validate.Base.
func (b *Base) Resolve(path string) (string, error) {
	actual, err := b.m.Resolve(path)
	if err != nil {
		return "", err
	}
	e, ok := b.m.Lookup(actual)
	switch {
	case ok && e.Type == rollback.TypeDir:
		return actual, nil // no content of its own: whoever reads it finds nothing
	case slices.Contains(b.m.HardLinked, actual):
		return "", errors.New("it is a file with several names")
	case slices.Contains(b.m.Special, actual):
		return "", errors.New("it is a FIFO, socket or device")
	}
	return actual, nil
}
