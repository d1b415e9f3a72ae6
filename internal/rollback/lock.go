package rollback

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"nexuscore.dev/nexus/internal/fault"
)

// Lock takes the lock on a project folder that every writer of it holds. It
// lies on the folder itself and leaves no file behind; the kernel frees it when
// the process dies. It never waits: a folder that another process, or another
// caller in this one, holds is KindBusy.
func Lock(dir string) (unlock func() error, err error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, &Error{Kind: KindUnreadable, Detail: dir, Err: err}
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		kind := KindUnreadable
		if errors.Is(err, unix.EWOULDBLOCK) {
			kind = KindBusy
		}
		return nil, errors.Join(&Error{Kind: kind, Detail: dir + " is being written by another process", Err: err}, f.Close())
	}
	fault.Point("rollback.lock")
	return f.Close, nil
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
