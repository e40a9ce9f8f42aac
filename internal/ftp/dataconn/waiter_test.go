package dataconn

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var localhost = netip.MustParseAddr("127.0.0.1")

// aClient returns a user of a tenant at an address.
func aClient(addr string) Client {
	return Client{Local: localhost, Addr: netip.MustParseAddr(addr), Tenant: "acme", User: "alice"}
}

// listen listens on any port of this machine until the timeout.
func listen(t *testing.T, client string, timeout time.Duration) (p *waiter, address string) {
	t.Helper()
	return listenOn(t, NewPorts(PortOptions{}), aClient(client), timeout)
}

// listenOn listens on one of the ports until the timeout.
func listenOn(t *testing.T, ports *Ports, c Client, timeout time.Duration) (p *waiter, address string) {
	t.Helper()
	source, port, err := ports.Listen(t.Context(), c, timeout)
	must.OK(t, err)
	t.Cleanup(source.Close)
	return source.(*waiter), netip.AddrPortFrom(c.Local, port).String()
}

// dial connects a client from 127.0.0.1.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn := must.Dial(t, address)
	return conn
}

// The port is free after the timeout if the client has not connected, even if no transfer has begun.
func TestPassivePortEndsInTime(t *testing.T) {
	p, address := listen(t, "127.0.0.1", time.Millisecond)
	<-p.settled
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
	if _, err := p.Open(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("transfer on the port: %v", err)
	}
}

// Sessions whose clients do not connect in time are counted. Port scans and sessions that no longer need their
// port are not counted.
func TestMissed(t *testing.T) {
	missed := make(chan struct{}, 10)
	ports := NewPorts(PortOptions{Missed: func() { missed <- struct{}{} }})
	given, _ := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	given.Close()
	scanned, address := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
	}
	scanned.Close()
	aborted, _ := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := aborted.Open(canceled); err == nil {
		t.Error("got a transfer without a client")
	}
	select {
	case <-missed:
		t.Error("counted a session that did not wait in vain")
	default:
	}
	listenOn(t, ports, aClient("127.0.0.1"), time.Millisecond)
	<-missed
	late, _ := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := late.Open(ended); err == nil {
		t.Error("got a transfer without a client")
	}
	<-missed
}

// If a client connects before the transfer command, its connection is kept, and its port is free for others.
func TestPassiveConnectsEarly(t *testing.T) {
	p, address := listen(t, "127.0.0.1", time.Hour)
	client := dial(t, address)
	<-p.settled
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("the port is still in use: %v", err)
	} else {
		_ = again.Close()
	}
	conn, err := p.Open(t.Context())
	must.OK(t, err)
	defer conn.Close()
	if conn.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("got a connection from %v, want %v", conn.RemoteAddr(), client.LocalAddr())
	}
}

// A connection that no transfer uses is closed with its session.
func TestPassiveCloseEndsTheConnection(t *testing.T) {
	p, address := listen(t, "127.0.0.1", time.Hour)
	client := dial(t, address)
	<-p.settled
	p.Close()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("client: got error %v, want EOF", err)
	}
	if _, err := p.Open(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("next transfer: %v", err)
	}
}

// A connection from another address is closed, and the session goes on waiting until the context of the transfer
// ends.
func TestPassiveRefusesOthers(t *testing.T) {
	p, address := listen(t, "127.0.0.2", time.Hour)
	other := dial(t, address)
	if _, err := other.Read(make([]byte, 1)); err == nil {
		t.Error("another client received data")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Open(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the transfer: %v", err)
	}
	if text := "; 127.0.0.1 did, which is not the address of the control connection"; !strings.HasSuffix(
		err.Error(), text) {
		t.Errorf("got log %q, want %q at the end", err, text)
	}
}

// Missing reports a client until it connects.
func TestPassiveMissing(t *testing.T) {
	p, address := listen(t, "127.0.0.1", time.Hour)
	if err := p.Missing(); err == nil || strings.Contains(err.Error(), "which is not the address") {
		t.Errorf("before the client: %v", err)
	}
	dial(t, address)
	<-p.settled
	if err := p.Missing(); err != nil {
		t.Errorf("with the client: %v", err)
	}
}
