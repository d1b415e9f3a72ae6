package rollback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/fault"
)

const journalVersion = 1

// content is the state of one path as the journal knows it: absent, or a
// regular file.
type content struct {
	// SHA is the hash of the content, empty when there is no file.
	SHA string `json:"sha,omitempty"`
	// Mode holds the permission bits with set-id and sticky bits (07777).
	Mode uint32 `json:"mode,omitempty"`
}

func (c content) absent() bool { return c.SHA == "" }

// edit is one path of a batch. Temp is the stem of the names in the same
// folder that the batch may leave behind when it is killed.
type edit struct {
	Path name    `json:"path"`
	From content `json:"from"`
	To   content `json:"to"`
	Temp string  `json:"temp"`
	// Linked is true when the change named another path, which led here by a
	// link.
	Linked bool `json:"linked,omitempty"`
}

type batchKind string

const (
	applying  batchKind = "apply"
	restoring batchKind = "restore"
)

// batch is recorded before the first of its effects.
type batch struct {
	N     int       `json:"n"`
	Kind  batchKind `json:"kind"`
	Edits []edit    `json:"edits"`
	// Dirs are the folders that did not exist before, parents first.
	Dirs []name `json:"dirs,omitempty"`
	// closed is set by a later record: all effects are there, or none.
	closed bool
}

type recordType string

const (
	recHeader recordType = "journal"
	recBatch  recordType = "batch"
	recClosed recordType = "closed"
)

// record is one line of the journal.
type record struct {
	Type    recordType `json:"type"`
	Version int        `json:"v,omitempty"`
	Run     string     `json:"run,omitempty"`
	Dir     name       `json:"dir,omitempty"`
	Batch   *batch     `json:"batch,omitempty"`
	N       int        `json:"n,omitempty"`
}

type line struct {
	CRC string          `json:"crc"`
	Rec json.RawMessage `json:"rec"`
}

// history is what a journal says: every batch that ever began.
type history struct {
	run     string
	batches []*batch
	good    int64 // bytes up to the end of the last whole record
}

// journal is an open journal. Every append is on the disk when it returns.
type journal struct {
	history
	path string
	f    *os.File
}

func journalError(path, detail string, err error) error {
	return &Error{Kind: KindJournal, Detail: path + ": " + detail, Err: err}
}

// readHistory reads a journal. A missing file means that nothing was ever
// written to the project; everything else that cannot be understood is an
// error, except a last line that a crash cut off: its batch never began.
func readHistory(path string) (history, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return history{}, nil
	}
	if err != nil {
		return history{}, journalError(path, "cannot be read; nothing was changed", err)
	}
	var h history
	for rest := data; len(rest) > 0; {
		text, next, whole := bytes.Cut(rest, []byte("\n"))
		if h.good > 0 && (!whole || len(next) == 0 && bytes.IndexByte(text, 0) >= 0) {
			return h, nil
		}
		rec, err := parseLine(text)
		if err == nil {
			err = h.take(rec)
		}
		if err != nil {
			return history{}, journalError(path, fmt.Sprintf("damaged at byte %d; nothing was changed", len(data)-len(rest)), err)
		}
		h.good += int64(len(text)) + 1
		rest = next
	}
	if h.good == 0 {
		return history{}, journalError(path, "empty; nothing was changed", nil)
	}
	return h, nil
}

func parseLine(text []byte) (record, error) {
	var l line
	var rec record
	if err := json.Unmarshal(text, &l); err != nil {
		return rec, err
	}
	if l.CRC != checksum(l.Rec) {
		return rec, errors.New("checksum does not match")
	}
	return rec, json.Unmarshal(l.Rec, &rec)
}

