package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// smallBuffer and largeBuffer are the read buffer sizes for a client before and after it has sent much data.
	smallBuffer = 512
	largeBuffer = 32 << 10
	// maxWrite is the number of bytes that a client must accept within half of the stall timeout. The owner gets a
	// progress frame after each quarter of the timeout, so it never times out before the relay does.
	maxWrite = maxFrame / 2
)

// A relay forwards the connection of a client to the owner.
type relay struct {
	client net.Conn     // without the header of the load balancer
	socket *net.TCPConn // socket of client
	owner  *net.TCPConn
	frames frameWriter // writes frames to the owner
	stall  time.Duration

	received bool // the owner has the whole upload
}

// relay forwards a connection until both sides have ended or one was cut.
func (c *Cluster) relay(client net.Conn, port uint16, arrived time.Time) Result {
	ctx, cancel := context.WithTimeout(c.ctx, c.within)
	defer cancel()
	conn, err := c.dialOwner(ctx, port)
	if err != nil {
		if missing, ok := c.sampler.Pass(Reason(Unreachable)); ok { // strangers may connect to all ports
			c.Log.Warn(
				"data connection not relayed: the replica that owns its port does not respond; check that it is running, "+
					"and check cluster.peers",
				"port", port, "err", err, "others", missing)
		}
		return Unreachable
	}
	defer conn.Close()
	r := &relay{client: client, socket: socketOf(client), owner: conn, frames: frameWriter{conn: conn},
		stall: c.stallTimeout()}
	stop := context.AfterFunc(c.ctx, r.abort)
	defer stop()
	h, err := header(client, arrived)
	if err != nil || r.offer(h, c.within) != nil {
		return Unmatched
	}
	if err := r.run(); err != nil {
		panics.Raise(err)
		c.Log.Info("relay cut", "port", port, "client", client.RemoteAddr(), "err", err)
		return Failed
	}
	return Complete
}

// dialOwner connects to the replica that hands out a port.
func (c *Cluster) dialOwner(ctx context.Context, port uint16) (*net.TCPConn, error) {
	from := c.Address
	if from.IsUnspecified() {
		from = netip.Addr{}
	}
	conn, err := dial(ctx, c.owner(port), net.Dialer{Control: limits.TransferReserve.Control}, from, port)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// socketOf returns the socket of a connection.
func socketOf(conn net.Conn) *net.TCPConn {
	if below, ok := conn.(contract.Inner); ok {
		conn = below.NetConn()
	}
	return conn.(*net.TCPConn)
}

// offer sends the relay header to the owner and waits until a session takes the connection.
func (r *relay) offer(header []byte, within time.Duration) error {
	_ = r.owner.SetDeadline(time.Now().Add(within))
	if _, err := r.owner.Write(header); err != nil {
		return err
	}
	kind, _, err := r.next()
	if err == nil && kind != frameTaken {
		err = errFrame
	}
	if err != nil {
		return err
	}
	return r.owner.SetDeadline(time.Time{})
}

// next reads the header of the next frame from the owner.
func (r *relay) next() (kind byte, length int, err error) {
	var b [frameHeader]byte
	if _, err := io.ReadFull(r.owner, b[:]); err != nil {
		return 0, 0, err
	}
	return parseHeader(b[:])
}

// run forwards data in both directions until the owner ends the transfer. Only the owner knows whether it is
// complete, because a client that closes its socket without reading the end of TLS resets the connection even
// after a complete transfer.
func (r *relay) run() error {
	up := make(chan error, 1)
	panics.Go(func() {
		err := panics.Catch(r.fromClient)
		if isBug(err) {
			r.abort()
		}
		up <- err
	})
	err := panics.Catch(r.fromOwner)
	if err != nil {
		r.abort()
	}
	_ = r.socket.Close() // the owner has ended the transfer
	errUp := <-up
	if isBug(errUp) || err != nil && errUp != nil && !errors.Is(errUp, net.ErrClosed) {
		err = errUp // the owner has cut the relay because of this error
	}
	return err
}

// isBug reports whether err is a recovered panic.
func isBug(err error) bool {
	_, bug := errors.AsType[*panics.Error](err)
	return bug
}

// abort resets both connections, so that neither side takes a part for the whole.
func (r *relay) abort() {
	for _, conn := range []*net.TCPConn{r.socket, r.owner} {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}

// fromClient forwards the data of the client and its end. After a reset the owner reads all earlier data and then
// an end without an end frame. If the owner stops reading, it also ends the other direction, so that is not an
// error here.
func (r *relay) fromClient() error {
	b := make([]byte, smallBuffer)
	for {
		n, err := r.client.Read(b)
		if n > 0 {
			if _, err := r.frames.write(frameData, b[:n]); err != nil {
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_, _ = r.frames.write(frameEnd, nil)
			return nil
		case err != nil:
			_ = r.owner.CloseWrite()
			return err
		case n == len(b) && n < largeBuffer:
			b = make([]byte, largeBuffer)
		}
	}
}

// fromOwner forwards the data of the owner and its end. Once the owner has sent an alive frame, it must send more,
// or it is considered gone. An owner with an older version sends none.
func (r *relay) fromOwner() error {
	alive, ended := false, false
	await := func() {
		if alive {
			_ = r.owner.SetReadDeadline(time.Now().Add(r.stall))
		}
	}
	lastProgress := time.Now()
	var b []byte // nil before the first data
	for {
		await()
		kind, length, err := r.next()
		switch {
		case err != nil && ended: // after an upload the owner closes at once, so a late write resets the connection
			return nil
		case err != nil:
			return cut(err)
		case ended:
			return errFrame
		case kind == frameEnd:
			if err := r.socket.CloseWrite(); err != nil && !r.received {
				return err
			}
			_, _ = r.frames.write(frameDelivered, nil)
			ended = true
			continue
		case kind == frameProgress:
			alive = true
		case kind == frameReceived:
			r.received = true
		}
		for length > 0 {
			await()
			_ = r.socket.SetWriteDeadline(time.Now().Add(r.stall / 2))
			if b == nil {
				b = make([]byte, largeBuffer)
			}
			n := min(length, maxWrite)
			if err := r.copyToClient(n, b); err != nil {
				return cut(err)
			}
			length -= n
			if time.Since(lastProgress) > r.stall/4 {
				_ = r.frames.progress(time.Time{})
				lastProgress = time.Now()
			}
		}
	}
}

// copyToClient copies length bytes from the owner through a buffer. Without the buffer, Go would splice them
// through a pipe, whose two descriptors could be the last ones of the process.
func (r *relay) copyToClient(length int, b []byte) error {
	n, err := io.CopyBuffer(toClient{r}, io.LimitReader(r.owner, int64(length)), b)
	if err == nil && n < int64(length) {
		return io.EOF
	}
	return err
}

// toClient writes to the client of a relay. After a complete upload it ignores write errors.
type toClient struct{ *relay }

func (w toClient) Write(b []byte) (int, error) {
	n, err := w.socket.Write(b)
	if err != nil && w.received {
		return len(b), nil
	}
	return n, err
}
