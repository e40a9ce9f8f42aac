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

// A Source provides the data connection of one transfer, passive or active.
type Source interface {
	// Waits reports whether Open would wait for the client to connect to a passive port.
	Waits() bool
	// Open returns the connection. It waits until ctx ends.
	Open(ctx context.Context) (net.Conn, error)
	// Close ends a waiting Open. It may be called more than once.
	Close()
	// Missing returns an error for the log if the client has not connected to its passive port.
	Missing() error
}

// A finisher is a data connection that is relayed by another replica. Its Close method cuts the relay.
type finisher interface {
	// Received reports that an upload is complete. The client may then close its side without reading the rest.
	Received()
	// Finish ends the connection properly. If it fails, the client may not have received everything.
	Finish() error
}

// finishing calls Finish when TLS closes the connection, so after the last TLS records.
type finishing struct {
	net.Conn
	finisher
}

func (f finishing) Close() error {
	err := f.Finish()
	_ = f.Conn.Close()
	return err
}

// maxDataWrite limits the size of a write in bytes, so that each write to a slow client finishes within the stall
// timeout.
const maxDataWrite = 256 << 10

// A Conn is the open data connection of a transfer. It counts bytes and detects stalls.
type Conn struct {
	net.Conn          // TCP or TLS
	raw      net.Conn // TCP
	below    *cutConn // read by TLS, nil without TLS
	ctx      context.Context
	transfer *Transfer
	opened   time.Time
	ended    time.Time // when the last byte from the client had arrived
	window   window    // bytes of an upload in the current window
}

var _ contract.ReadDeadliner = (*Conn)(nil)

// RemoteAddr returns the address of the client without the zone of a link-local address, which ftpserverlib could
// not parse.
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

// Close ends the connection, and completes a download or a listing. ftpserverlib ignores its error, so the session
// uses [Transfer.Result]. If the transfer failed, a relayed connection is cut, so that the client does not take a
// part of a file for the whole. A download fails if its relay is cut at the end.
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
		return c.recordFailure(err)
	}
	c.transfer.setComplete()
	return nil
}

// handshake runs the TLS handshake before the first bytes. It must not run earlier, because many clients start TLS
// only after reply 150.
func (c *Conn) handshake() error {
	conn, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	_ = c.raw.SetDeadline(time.Now().Add(c.transfer.StallTimeout))
	// If a context ends, crypto/tls closes the connection while this goroutine uses it, and ends the stream as if it
	// were complete. So the context is not passed on, and Stop closes the raw connection.
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
	return c.recordFailure(err)
}

// cutConn is the connection below TLS. A complete stream ends with close_notify of the client. If it ends without
// close_notify, the connection was cut (RFC 8446, 6.1), but crypto/tls would accept such an end between two records.
type cutConn struct {
	net.Conn
	lenient bool // accept an end without close_notify
	ended   bool // the stream ended without close_notify
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

// closedUnderTLS reports whether the client has ended the stream with close_notify.
func (c *Conn) closedUnderTLS() bool { return c.below != nil && !c.below.ended }

// Read reads the data of an upload.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	n, err := c.receive(b[:c.transfer.Pace.Chunk(len(b))])
	c.transfer.addBytes(n)
	if waitErr := c.pace(n); err == nil {
		err = waitErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, c.recordFailure(err)
	}
	if err != nil {
		c.ended = time.Now()
	}
	return n, err
}

// Write writes the data of a download or a listing. For an empty file ftpserverlib writes no bytes, but the client
// still waits for the handshake.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	written := 0
	for written < len(b) {
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.transfer.StallTimeout))
		n, err := c.Conn.Write(b[written : written+c.transfer.Pace.Chunk(min(len(b)-written, maxDataWrite))])
		written += n
		c.transfer.addBytes(n)
		if err == nil {
			err = c.pace(n)
		}
		if err != nil {
			return written, c.recordFailure(err)
		}
	}
	return written, nil
}

// pace waits if the transfer is faster than its rate limit.
func (c *Conn) pace(n int) error {
	if c.transfer.Pace == nil {
		return nil
	}
	return c.transfer.Pace.Wait(c.ctx, n)
}

// recordFailure records why the connection failed.
func (c *Conn) recordFailure(err error) error {
	switch {
	case c.ctx.Err() != nil: // the storage has stopped reading the upload
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
