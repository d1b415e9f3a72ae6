package rollback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// Inode names a folder whatever the spelling of its path. Born, its birth in
// nanoseconds where the file system knows it, tells a folder from a later one
// that got the number of a removed one.
type Inode struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"`
}

// Claim says which run works on a folder, and which process drives the run.
type Claim struct {
	// Dir is the folder without links in its path; Acquire fills it, Inode,
	// Ancestors, the process, Host, Boot and Since.
	Dir       string  `json:"dir"`
	Inode     Inode   `json:"inode"`
	Ancestors []Inode `json:"ancestors"`
	Run       string  `json:"run"`
	// State is the state folder that holds the run.
	State string `json:"state"`
	PID   int    `json:"pid"`
	// StartTime is ProcessStart of the PID.
	StartTime uint64 `json:"start_time"`
	// Host and Boot tell another machine, and an earlier start of this one.
	Host  string    `json:"host"`
	Boot  string    `json:"boot,omitempty"`
	Since time.Time `json:"since"`
}

// BusyError refuses a folder because a run works on it, on a folder in it, or
// on a folder above it.
type BusyError struct {
	Claim
	// Asked is the folder that was refused.
	Asked string
	// Dead is true when no process drives the run any more: it must be
	// continued or ended first, from its own folder and state.
	Dead bool
}

// Error names the run and what to do.
func (e *BusyError) Error() string {
	if e.Dead {
		return fmt.Sprintf("%s is busy: run %s on %s was not finished and its process is gone; 'nexus heal %s --state %s' continues it or puts the folder back",
			printable(e.Asked), e.Run, printable(e.Dir), printable(e.Dir), printable(e.State))
	}
	return fmt.Sprintf("%s is busy: run %s works on %s (process %d on %s); wait for it, or end it with 'nexus run cancel %s --state %s'",
		printable(e.Asked), e.Run, printable(e.Dir), e.PID, e.Host, e.Run, printable(e.State))
}

// Claims is the registry of the folders that runs work on: one file for each
// user of a host, outside every state folder, so that two state folders cannot
// hold the same project. Every call takes a lock beside the file.
type Claims struct {
	// Path is the file; ClaimsPath is the default.
	Path string
}

// Acquire claims dir for c.Run, driven by this process; c needs Run and State.
// The claim that the run has already is kept as long as its process lives.
//
// A claim on the same folder whose process is dead, of the same state folder,
// is taken over and returned: the caller must drive prev.Run to its end and
// release it before it opens a run of its own. Every other claim on the
// folder, below it or above it is a *BusyError.
func (c Claims) Acquire(dir string, claim Claim) (prev *Claim, err error) {
	return c.acquire(dir, claim, true)
}

// Hold is Acquire for a caller that cannot drive another run to its end: a
// claim whose process is dead is a *BusyError too, and stays as it is.
func (c Claims) Hold(dir string, claim Claim) error {
	_, err := c.acquire(dir, claim, false)
	return err
}

func (c Claims) acquire(dir string, claim Claim, takeOver bool) (prev *Claim, err error) {
	if err := claim.fill(dir); err != nil {
		return nil, err
	}
	err = c.update(func(all []Claim) ([]Claim, error) {
		for i, old := range all {
			if !old.touches(claim) {
				continue
			}
			dead := old.dead(claim)
			if dead && !old.sameFolder(claim) && gone(old.Dir) {
				continue // its folder is gone or elsewhere: nothing below or above is in its way
			}
			if old.Run == claim.Run && old.sameFolder(claim) {
				if dead || old.driver() == claim.driver() {
					all[i] = claim
				}
				return all, nil
			}
			if !takeOver || !dead || !old.sameFolder(claim) || old.State != claim.State {
				return nil, &BusyError{Claim: old, Asked: dir, Dead: dead}
			}
			prev = &old
			claim.Run = old.Run
			all[i] = claim
			return all, nil
		}
		return append(all, claim), nil
	})
	if err != nil {
		return nil, err
	}
	return prev, nil
}

// Release removes the claim of a run; none is fine.
func (c Claims) Release(run string) error {
	return c.update(func(all []Claim) ([]Claim, error) {
		return slices.DeleteFunc(all, func(x Claim) bool { return x.Run == run }), nil
	})
}

// Lookup finds the claim on exactly this folder, nil when there is none.
func (c Claims) Lookup(dir string) (*Claim, error) {
	var want Claim
	if err := want.fill(dir); err != nil {
		return nil, err
	}
	all, err := c.List()
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.sameFolder(want) {
			return &x, nil
		}
	}
	return nil, nil
}

// List returns every claim, in the order they were made.
func (c Claims) List() (all []Claim, err error) {
	err = c.locked(func() error {
		all, err = c.read()
		return err
	})
	return all, err
}

