package sandbox

import "io"

// capture keeps the first head and the last tail bytes of a stream.
type capture struct {
	head, tail int
	first      []byte
	ring       []byte
	pos        int
	total      int64
}

func newCapture(head, tail int) *capture { return &capture{head: head, tail: tail} }

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.head - len(c.first); room > 0 {
		k := min(room, len(p))
		c.first = append(c.first, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.tail {
		p = p[len(p)-c.tail:]
	}
	for len(p) > 0 {
		p = p[c.put(p):]
	}
	return n, nil
}

// put stores a piece in the ring and returns its length.
func (c *capture) put(p []byte) int {
	if len(c.ring) < c.tail {
		k := min(c.tail-len(c.ring), len(p))
		c.ring = append(c.ring, p[:k]...)
		return k
	}
	k := copy(c.ring[c.pos:], p)
	c.pos = (c.pos + k) % c.tail
	return k
}

func (c *capture) output() Output {
	tail := append(append([]byte{}, c.ring[c.pos:]...), c.ring[:c.pos]...)
	return Output{
		Head: c.first, Tail: tail, Total: c.total,
		Dropped: c.total - int64(len(c.first)) - int64(len(tail)),
	}
}

// drain reads r to its end into c and, up to limit bytes, into log. It calls
// over once when more than limit bytes came, and goes on reading so that the
// writers never block; bytes past the limit still count and reach c.
func drain(r io.Reader, c *capture, log io.Writer, limit int64, over func()) error {
	buf := make([]byte, 64<<10)
	var logErr error
	for {
		n, err := r.Read(buf)
		if left := limit - c.total; log != nil && left > 0 && logErr == nil {
			_, logErr = log.Write(buf[:min(int64(n), left)])
		}
		was := c.total
		if _, werr := c.Write(buf[:n]); werr != nil {
			return werr
		}
		if was <= limit && c.total > limit {
			over()
		}
		if err == io.EOF {
			return logErr
		}
		if err != nil {
			return err
		}
	}
}
