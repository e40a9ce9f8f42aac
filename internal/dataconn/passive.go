package dataconn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/wire"
)

// passive waits for the client on a port of its own, until the client connects or the
// time is over. Then the port is free for others, also if no transfer begins.
type passive struct {
	listener *net.TCPListener
	client   netip.Addr // who may connect
	accepted chan struct{}

	mu     sync.Mutex
	conn   net.Conn // of the client, until Open takes it
	err    error    // why there is none
	closed bool
}

// accept takes the first connection from the client's address, and closes others.
func (p *passive) accept() {
	defer close(p.accepted)
	for {
		conn, err := p.listener.Accept()
		if err == nil && wire.AddrOf(conn.RemoteAddr()) != p.client {
			_ = conn.Close()
			continue
		}
		if !errors.Is(err, syscall.EMFILE) { // then the client is not refused, and its transfer gets 425
			_ = p.listener.Close()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.conn, p.err = conn, err; p.closed && err == nil {
			_ = conn.Close()
			p.conn, p.err = nil, net.ErrClosed
		}
		return
	}
}

// Open returns the connection of the client. The deadline of ctx replaces that of Listen, if
// that has not passed.
func (p *passive) Open(ctx context.Context) (net.Conn, error) {
	defer p.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = p.listener.SetDeadline(deadline) // an error means that accept has ended
	}
	select {
	case <-p.accepted:
	case <-ctx.Done():
		p.Close()
		<-p.accepted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.conn
	p.conn = nil
	if conn == nil && p.err == nil {
		return nil, net.ErrClosed
	}
	return conn, p.err
}

// Close frees the port, and ends a connection that no transfer has taken.
func (p *passive) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

// Listen listens for the client of a passive transfer (RFC 959 4.1.2, RFC 2428 3), for the
// time timeout. It takes a free port of the range on the address local, and returns the port.
func Listen(ctx context.Context, ports PortRange, local, client netip.Addr, timeout time.Duration) (Source, uint16, error) {
	listener, err := ports.listen(ctx, local)
	if err != nil {
		return nil, 0, err
	}
	_ = listener.SetDeadline(time.Now().Add(timeout)) // it never fails on an open listener
	p := &passive{listener: listener, client: client, accepted: make(chan struct{})}
	go p.accept()
	return p, listener.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}
