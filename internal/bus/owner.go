package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"nexuscore.dev/nexus/internal/fault"
)

// Owner is the exclusive right to run the embedded server on a state folder.
// It ends with the process, however that ends.
type Owner struct {
	dir  string
	lock *flock.Flock
}

// Address is how later commands reach the owner's server.
type Address struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	// Service is true when the process stays until it is stopped.
	Service bool `json:"service,omitempty"`
	// Busy says what an owner does to which nobody may attach.
	Busy string `json:"busy,omitempty"`
}

// Files of a state folder.
const (
	lockFile    = "owner.lock"
	addressFile = "owner.json"
	formatFile  = "format"
	// stateFormat is the version of the folder's layout.
	stateFormat = "1\n"
)

// ErrOwned says that another process owns the state folder.
var ErrOwned = errors.New("bus: another process owns the state folder")

// Own takes the state folder, which is made if it is missing, or returns
// ErrOwned.
func Own(dir string) (*Owner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("bus: state folder: %w", err)
	}
	l := flock.New(filepath.Join(dir, lockFile))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("bus: state folder: %w", err)
	}
	if !ok {
		return nil, ErrOwned
	}
	o := &Owner{dir: dir, lock: l}
	if err := o.format(); err != nil {
		return nil, errors.Join(err, l.Unlock())
	}
	return o, nil
}

// format refuses a folder that a newer version has written.
func (o *Owner) format() error {
	path := filepath.Join(o.dir, formatFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		fault.Point("bus.format")
		return renameio.WriteFile(path, []byte(stateFormat), 0o600)
	case err != nil:
		return fmt.Errorf("bus: state folder: %w", err)
	case string(b) != stateFormat:
		return fmt.Errorf("bus: the state folder %s has format %q, this version knows %q: use a newer nexus or another --state", o.dir, b, stateFormat)
	}
	return nil
}

// Announce writes where the owner's server listens; only the user can read it.
func (o *Owner) Announce(a Address) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	fault.Point("bus.announce")
	if err := renameio.WriteFile(filepath.Join(o.dir, addressFile), b, 0o600); err != nil {
		return fmt.Errorf("bus: announce: %w", err)
	}
	return nil
}

// Withdraw takes the announcement back: no further command attaches.
func (o *Owner) Withdraw() error {
	err := os.Remove(filepath.Join(o.dir, addressFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Release gives the folder back. Call it after the server has stopped.
func (o *Owner) Release() error { return errors.Join(o.Withdraw(), o.lock.Unlock()) }

// FindOwner reads where the owner's server listens. It fails with
// os.ErrNotExist while an owner is starting.
func FindOwner(dir string) (Address, error) {
	var a Address
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return a, fmt.Errorf("bus: owner: %w", err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("bus: owner: %s: %w", addressFile, err)
	}
	return a, nil
}
