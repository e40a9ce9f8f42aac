package control

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// dataSettings is what a client has said about its data connections.
type dataSettings struct {
	sized   bool // PBSZ was sent, or need not be
	private bool // PROT P
	epsvAll bool // after EPSV ALL nothing else is accepted (RFC 2428 4)
	source  dataSource
}

// newDataSettings is what counts before a client has said anything. Where TLS
// comes with the control connection, data connections are under TLS too: there
// clients send neither PBSZ nor PROT.
func (s *session) newDataSettings() dataSettings {
	return dataSettings{sized: s.implicit, private: s.implicit}
}

// close gives up a data connection that was prepared and not used.
func (d *dataSettings) close() {
	if d.source != nil {
		d.source.close()
		d.source = nil
	}
}

// prepare keeps a data connection's source for the next transfer.
func (d *dataSettings) prepare(source dataSource) {
	d.close()
	d.source = source
}

// A dataSource makes the data connection of one transfer, passive or active.
type dataSource interface {
	open(ctx context.Context) (net.Conn, error)
	close() // ends an open that waits; may be called more than once
}

// maxDataWrite bounds one write in bytes, so that a slow client that still
// reads moves bytes within the stall timeout.
const maxDataWrite = 256 << 10

// A dataConn is the data connection of a transfer as the engine uses it. It
// counts, watches for stalls, and writes the listing when there is one.
type dataConn struct {
	net.Conn          // TCP or TLS
	raw      net.Conn // TCP
	below    *cutConn // what TLS reads from, nil in the clear
	ctx      context.Context
	transfer *transfer
	opened   time.Time
	ended    time.Time // when the client's last byte had come
}

func newDataConn(ctx context.Context, t *transfer, raw net.Conn) *dataConn {
	c := &dataConn{Conn: raw, raw: raw, ctx: withHost(ctx, t.host), transfer: t, opened: time.Now()}
	if t.tls == nil {
		if t.upload && t.underTLS {
			c.Conn = &clearUpload{Conn: raw}
		}
		return c
	}
	c.below = &cutConn{Conn: raw}
	if t.upload {
		hold := &ticketHold{Conn: raw}
		c.below.Conn, c.ctx = hold, withHold(c.ctx, hold)
	}
	c.Conn = tls.Server(c.below, t.tls)
	return c
}

// handshake is TLS's, before the first bytes and not sooner: many clients begin
// it only when they have seen the 150 reply.
func (c *dataConn) handshake() error {
	conn, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	_ = c.raw.SetDeadline(time.Now().Add(c.transfer.stall))
	err := conn.HandshakeContext(c.ctx)
	switch _, broken := errors.AsType[syscall.Errno](err); {
	case err == nil:
		c.below.lenient = c.transfer.lenientEOF
		return nil
	case !broken && !errors.Is(err, errDataLost) && !errors.Is(err, net.ErrClosed) && !isTimeout(err):
		c.transfer.fail(errTLSFailed)
	}
	return c.failed(err)
}

// cutConn lies below TLS: there the end of the bytes is no end of the data,
// which is the client's close_notify, but says that somebody has cut the
// connection (RFC 8446 6.1). crypto/tls would let it pass between two records.
type cutConn struct {
	net.Conn
	lenient bool // let it pass
	ended   bool // the bytes have ended before the data
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		c.ended = true
		if !c.lenient {
			err = errDataLost // crypto/tls turns io.ErrUnexpectedEOF back into io.EOF
		}
	}
	return n, err
}

// closedUnderTLS says whether the client has ended the data by close_notify,
// which nobody else can send.
func (c *dataConn) closedUnderTLS() bool { return c.below != nil && !c.below.ended }

// Read reads an upload.
func (c *dataConn) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(c.transfer.stall))
	n, err := c.Conn.Read(b)
	c.transfer.bytes.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		return n, c.failed(err)
	}
	if err != nil {
		c.ended = time.Now()
	}
	return n, err
}

// Write writes a download. The engine makes one empty write where there is
// nothing to send: then a listing is written.
func (c *dataConn) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, c.writeListing()
	}
	if err := c.handshake(); err != nil {
		return 0, err
	}
	written := 0
	for written < len(b) {
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.transfer.stall))
		n, err := c.Conn.Write(b[written:min(len(b), written+maxDataWrite)])
		written += n
		c.transfer.bytes.Add(int64(n))
		if err != nil {
			return written, c.failed(err)
		}
	}
	return written, nil
}

func (c *dataConn) writeListing() error {
	if err := c.handshake(); err != nil { // a client waits for it even when nothing follows
		return err
	}
	if c.transfer.listing == nil {
		return nil
	}
	return c.transfer.listing.writeTo(c)
}

// failed notes why the connection was of no more use.
func (c *dataConn) failed(err error) error {
	switch {
	case isTimeout(err):
		c.transfer.fail(errStalled)
	case errors.Is(err, errTLSFailed):
		c.transfer.fail(err)
	default:
		c.transfer.fail(errDataLost)
	}
	return errors.Join(c.transfer.failed(), err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
