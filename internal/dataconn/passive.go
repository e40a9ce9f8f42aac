package dataconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"

	"github.com/babelftp/babelftp/internal/wire"
)

// passive waits for the client on a port of its own.
type passive struct {
	listener *net.TCPListener
	client   netip.Addr // who may connect
}

// Open accepts the first connection from the client's address; others are
// closed.
func (p *passive) Open(ctx context.Context) (net.Conn, error) {
	defer p.Close()
	stop := context.AfterFunc(ctx, p.Close)
	defer stop()
	if deadline, ok := ctx.Deadline(); ok {
		if err := p.listener.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return nil, err
		}
		if wire.AddrOf(conn.RemoteAddr()) == p.client {
			return conn, nil
		}
		_ = conn.Close()
	}
}

func (p *passive) Close() { _ = p.listener.Close() }

// Listen listens for the client of a passive transfer (RFC 959 4.1.2, RFC 2428 3)
// on a free port of the range, of an address of this server. It returns the port.
func Listen(ctx context.Context, ports PortRange, local, client netip.Addr) (Source, uint16, error) {
	listener, err := ports.listen(ctx, local)
	if err != nil {
		return nil, 0, err
	}
	return &passive{listener: listener, client: client}, listener.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}

// A PortRange is an inclusive range of TCP ports. The zero value means
// [DynamicPorts].
type PortRange struct{ First, Last uint16 }

// DynamicPorts are those for whoever needs one for a while (RFC 6335 6). The
// kernel, asked for any, looks for one that was not used for a minute: once some
// hundred transfers a second have used them all up that takes it milliseconds.
func DynamicPorts() PortRange { return PortRange{49152, 65535} }

// Random returns a port of the range that nobody can guess.
func (r PortRange) Random() uint16 { return r.First + uint16(rand.IntN(r.size())) }

func (r PortRange) size() int { return int(r.Last) - int(r.First) + 1 }

// listen opens a free port of the range, beginning anywhere in it so that the
// next one cannot be guessed.
func (r PortRange) listen(ctx context.Context, local netip.Addr) (*net.TCPListener, error) {
	if r == (PortRange{}) {
		r = DynamicPorts()
	}
	size := r.size()
	start := rand.IntN(size)
	config := net.ListenConfig{KeepAlive: -1} // stalls are watched for
	var err error
	for i := range size {
		port := r.First + uint16((start+i)%size)
		var l net.Listener
		l, err = config.Listen(ctx, "tcp", netip.AddrPortFrom(local, port).String())
		if err == nil {
			return l.(*net.TCPListener), nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}
