package archive

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"nexuscore.dev/nexus/internal/bus"
	"nexuscore.dev/nexus/internal/rollback"
)

// The names inside an archive.
const (
	root         = "nexus-run/"
	headFile     = root + "run.json"
	eventsDir    = root + "events/"
	artifactsDir = root + "artifacts/"
)

// format is the version of the layout.
const format = 1

// Head is nexus-run/run.json.
type Head struct {
	Format int    `json:"format"`
	Run    string `json:"run"`
	Events int    `json:"events"`
	// Artifacts is how many the archive holds.
	Artifacts int `json:"artifacts"`
	// Missing lists artifacts that the run names and the store had no more.
	Missing []string `json:"missing,omitempty"`
}

// Options say what of a run is carried.
type Options struct {
	// NoTrees leaves out the files of the project: what was decided can be
	// read and verified, but no tree can be built again.
	NoTrees bool
}

// Export writes the archive of a run.
func Export(ctx context.Context, b *bus.Bus, id string, w io.Writer, o Options) (Head, error) {
	head := Head{Format: format, Run: id}
	events, err := b.RawLog(ctx, id)
	if err != nil {
		return head, err
	}
	names, err := reachable(ctx, b.Artifacts(), events, o)
	if err != nil {
		return head, err
	}
	var have []string
	for _, name := range names {
		switch _, err := rollback.Read(ctx, b.Artifacts(), name); {
		case ctx.Err() != nil:
			return head, ctx.Err()
		case err != nil:
			head.Missing = append(head.Missing, name)
		default:
			have = append(have, name)
		}
	}
	head.Events, head.Artifacts = len(events), len(have)
	out := tar.NewWriter(w)
	data, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return head, err
	}
	if err := add(out, headFile, data); err != nil {
		return head, err
	}
	for _, e := range events {
		if err := add(out, fmt.Sprintf("%s%04d-%s.json", eventsDir, e.N, e.Name), e.Body); err != nil {
			return head, err
		}
	}
	for _, name := range have {
		data, err := rollback.Read(ctx, b.Artifacts(), name)
		if err != nil {
			return head, err
		}
		if err := add(out, artifactsDir+name, data); err != nil {
			return head, err
		}
	}
	return head, out.Close()
}

// add writes one file. Its time is that of no clock, so that the same run is
// the same archive.
func add(out *tar.Writer, name string, data []byte) error {
	h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
	if err := out.WriteHeader(h); err != nil {
		return fmt.Errorf("archive: %s: %w", name, err)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("archive: %s: %w", name, err)
	}
	return nil
}

// reachable lists the artifacts that the events name, and those that the
// manifests among them name, sorted.
func reachable(ctx context.Context, blobs rollback.Blobs, events []bus.RawEvent, o Options) ([]string, error) {
	found := map[string]bool{}
	for _, e := range events {
		refs, trees, err := named(e.Body)
		if err != nil {
			return nil, fmt.Errorf("archive: event %d: %w", e.N, err)
		}
		for _, ref := range refs {
			found[ref.SHA256] = true
		}
		if o.NoTrees {
			continue
		}
		for _, t := range trees {
			m, err := rollback.Load(ctx, blobs, t)
			if err != nil {
				continue // told as missing, when its manifest is read
			}
			for _, f := range m.Entries {
				if f.Type == rollback.TypeFile && f.Size > 0 {
					found[f.SHA256] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), ctx.Err()
}
