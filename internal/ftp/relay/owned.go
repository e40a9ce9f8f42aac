package relay

import (
	"bufio"
	"io"
	"time"
)

// owned is a connection that another replica relays to this one, the owner of its port. Its addresses are the
// addresses in the relay header.
type owned struct {
	*proxyConn
	frames    frameWriter
	reader    *bufio.Reader
	left      int  // remaining data of the current frame
	ended     bool // the client has closed its side
	delivered bool
	stall     time.Duration
	alive     *time.Timer // runs while a session uses the connection
}

func newOwned(conn *proxyConn, stall time.Duration) *owned {
	c := &owned{
		proxyConn: conn, frames: frameWriter{conn: conn.NetConn(), first: frameTaken, last: frameEnd},
		reader: bufio.NewReader(conn), stall: stall,
	}
	c.alive = time.AfterFunc(stall, c.sendAlive)
	c.alive.Stop()
	return c
}

// begin confirms that a session has taken the connection, and starts sending alive frames, so that the relay
// notices if this replica or the network fails.
func (c *owned) begin() {
	if c.frames.begin() == nil { // the session gets the same error
		c.sendAlive()
	}
}

// maxAlive is the maximum interval between alive frames. It is independent of the stall timeout, because the relay
// may have a shorter one during a rollout.
const maxAlive = 5 * time.Second

func (c *owned) sendAlive() {
	if c.frames.progress(time.Now().Add(c.stall)) == nil {
		c.alive.Reset(min(c.stall/4, maxAlive))
	}
}

// Close cuts the connection, unless Finish was called before.
func (c *owned) Close() error {
	c.alive.Stop()
	return c.proxyConn.Close()
}

// next reads the header of the next frame. A timeout loses no bytes.
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

// Read reads data of the client. It returns [io.EOF] only if the client has closed its side.
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

// Write writes data to the client.
func (c *owned) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return c.frames.write(frameData, b)
}

// Received tells the relay that the upload is complete. TLS still writes data such as close_notify, but many
// clients close their socket without reading it.
func (c *owned) Received() {
	_ = c.SetWriteDeadline(time.Now().Add(c.stall))
	_, _ = c.frames.write(frameReceived, nil) // Finish returns the same error
}

// Finish closes this side and waits until the relay has delivered everything to the client. After an upload it
// does not wait. If it fails, the client may not have received everything.
func (c *owned) Finish() error {
	_ = c.SetWriteDeadline(time.Now().Add(c.stall))
	if _, err := c.frames.write(frameEnd, nil); err != nil || c.ended {
		return err
	}
	for !c.delivered {
		_ = c.SetReadDeadline(time.Now().Add(c.stall))
		if n, err := c.reader.Discard(c.left); err != nil { // discard unexpected data from the client
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