// Alive reports whether the process that drives the claim still runs. A
// process of another host cannot be seen and counts as alive.
func (x Claim) Alive() bool {
	var here Claim
	if err := here.identify(); err != nil {
		return true
	}
	return !x.dead(here)
}

// fill completes a claim with what the disk and this process say.
func (x *Claim) fill(dir string) error {
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	if err := root.Close(); err != nil {
		return err
	}
	actual, err := filepath.Abs(dir)
	if err == nil {
		actual, err = filepath.EvalSymlinks(actual)
	}
	if err != nil {
		return &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	x.Dir, x.Ancestors = actual, nil
	if x.Inode, err = inode(actual); err != nil {
		return err
	}
	for up := actual; up != filepath.Dir(up); {
		up = filepath.Dir(up)
		id, err := inode(up)
		if err != nil {
			return err
		}
		x.Ancestors = append(x.Ancestors, id)
	}
	return x.identify()
}

func (x *Claim) identify() (err error) {
	x.PID, x.Since, x.Boot = os.Getpid(), time.Now().UTC(), bootID()
	if x.StartTime, err = ProcessStart(x.PID); err != nil {
		return &Error{Kind: KindUnreadable, Detail: "this process", Err: err}
	}
	if x.Host, err = os.Hostname(); err != nil {
		return &Error{Kind: KindUnreadable, Detail: "host name", Err: err}
	}
	return nil
}

func inode(dir string) (Inode, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return Inode{}, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	return Inode{Dev: uint64(st.Dev), Ino: st.Ino, Born: born(dir)}, nil //nolint:unconvert // Dev is no uint64 everywhere
}

// gone reports whether nothing of that name is there, for sure.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

type driver struct {
	host, boot string
	pid        int
	start      uint64
}

func (x Claim) driver() driver { return driver{x.Host, x.Boot, x.PID, x.StartTime} }

// touches reports whether one folder is, holds or lies in the other. Inodes of
// another host or boot say nothing; then paths are compared.
func (x Claim) touches(y Claim) bool {
	if x.sameFolder(y) || inside(x.Dir, y.Dir) || inside(y.Dir, x.Dir) {
		return true
	}
	return x.comparable(y) && (slices.Contains(x.Ancestors, y.Inode) || slices.Contains(y.Ancestors, x.Inode))
}

func (x Claim) comparable(y Claim) bool { return x.Host == y.Host && x.Boot == y.Boot }

func (x Claim) sameFolder(y Claim) bool {
	return x.Dir == y.Dir || x.comparable(y) && x.Inode == y.Inode
}

func inside(dir, above string) bool {
	return above != dir && Within(above, dir)
}

// dead reports whether the driver of x is surely gone, seen from a process of
// here's host and boot.
func (x Claim) dead(here Claim) bool {
	if x.Host != here.Host {
		return false
	}
	return x.Boot != here.Boot || !ProcessAlive(x.PID, x.StartTime)
}

const registryVersion = 1

type registry struct {
	Version int     `json:"v"`
	Claims  []Claim `json:"claims"`
}

func (c Claims) damaged(err error) error {
	return &Error{
		Kind: KindRegistry,
		Detail: c.Path + " says which folders runs work on, and cannot be understood. It was not changed: put back the file " +
			"from before, or, when no nexus process works on any folder, delete it; interrupted runs are found in their logs",
		Err: err,
	}
}

func (c Claims) read() ([]Claim, error) {
	data, err := os.ReadFile(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, c.damaged(err)
	}
	var r registry
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, c.damaged(err)
	}
	if r.Version != registryVersion {
		return nil, c.damaged(fmt.Errorf("version %d, this program reads %d", r.Version, registryVersion))
	}
	return r.Claims, nil
}

func (c Claims) update(change func([]Claim) ([]Claim, error)) error {
	return c.locked(func() error {
		all, err := c.read()
		if err != nil {
			return err
		}
		if all, err = change(all); err != nil {
			return err
		}
		data, err := json.MarshalIndent(registry{registryVersion, all}, "", " ")
		if err != nil {
			return c.damaged(err)
		}
		fault.Point("rollback.claims.write.before")
		if err := renameio.WriteFile(c.Path, append(data, '\n'), 0o600); err != nil {
			return &Error{Kind: KindRegistry, Detail: c.Path + " cannot be written", Err: err}
		}
		fault.Point("rollback.claims.write.after")
		return SyncFolders(filepath.Dir(c.Path))
	})
}

// locked runs fn while no other process reads or writes the registry.
func (c Claims) locked(fn func() error) (err error) {
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return &Error{Kind: KindRegistry, Detail: c.Path, Err: err}
	}
	f, err := os.OpenFile(c.Path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &Error{Kind: KindRegistry, Detail: c.Path, Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := flock(f, unix.LOCK_EX); err != nil {
		return &Error{Kind: KindRegistry, Detail: c.Path, Err: err}
	}
	return fn()
}