func checksum(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// take adds one record; only an order that the writer can produce is accepted.
func (h *history) take(rec record) error {
	switch {
	case (h.good == 0) != (rec.Type == recHeader):
		return fmt.Errorf("a record %q stands in the wrong place", rec.Type)
	case rec.Type == recHeader && rec.Version != journalVersion:
		return fmt.Errorf("version %d, this program reads %d", rec.Version, journalVersion)
	case rec.Type == recHeader:
		h.run = rec.Run
	case rec.Type == recBatch && rec.Batch != nil && rec.Batch.N == len(h.batches)+1:
		h.batches = append(h.batches, rec.Batch)
	case rec.Type == recClosed && rec.N > 0 && rec.N <= len(h.batches):
		h.batches[rec.N-1].closed = true
	default:
		return fmt.Errorf("unknown record %q", rec.Type)
	}
	return nil
}

// open returns the batch of kind apply that began last, when it is not closed.
func (h history) open() *batch {
	for _, b := range slices.Backward(h.batches) {
		if b.Kind == applying {
			if b.closed {
				return nil
			}
			return b
		}
	}
	return nil
}

// known maps every path of the journal to the states it was ever left in.
func (h history) known() map[string][]content {
	out := map[string][]content{}
	for _, b := range h.batches {
		for _, e := range b.Edits {
			out[string(e.Path)] = append(out[string(e.Path)], e.From, e.To)
		}
	}
	return out
}

// behind maps every path that was first written through a link to what stood
// there before.
func (h history) behind() map[string]content {
	out, seen := map[string]content{}, map[string]bool{}
	for _, b := range h.batches {
		for _, e := range b.Edits {
			if p := string(e.Path); !seen[p] {
				if seen[p] = true; e.Linked && b.Kind == applying {
					out[p] = e.From
				}
			}
		}
	}
	return out
}

// dirs lists the folders that the run created, deepest first.
func (h history) dirs() []string {
	set := map[string]bool{}
	for _, b := range h.batches {
		if b.Kind == applying {
			for _, d := range b.Dirs {
				set[string(d)] = true
			}
		}
	}
	out := slices.Sorted(maps.Keys(set))
	slices.Reverse(out)
	return out
}

// openJournal opens the journal for appending and creates it, with its folder,
// when it is missing. A line that a crash cut off is cut away.
func openJournal(path, run, dir string) (*journal, error) {
	h, err := readHistory(path)
	if err != nil {
		return nil, err
	}
	if h.good == 0 {
		if err := createJournal(path, run, dir); err != nil {
			return nil, journalError(path, "cannot be created", err)
		}
		if h, err = readHistory(path); err != nil {
			return nil, err
		}
	}
	if h.run != run {
		return nil, journalError(path, fmt.Sprintf("belongs to run %s, not to %s", h.run, run), nil)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, journalError(path, "cannot be opened", err)
	}
	j := &journal{history: h, path: path, f: f}
	if err := f.Truncate(h.good); err != nil {
		return nil, errors.Join(journalError(path, "cannot be cut to its last whole line", err), f.Close())
	}
	return j, nil
}

// createJournal makes file and header appear at once, so that a journal
// without a header is always a damaged one.
func createJournal(path, run, dir string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	data, err := encodeLine(record{Type: recHeader, Version: journalVersion, Run: run, Dir: name(dir)})
	if err != nil {
		return err
	}
	fault.Point("rollback.journal.create.before")
	if err := renameio.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	fault.Point("rollback.journal.create.after")
	return SyncFolders(folder)
}

// SyncFolders makes the names in a folder, and the folder's own name, durable.
// The folder above may be closed to us; then somebody else made this one.
func SyncFolders(dir string) error {
	for i, d := range []string{dir, filepath.Dir(dir)} {
		f, err := os.Open(d)
		if i == 1 && errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func encodeLine(rec record) ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(line{CRC: checksum(body), Rec: body})
	return append(data, '\n'), err
}

// append writes one record durably. After a failed write the journal is cut
// back, so that a later append does not follow half a line.
func (j *journal) append(rec record, point string) error {
	data, err := encodeLine(rec)
	if err != nil {
		return journalError(j.path, "encode", err)
	}
	fault.Point("rollback.journal." + point + ".before")
	if _, err = j.f.Write(data); err == nil {
		fault.Point("rollback.journal." + point + ".written")
		err = j.f.Sync()
	}
	if err != nil {
		return journalError(j.path, "cannot be written", errors.Join(err, j.f.Truncate(j.good)))
	}
	fault.Point("rollback.journal." + point + ".after")
	j.good += int64(len(data))
	return nil
}

// tempPrefix begins every name that a run may leave beside its paths.
func tempPrefix(run string) string { return ".nexus-" + hashOf([]byte(run))[:8] + "-" }

// begin records a batch before its effects.
func (j *journal) begin(b *batch) error {
	b.N = len(j.batches) + 1
	for i := range b.Edits {
		b.Edits[i].Temp = fmt.Sprintf("%s%d-%d", tempPrefix(j.run), b.N, i)
	}
	if err := j.append(record{Type: recBatch, Batch: b}, "begin"); err != nil {
		return err
	}
	j.batches = append(j.batches, b)
	return nil
}

// close records that all effects of a batch are there, or that none is.
func (j *journal) close(b *batch) error {
	if b.closed {
		return nil
	}
	if err := j.append(record{Type: recClosed, N: b.N}, "close"); err != nil {
		return err
	}
	b.closed = true
	return nil
}
