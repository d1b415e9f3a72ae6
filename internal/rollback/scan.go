package rollback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

const (
	readTries     = 3        // how often a file that changes under a reader is read
	inFlightBytes = 64 << 20 // contents that Take holds in memory at once
)

// Scan lists the project folder dir and hashes every content. It follows no
// link, opens no FIFO, and stores nothing.
//
// It fails with KindMissing, KindNotFolder, KindEmpty, KindUnreadable,
// KindLimit, or KindUnsteady when a file changes faster than it can be read.
func Scan(ctx context.Context, dir string, limits Limits) (Manifest, error) {
	return scan(ctx, dir, scanOptions{limits: limits})
}

// Take is Scan, and puts every content into blobs before it returns.
func Take(ctx context.Context, dir string, limits Limits, blobs Blobs) (Manifest, error) {
	return scan(ctx, dir, scanOptions{limits: limits, blobs: blobs})
}

type scanOptions struct {
	limits Limits
	blobs  Blobs
	// tolerant leaves out what cannot be read and accepts an empty folder:
	// the proof of a restore must not fail on what the user did meanwhile.
	tolerant bool
}

func scan(ctx context.Context, dir string, opt scanOptions) (m Manifest, err error) {
	root, err := openFolder(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	lines, err := readIgnore(root)
	if err != nil {
		return Manifest{}, err
	}
	rules, err := parseIgnore(lines)
	if err != nil {
		return Manifest{}, err
	}
	w := &walk{root: root, guard: guard{rules: rules}, tally: newTally(opt.limits.withDefaults()), tolerant: opt.tolerant}
	if err := w.folder(ctx, root, ""); err != nil {
		return Manifest{}, err
	}
	if err := w.read(ctx, opt.blobs); err != nil {
		return Manifest{}, err
	}
	m = w.manifest(lines)
	if files, _ := m.Totals(); files == 0 && !opt.tolerant {
		return Manifest{}, &Error{Kind: KindEmpty, Detail: dir}
	}
	return m, nil
}

func (w *walk) manifest(ignore []string) Manifest {
	m := Manifest{
		Entries: make([]Entry, 0, len(w.nodes)), Ignore: ignore,
		Environments: w.guard.environments, Special: w.special, HardLinked: w.hard,
	}
	slices.Sort(w.lost)
	for _, n := range w.nodes {
		if _, lost := slices.BinarySearch(w.lost, n.Path); !lost {
			m.Entries = append(m.Entries, n.Entry)
		}
	}
	slices.SortFunc(m.Entries, byPath)
	slices.Sort(m.Special)
	slices.Sort(m.HardLinked)
	slices.Sort(m.Environments)
	return m
}

// read hashes every file of the walk, a few at a time.
func (w *walk) read(ctx context.Context, blobs Blobs) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	memory := semaphore.NewWeighted(inFlightBytes)
	var mu sync.Mutex
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.Type != TypeFile {
			continue
		}
		group.Go(func() error {
			weight := min(n.Size, inFlightBytes)
			if err := memory.Acquire(ctx, weight); err != nil {
				return err
			}
			defer memory.Release(weight)
			err := w.readFile(ctx, n, blobs)
			if err != nil && w.tolerant && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				w.lost = append(w.lost, n.Path)
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// readFile hashes one file, again when it changed meanwhile.
func (w *walk) readFile(ctx context.Context, n *node, blobs Blobs) error {
	for try := 1; ; try++ {
		err := w.readOnce(ctx, n, blobs)
		if !IsKind(err, KindUnsteady) || try == readTries {
			return err
		}
		info, statErr := w.root.Lstat(n.Path)
		if statErr != nil || !info.Mode().IsRegular() {
			return err
		}
		n.info, n.Size, n.Mode = info, info.Size(), uint32(info.Mode().Perm())
	}
}

func (w *walk) readOnce(ctx context.Context, n *node, blobs Blobs) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := w.root.OpenFile(n.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return &Error{Kind: KindUnsteady, Paths: []string{n.Path}, Err: err}
	}
	if err != nil {
		return &Error{Kind: KindUnreadable, Paths: []string{n.Path}, Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := n.steady(f, -1); err != nil {
		return err
	}
	var data []byte
	if blobs == nil {
		var count int64
		if n.SHA256, count, err = hashReader(f, n.Size); err == nil {
			err = n.steady(f, count)
		}
	} else if data, err = readSome(f, n.Size); err == nil {
		n.SHA256 = hashOf(data)
		err = n.steady(f, int64(len(data)))
	}
	if err != nil && !IsKind(err, KindUnsteady) {
		return &Error{Kind: KindUnreadable, Paths: []string{n.Path}, Err: err}
	}
	if err != nil || blobs == nil || len(data) == 0 {
		return err
	}
	return put(ctx, blobs, n, data)
}

func put(ctx context.Context, blobs Blobs, n *node, data []byte) error {
	ref, err := blobs.Put(ctx, data)
	if err == nil && ref.SHA256 != n.SHA256 {
		err = errors.New("stored under another hash")
	}
	if err != nil {
		return &Error{Kind: KindBlob, Paths: []string{n.Path}, Err: err}
	}
	return nil
}

// steady fails when the open file is not the one the walk saw, or was changed
// since; count is how many bytes were read, -1 before reading.
func (n *node) steady(f *os.File, count int64) error {
	info, err := f.Stat()
	if err != nil {
		return &Error{Kind: KindUnreadable, Paths: []string{n.Path}, Err: err}
	}
	ok := os.SameFile(info, n.info) && info.Size() == n.Size && info.ModTime().Equal(n.info.ModTime())
	if !ok || count >= 0 && count != n.Size {
		return &Error{Kind: KindUnsteady, Paths: []string{n.Path}, Detail: "is being written; try again when it is at rest"}
	}
	return nil
}

// readSome reads at most one byte more than expected, so that a growing file
// is noticed and bounds nothing else.
func readSome(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size+1)
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return data[:n], err
}

func hashReader(r io.Reader, size int64) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, size+1))
	return hex.EncodeToString(h.Sum(nil)), n, err
}
