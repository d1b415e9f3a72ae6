package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// EnvClaims names the registry's file. It is for what cannot share a home
// folder and still shares projects, such as containers that mount them.
const EnvClaims = "NEXUS_CLAIMS"

const claimsFile = "nexus-claims.json"

// ClaimsPath is the registry of this user on this host, whatever the
// environment of a process says of state folders and homes: the file that
// EnvClaims names; else .local/state/nexus-claims.json in the home folder that
// the user database knows; else, for users without a usable home, in a folder
// of their own, nexus-UID, below /var/tmp or /tmp. /run/user is no place for
// it: it goes when the user logs out, and an interrupted run stays.
func ClaimsPath() (string, error) {
	if path := os.Getenv(EnvClaims); path != "" {
		if !filepath.IsAbs(path) {
			return "", &Error{Kind: KindRegistry, Detail: EnvClaims + " must be an absolute path, not " + path}
		}
		return path, nil
	}
	uid := os.Geteuid()
	p := places{uid: uint32(uid), shared: []string{"/var/tmp", "/tmp"}} //nolint:gosec // a uid is never negative here
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		p.home = u.HomeDir
	}
	return p.claims()
}

// places are where a user's registry may lie.
type places struct {
	uid uint32
	// home is the user's home folder, empty when there is none.
	home string
	// shared are folders in which everybody may make names.
	shared []string
}

func (p places) claims() (string, error) {
	if p.usable() {
		return filepath.Join(p.home, ".local", "state", claimsFile), nil
	}
	for _, dir := range p.shared {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			own, err := p.own(filepath.Join(dir, "nexus-"+strconv.FormatUint(uint64(p.uid), 10)))
			return filepath.Join(own, claimsFile), err
		}
	}
	return "", &Error{Kind: KindRegistry, Detail: "no place for the registry of claims: set " + EnvClaims}
}

// usable reports whether the home folder is the user's and can be written.
func (p places) usable() bool {
	home, err := filepath.EvalSymlinks(p.home) // a home may be a link
	if err != nil || !filepath.IsAbs(home) || home == "/" || p.check(home, 0o002) != nil {
		return false
	}
	deepest := home
	for _, sub := range []string{".local", ".local/state"} {
		if d := filepath.Join(home, sub); exists(d) {
			deepest = d
		}
	}
	return unix.Access(deepest, unix.W_OK|unix.X_OK) == nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// own makes a folder that nobody else can enter. One that somebody else has
// put there is refused: whoever owns it could take a claim away.
func (p places) own(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", &Error{Kind: KindRegistry, Detail: dir, Err: err}
	}
	if err := p.check(dir, 0o077); err != nil {
		return "", &Error{Kind: KindRegistry, Detail: "set " + EnvClaims + " to a file in a folder that only you can write", Err: err}
	}
	return dir, nil
}

// check refuses what is no folder of the user, or one that has a mode bit of
// those forbidden.
func (p places) check(dir string, forbidden uint32) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != p.uid || uint32(st.Mode)&forbidden != 0 {
		return fmt.Errorf("%s is not a folder of this user alone", dir)
	}
	return nil
}
