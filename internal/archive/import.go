package archive

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/wire"
)

// Bounds of what an archive from elsewhere may hold.
const (
	maxHead     = 1 << 20
	maxEvents   = 2000
	maxEvent    = 1 << 20 // as large as a message
	maxArtifact = 256 << 20
)

// ErrArchive says that a file is no archive of a run, or a damaged one.
var ErrArchive = errors.New("archive: not the archive of a run")

// Import reads an archive and stores its run beside the runs of this bus. The
// run must be closed, whole and in order; each artifact must have the hash of
// its name. Importing it again changes nothing. A run that this bus knows
// itself is refused with bus.ErrRunKnown.
func Import(ctx context.Context, b *bus.Bus, r io.Reader) (Head, error) {
	var head Head
	var events []bus.RawEvent
	artifacts := 0
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return head, fmt.Errorf("%w: %w", ErrArchive, err)
		}
		switch {
		case head.Run == "" && h.Name != headFile:
			return head, fmt.Errorf("%w: it begins with %q", ErrArchive, h.Name)
		case h.Typeflag != tar.TypeReg:
			return head, fmt.Errorf("%w: %q is no file", ErrArchive, h.Name)
		case h.Name == headFile && head.Run == "":
			err = readHead(in, h, &head)
		case strings.HasPrefix(h.Name, eventsDir) && len(events) < maxEvents:
			var e bus.RawEvent
			e, err = readEvent(in, h)
			events = append(events, e)
		case strings.HasPrefix(h.Name, artifactsDir) && (artifacts == head.Artifacts || len(events) != head.Events):
			err = cutShort(head, len(events), artifacts)
		case strings.HasPrefix(h.Name, artifactsDir):
			if artifacts == 0 {
				// Nothing is stored before the run itself was understood.
				err = b.CheckLog(ctx, head.Run, events)
			}
			if artifacts++; err == nil {
				err = readArtifact(ctx, b, in, h)
			}
		default:
			err = fmt.Errorf("%w: %q is unknown or out of place", ErrArchive, h.Name)
		}
		if err != nil {
			return head, err
		}
	}
	if head.Run == "" || len(events) != head.Events || artifacts != head.Artifacts {
		return head, cutShort(head, len(events), artifacts)
	}
	return head, b.ImportLog(ctx, head.Run, events)
}

// cutShort says that an archive does not hold what it says that it holds.
func cutShort(head Head, events, artifacts int) error {
	return fmt.Errorf("%w: it is cut short: %d of %d events, %d of %d artifacts", ErrArchive, events, head.Events, artifacts, head.Artifacts)
}

func read(in io.Reader, h *tar.Header, most int64) ([]byte, error) {
	if h.Size > most {
		return nil, fmt.Errorf("%w: %q has %d bytes, at most %d are read", ErrArchive, h.Name, h.Size, most)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrArchive, h.Name, err)
	}
	return data, nil
}

func readHead(in io.Reader, h *tar.Header, head *Head) error {
	data, err := read(in, h, maxHead)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, head); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrArchive, h.Name, err)
	}
	switch {
	case head.Format > format:
		return fmt.Errorf("%w: a newer nexus wrote it (format %d, this one knows %d)", ErrArchive, head.Format, format)
	case !wire.ValidRun(head.Run):
		return fmt.Errorf("%w: %q is no run", ErrArchive, head.Run)
	}
	return nil
}

// readEvent reads nexus-run/events/<number>-<name>.json.
func readEvent(in io.Reader, h *tar.Header) (bus.RawEvent, error) {
	var e bus.RawEvent
	number, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(h.Name, eventsDir), ".json"), "-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return e, fmt.Errorf("%w: %q is no event", ErrArchive, h.Name)
	}
	e.N, e.Name = n, name
	e.Body, err = read(in, h, maxEvent)
	return e, err
}

func readArtifact(ctx context.Context, b *bus.Bus, in io.Reader, h *tar.Header) error {
	name := strings.TrimPrefix(h.Name, artifactsDir)
	if !validName(name) {
		return fmt.Errorf("%w: %q is no artifact", ErrArchive, h.Name)
	}
	data, err := read(in, h, maxArtifact)
	if err != nil {
		return err
	}
	ref, err := b.Artifacts().Put(ctx, data)
	if err == nil && ref.SHA256 != name {
		err = fmt.Errorf("%w: the content of %q has the hash %s", ErrArchive, h.Name, ref.SHA256)
	}
	return err
}
