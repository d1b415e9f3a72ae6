package bus

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// cacheBytes bounds the blobs that a process keeps in memory.
const cacheBytes = 64 << 20

// blobs is what a process knows about the artifacts: some of them, and which
// ones are being put. The connections of a process share it.
type blobs struct {
	mu sync.Mutex
	// recent holds blobs that this process put or read, up to cacheBytes;
	// they are immutable, so they never go stale.
	recent map[string][]byte
	order  []string
	size   int
	busy   map[string]chan struct{}
}

func newBlobs() *blobs {
	return &blobs{recent: map[string][]byte{}, busy: map[string]chan struct{}{}}
}

// claim waits until nobody else in this process puts the blob.
func (c *blobs) claim(ctx context.Context, name string) (done func(), err error) {
	for {
		c.mu.Lock()
		other := c.busy[name]
		if other == nil {
			mine := make(chan struct{})
			c.busy[name] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.busy, name)
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// get returns a remembered blob, which must not be changed, or nil.
func (c *blobs) get(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent[name]
}

// keep remembers a blob; the oldest ones make room.
func (c *blobs) keep(name string, data []byte) {
	if len(data) == 0 || len(data) > cacheBytes/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.recent[name]; ok {
		return
	}
	c.recent[name] = bytes.Clone(data)
	c.order = append(c.order, name)
	c.size += len(data)
	for c.size > cacheBytes {
		c.size -= len(c.recent[c.order[0]])
		delete(c.recent, c.order[0])
		c.order = c.order[1:]
	}
}

// drop forgets a blob.
func (c *blobs) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= len(c.recent[name])
	delete(c.recent, name)
	c.order = slices.DeleteFunc(c.order, func(n string) bool { return n == name })
}
