package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// leastFree is what a disk must have left so that a failed write is not put
// down to it: less than a block of a stream.
const leastFree = 1 << 20

// FullDisk adds to an error that the disk of the state folder is full, when it
// is: the server's own errors do not always say so. nil stays nil.
func FullDisk(dir string, err error) error {
	if err == nil {
		return nil
	}
	free, errFree := freeBytes(dir)
	if errFree != nil || free >= leastFree {
		return err
	}
	return fmt.Errorf("the disk that holds the state folder %s is full (%d KiB are left): make room, or choose another one with --state: %w", dir, free>>10, err)
}

// healthPoll is how often the server is asked whether it can still write. A
// stream that once could not takes no message until the server starts anew,
// and answers nobody.
const healthPoll = time.Second

// Watch waits until ctx ends, and returns nil then, or until the server can no
// longer store what it is told.
func (s *Server) Watch(ctx context.Context) error {
	tick := time.NewTicker(healthPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.broken(); err != nil {
			return err
		}
	}
}

// broken says why the server can store nothing any more, or nil. What else it
// may find fault with, such as a foreign file in its folder, hinders nobody.
func (s *Server) broken() error {
	if _, err := os.Stat(storeDir(s.state)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bus: the streams were removed while the server ran: %w", err)
	}
	for _, e := range s.ns.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return FullDisk(s.state, fmt.Errorf("bus: the server can store nothing any more: %s", e.Error))
		}
	}
	return nil
}
