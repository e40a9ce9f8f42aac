package relay

import (
	"bufio"
	"io"
	"time"
)

// owned is a client's connection that another replica relays to this one, the owner of its port. Its addresses are
// those of the header.
type owned struct {
	*proxyConn
	frames    frameWriter
	reader    *bufio.Reader
	left      int  // data of the frame that is being read
	ended     bool // the client has closed its side
	delivered bool
	stall     time.Duration
	alive     *time.Timer // runs while a session has the connection
}

func newOwned(conn *proxyConn, stall time.Duration) *owned {
	c := &owned{
		proxyConn: conn, frames: frameWriter{conn: conn.NetConn(), first: frameTaken, last: frameEnd},
		reader: bufio.NewReader(conn), stall: stall,
	}
	c.alive = time.AfterFunc(stall, c.sayAlive)
	c.alive.Stop()
	return c
}

// begin says that a session takes the connection, and from then on that this replica lives. So the relay does not
// wait for one that is gone, or that the network no longer reaches.
func (c *owned) begin() {
	if c.frames.begin() == nil { // an error is one that the session meets too
		c.sayAlive()
	}
}

// maxAlive is the longest time between two frames that say that this replica lives: the relay may have a shorter
// stall timeout, during a rollout.
const maxAlive = 5 * time.Second

func (c *owned) sayAlive() {
	if c.frames.progress(time.Now().Add(c.stall)) == nil {
		c.alive.Reset(min(c.stall/4, maxAlive))
	}
}

// Close cuts the connection, unless it comes after Finish.
func (c *owned) Close() error {
	c.alive.Stop()
	return c.proxyConn.Close()
}

// next reads the header of the next frame. A timeout loses no byte.
func (c *owned) next() error {
	header, err := c.reader.Peek(frameHeader)
	if err != nil {
		return cut(err)
	}
	kind, length, err := parseHeader(header)
	if err != nil {
		return err
	}
	_, _ = c.reader.Discard(frameHeader)
	switch kind {
	case frameData:
		c.left = length
	case frameEnd:
		c.ended = true
	case frameDelivered:
		c.delivered = true
	}
	return nil
}

// Read reads what the client has sent. It returns [io.EOF] only if the client has closed its side.
func (c *owned) Read(b []byte) (int, error) {
	for c.left == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.reader.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, cut(err)
}

// Write writes to the client.
func (c *owned) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return c.frames.write(frameData, b)
}

// Received tells the relay that this replica has the whole upload. TLS writes more data at the end, such as
// close_notify, and many clients close their socket without reading it.
func (c *owned) Received() {
	_ = c.SetWriteDeadline(time.Now().Add(c.stall))
	_, _ = c.frames.write(frameReceived, nil) // Finish returns the same error
}

// Finish closes this side, and waits until the client's side of the relay has everything. After an upload there is
// nothing to wait for. The error says that the client may have less.
func (c *owned) Finish() error {
	_ = c.SetWriteDeadline(time.Now().Add(c.stall))
	if _, err := c.frames.write(frameEnd, nil); err != nil || c.ended {
		return err
	}
	for !c.delivered {
		_ = c.SetReadDeadline(time.Now().Add(c.stall))
		if n, err := c.reader.Discard(c.left); err != nil { // the client sends what is not asked for
			c.left -= n
			return cut(err)
		}
		c.left = 0
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}
