package dataconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// A Source makes the data connection of one transfer, passive or active.
type Source interface {
	// Waits tells whether Open would wait for the client to connect to a passive port.
	Waits() bool
	// Open waits for the connection until ctx ends.
	Open(ctx context.Context) (net.Conn, error)
	// Close ends an Open that waits. It may be called more than once.
	Close()
	// Missing is what the log should have if the client has not connected to the passive port that it got.
	Missing() error
}

// A finisher is a data connection that another replica relays. Close cuts it.
type finisher interface {
	// Received reports that all of an upload has arrived. The client may close its side without reading the rest.
	Received()
	// Finish ends the connection. After an error the client may have less than what was written.
	Finish() error
}

// finishing finishes a connection when it is closed, which comes after what TLS writes at the end.
type finishing struct {
	net.Conn
	finisher
}

func (f finishing) Close() error {
	err := f.Finish()
	_ = f.Conn.Close()
	return err
}

// maxDataWrite bounds one write in bytes, so that a slow client that still
// reads moves bytes within the stall timeout.
const maxDataWrite = 256 << 10

// A Conn is the open data connection of a transfer. It counts bytes and detects stalls.
type Conn struct {
	net.Conn          // TCP or TLS
	raw      net.Conn // TCP
	below    *cutConn // what TLS reads from, nil in the clear
	ctx      context.Context
	transfer *Transfer
	opened   time.Time
	ended    time.Time // when the client's last byte had come
	window   window    // of an upload
}

var _ contract.ReadDeadliner = (*Conn)(nil)

// RemoteAddr is the client's address without the zone of a link-local one, which the engine could not read. It looks
// at the address and does nothing with it.
func (c *Conn) RemoteAddr() net.Addr {
	tcp, ok := c.Conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return c.Conn.RemoteAddr()
	}
	return &net.TCPAddr{IP: tcp.IP, Port: tcp.Port}
}

func newConn(ctx context.Context, t *Transfer, raw net.Conn) *Conn {
	below := raw
	if f, ok := raw.(finisher); ok {
		below = finishing{raw, f}
	}
	c := &Conn{Conn: below, raw: raw, ctx: ctx, transfer: t, opened: time.Now()}
	if t.TLS == nil {
		if t.Upload && t.ControlTLS {
			c.Conn = &clearUpload{Conn: below}
		}
		return c
	}
	c.below = &cutConn{Conn: below}
	h := t.Handshake
	h.data = true
	if t.Upload {
		h.hold = &ticketHold{Conn: below}
		c.below.Conn = h.hold
	}
	c.ctx = WithHandshake(ctx, h)
	c.Conn = tls.Server(c.below, t.TLS)
	return c
}

// Close ends the connection, and with it a download or a listing. The library ignores its error, so the session asks
// [Transfer.Result]. A connection by way of another server is cut after a transfer that has failed, so that
// the client does not take a part of a file for the whole. A download to which that happens at its end has failed.
func (c *Conn) Close() error {
	relay, relayed := c.raw.(finisher)
	switch {
	case !relayed:
	case c.transfer.partial() || c.transfer.Upload && (c.ended.IsZero() || c.transfer.Err() != nil):
		return c.raw.Close()
	case c.transfer.Upload:
		relay.Received()
	}
	err := c.Conn.Close()
	if c.transfer.Upload {
		return nil
	}
	if err != nil && relayed {
		return c.failed(err)
	}
	c.transfer.delivered()
	return nil
}

// handshake is TLS's, before the first bytes and not sooner: many clients begin
// it only when they have seen the 150 reply.
func (c *Conn) handshake() error {
	conn, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	_ = c.raw.SetDeadline(time.Now().Add(c.transfer.StallTimeout))
	// When a context ends, crypto/tls closes the connection while this goroutine uses it, and as if it were complete.
	// Stop closes what is below.
	err := conn.HandshakeContext(context.WithoutCancel(c.ctx))
	if err == nil {
		if err := c.transfer.Handshake.check(conn.ConnectionState(), c.transfer.RequireReuse); err != nil {
			c.transfer.fail(err)
			return err
		}
	}
	switch _, broken := errors.AsType[syscall.Errno](err); {
	case err == nil:
		c.below.lenient = c.transfer.LenientEOF
		return nil
	case !broken && !errors.Is(err, ErrLost) && !errors.Is(err, net.ErrClosed) && !isTimeout(err):
		c.transfer.fail(ErrTLS)
	}
	return c.failed(err)
}

// cutConn lies below TLS. The data end with the client's close_notify. Where the
// bytes end without it the connection was cut (RFC 8446 6.1). crypto/tls would
// accept such an end between two records.
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
			err = errCut // crypto/tls turns io.ErrUnexpectedEOF back into io.EOF
		}
	}
	return n, err
}

// closedUnderTLS says whether the client has ended the data by close_notify,
// which only the client can send.
func (c *Conn) closedUnderTLS() bool { return c.below != nil && !c.below.ended }

// Read reads an upload.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	n, err := c.receive(b[:c.transfer.Pace.Chunk(len(b))])
	c.transfer.moved(n)
	if waitErr := c.pace(n); err == nil {
		err = waitErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, c.failed(err)
	}
	if err != nil {
		c.ended = time.Now()
	}
	return n, err
}

// Write writes a download or a listing. The library writes no bytes for an empty file, which still needs the handshake,
// because its client waits for that.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	written := 0
	for written < len(b) {
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.transfer.StallTimeout))
		n, err := c.Conn.Write(b[written : written+c.transfer.Pace.Chunk(min(len(b)-written, maxDataWrite))])
		written += n
		c.transfer.moved(n)
		if err == nil {
			err = c.pace(n)
		}
		if err != nil {
			return written, c.failed(err)
		}
	}
	return written, nil
}

// pace waits where the bytes that have moved are many for their time.
func (c *Conn) pace(n int) error {
	if c.transfer.Pace == nil {
		return nil
	}
	return c.transfer.Pace.Wait(c.ctx, n)
}

// failed notes why the connection was of no more use.
func (c *Conn) failed(err error) error {
	switch {
	case c.ctx.Err() != nil: // the storage has ended the read of an upload
		c.transfer.fail(context.Cause(c.ctx))
	case isTimeout(err):
		c.transfer.fail(ErrStalled)
	case errors.Is(err, ErrTLS):
		c.transfer.fail(err)
	case errors.Is(err, errCut):
		c.transfer.fail(errCut)
	default:
		c.transfer.fail(ErrLost)
	}
	return errors.Join(c.transfer.Err(), err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
