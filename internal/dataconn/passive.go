package dataconn

import (
	"context"
	"net"
	"net/netip"

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

// Listen listens for the client of a passive transfer (RFC 959 4.1.2, RFC 2428 3).
// It takes a free port of the range on the address local, and returns the port.
func Listen(ctx context.Context, ports PortRange, local, client netip.Addr) (Source, uint16, error) {
	listener, err := ports.listen(ctx, local)
	if err != nil {
		return nil, 0, err
	}
	return &passive{listener: listener, client: client}, listener.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}
