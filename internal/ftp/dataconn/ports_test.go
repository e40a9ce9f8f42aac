package dataconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// somePorts returns n ports that no program and no other test uses.
func somePorts(t *testing.T, n int) netaddr.PortRange {
	t.Helper()
	first := ftptest.FreePorts(t, n, localhost.String())
	return netaddr.PortRange{First: first, Last: first + uint16(n) - 1}
}

// dialFrom connects from an address of this machine.
func dialFrom(ctx context.Context, from netip.Addr, to string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	return dialer.DialContext(ctx, "tcp", to)
}

// opened checks that the session gets the connection of the client.
func opened(t *testing.T, p *waiter, client net.Conn) {
	t.Helper()
	conn, err := p.Open(t.Context())
	must.OK(t, err)
	defer conn.Close()
	if conn.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("got a connection from %v, want %v", conn.RemoteAddr(), client.LocalAddr())
	}
}

// nothingLeft checks that no port is in use.
func nothingLeft(t *testing.T, ports *Ports) {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if len(ports.listeners) != 0 || len(ports.byUser)+len(ports.byAddress) != 0 {
		t.Errorf("got ports in use %v, counted %v", ports.listeners, ports.byUser)
	}
}

// A connection that arrived for a session that has left its port is not given to the next session on the port,
// however long Receive takes.
func TestReceiveLate(t *testing.T) {
	held := make(chan func() bool)
	ports := NewPorts(
		PortOptions{Range: somePorts(t, 1), Address: localhost,
			Receive: func(conn net.Conn, arrived time.Time, match Match) {
				held <- func() bool { return match(conn, arrived) }
			}})
	must.OK(t, ports.Open(t.Context()))
	defer ports.Close()
	listen := func() (Source, string) {
		source, port, err := ports.Listen(t.Context(), Client{Local: localhost, Addr: localhost}, time.Hour)
		must.OK(t, err)
		t.Cleanup(source.Close)
		return source, net.JoinHostPort(localhost.String(), strconv.Itoa(int(port)))
	}
	first, address := listen()
	for _, late := range []bool{true, false} {
		client, err := dialFrom(t.Context(), localhost, address)
		must.OK(t, err)
		defer client.Close()
		match := <-held
		if late {
			first.Close()
			listen()
		}
		if match() == late {
			t.Errorf("the connection came before the session: %t, and the session took it: %t", late, late)
		}
	}
}

// Sessions share the only port if their clients have different addresses. Each gets the connection of its own
// client, in any order. Connections from other addresses are closed, and the port is free at the end.
func TestPortIsShared(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	one, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	two, same := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	if address != same || ports.InUse() != 1 {
		t.Fatalf("got different ports %s and %s", address, same)
	}
	if _, _, err := ports.Listen(t.Context(), aClient("127.0.0.2"), time.Hour); !isPortsLimit(err) {
		t.Errorf("second session of an address on one port: %v", err)
	}
	dial := func(from string) net.Conn {
		t.Helper()
		conn, err := dialFrom(t.Context(), netip.MustParseAddr(from), address)
		must.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	stranger, clientOfTwo := dial("127.0.0.3"), dial("127.0.0.2")
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger received data")
	}
	opened(t, two, clientOfTwo)
	if _, err := dial("127.0.0.2").Read(make([]byte, 1)); err == nil {
		t.Error("a second connection received data")
	}
	again, _ := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	opened(t, one, dial("127.0.0.1"))
	opened(t, again, dial("127.0.0.2"))
	nothingLeft(t, ports)
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
}

func isPortsLimit(err error) bool {
	limit, ok := errors.AsType[*limits.Error](err)
	return ok && *limit == limits.Error{Limit: "passive.ports"}
}

// Sessions use free ports before they share ports, and the sessions of one address never share.
func TestPortsFreeFirst(t *testing.T) {
	const size = 8
	ports := NewPorts(PortOptions{Range: somePorts(t, size)})
	for n := range size {
		c := aClient("127.0.0.1")
		c.Tenant = strconv.Itoa(n) // so that no share is exhausted
		listenOn(t, ports, c, time.Hour)
		if ports.InUse() != n+1 {
			t.Fatalf("%d sessions of one address have %d ports", n+1, ports.InUse())
		}
	}
	for range size / 2 {
		listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	}
	if ports.InUse() != size {
		t.Errorf("got %d ports in use, want %d", ports.InUse(), size)
	}
}

// Users behind one address leave ports for each other. Other addresses are not affected.
func TestPortShares(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 16)})
	takeAll := func(addr, tenant, user string, want int) {
		t.Helper()
		got := 0
		for {
			c := Client{Local: localhost, Addr: netip.MustParseAddr(addr), Tenant: tenant, User: user}
			source, _, err := ports.Listen(t.Context(), c, time.Hour)
			if err != nil {
				if !isPortsLimit(err) {
					t.Fatal(err)
				}
				break
			}
			t.Cleanup(source.Close)
			got++
		}
		if got != want {
			t.Errorf("%s of %s at %s has %d ports, want %d", user, tenant, addr, got, want)
		}
	}
	// The first user gets 12 of 16 ports, the second user 3 of the remaining 4, and the third user the last port.
	takeAll("127.0.0.1", "acme", "alice", 12)
	takeAll("127.0.0.1", "acme", "bob", 3)
	takeAll("127.0.0.1", "globex", "alice", 1)
	takeAll("127.0.0.1", "umbrella", "alice", 0)
	// Users at other addresses can use all ports.
	takeAll("127.0.0.2", "acme", "alice", 12)
	takeAll("127.0.0.3", "umbrella", "alice", 12)
}

// A session holds a port until the client has connected, the timeout has expired or the session has ended.
func TestPortIsHeld(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	for name, end := range map[string]func(p *waiter, address string){
		"connected": func(p *waiter, address string) {
			conn, err := dialFrom(t.Context(), localhost, address)
			must.OK(t, err)
			defer conn.Close()
			<-p.settled
		},
		"closed":    func(p *waiter, _ string) { p.Close() },
		"timed-out": func(p *waiter, _ string) { p.timer.Reset(0); <-p.settled },
	} {
		t.Run(name, func(t *testing.T) {
			source, port, err := ports.Listen(t.Context(), aClient("127.0.0.1"), time.Hour)
			must.OK(t, err)
			defer source.Close()
			if _, _, err := ports.Listen(t.Context(), aClient("127.0.0.1"), time.Hour); !isPortsLimit(err) {
				t.Errorf("second port: %v", err)
			}
			end(source.(*waiter), netip.AddrPortFrom(localhost, port).String())
			nothingLeft(t, ports)
		})
	}
}

// If a port cannot accept connections, its sessions get an error. Their clients are not refused, and no other
// session gets the port.
func TestPortFails(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	one, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	two, _ := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	if err := one.listener.SetDeadline(time.Unix(1, 0)); err != nil { // makes Accept return an error
		t.Fatal(err)
	}
	<-one.settled
	<-two.settled
	if _, _, err := ports.Listen(t.Context(), aClient("127.0.0.3"), time.Hour); err == nil || isPortsLimit(err) {
		t.Errorf("another session on the port: %v", err)
	}
	conn, err := dialFrom(t.Context(), localhost, address)
	if err != nil {
		t.Errorf("client refused: %v", err)
	} else {
		_ = conn.Close()
	}
	for _, p := range []*waiter{one, two} {
		if conn, err := p.Open(t.Context()); conn != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("transfer on the port: %v, %v", conn, err)
		}
	}
	nothingLeft(t, ports)
	listenOn(t, ports, aClient("127.0.0.3"), time.Hour) // the port is free
}

// A port that is used by another program is skipped.
func TestPortOfAnotherProgram(t *testing.T) {
	r := somePorts(t, 2)
	other, err := net.Listen("tcp", netip.AddrPortFrom(localhost, r.First).String())
	must.OK(t, err)
	defer other.Close()
	_, address := listenOn(t, NewPorts(PortOptions{Range: r}), aClient("127.0.0.1"), time.Hour)
	if want := netip.AddrPortFrom(localhost, r.Last).String(); address != want {
		t.Errorf("got port %s, want %s", address, want)
	}
	_, _, err = NewPorts(PortOptions{Range: netaddr.PortRange{First: r.First, Last: r.First}}).Listen(
		t.Context(), aClient("127.0.0.1"), time.Hour)
	if err == nil || isPortsLimit(err) {
		t.Errorf("without another port: %v", err)
	}
}

// IPv6 clients have ports of their own.
func TestPortsIPv6(t *testing.T) {
	loopback := netip.IPv6Loopback()
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6: ", err)
	} else {
		_ = l.Close()
	}
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	four, _ := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	six, address := listenOn(
		t, ports, Client{Local: loopback, Addr: loopback, Tenant: "acme", User: "alice"}, time.Hour)
	conn, err := dialFrom(t.Context(), loopback, address)
	must.OK(t, err)
	defer conn.Close()
	opened(t, six, conn)
	four.Close()
	nothingLeft(t, ports)
}

// Clients with ten addresses come and go on three ports. Some connect too late for their session, or not at all.
// All other sessions must get the connection of their own client, and not a late connection for an earlier
// session.
func TestPortsAtOnce(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 3)})
	const rounds = 100
	var clients sync.WaitGroup
	for n := range 10 {
		c := aClient(fmt.Sprintf("127.0.0.%d", n+1))
		clients.Go(func() {
			for round := range rounds {
				if err := comeAndGo(t.Context(), ports, c, round); err != nil {
					t.Errorf("%v, round %d: %v", c.Addr, round, err)
					return
				}
			}
		})
	}
	clients.Wait()
	nothingLeft(t, ports)
}

// comeAndGo runs one session, whose client connects in time, too late, or not at all.
func comeAndGo(ctx context.Context, ports *Ports, c Client, round int) error {
	timeout := time.Hour
	if round%5 == 1 {
		timeout = time.Millisecond
	}
	source, port, err := ports.Listen(ctx, c, timeout)
	if errors.Is(err, os.ErrDeadlineExceeded) && timeout != time.Hour {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	if round%5 == 2 {
		return nil
	}
	word := []byte(fmt.Sprintf("%v %4d", c.Addr, round))
	client, err := dialFrom(ctx, c.Addr, netip.AddrPortFrom(c.Local, port).String())
	if timeout != time.Hour {
		if err == nil { // otherwise it was too late
			_ = client.Close()
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Write(word); err != nil {
		return err
	}
	conn, err := source.Open(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	got := make([]byte, len(word))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != string(word) {
		return fmt.Errorf("the session reads %q, %w; want %q", got, err, word)
	}
	return nil
}

// A panic ends only the connection that caused it. The port accepts the next connection.
func TestPanic(t *testing.T) {
	guard := panics.NewGuard(slog.New(slog.DiscardHandler))
	var first atomic.Bool
	for name, receive := range map[string]func(net.Conn, time.Time, Match){
		"match": nil,
		"receive": func(conn net.Conn, arrived time.Time, match Match) {
			if first.CompareAndSwap(false, true) {
				panic("a bug before the session is found")
			}
			if !match(conn, arrived) {
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := guard.Count()
			ports := NewPorts(PortOptions{Range: somePorts(t, 1), Address: localhost, Receive: receive, Guard: guard})
			must.OK(t, ports.Open(t.Context()))
			defer ports.Close()
			client := Client{Local: localhost, Addr: localhost}
			w, err := ports.wait(t.Context(), client, time.Hour)
			must.OK(t, err)
			<-w.ready
			if receive == nil { // a bug when the session leaves the port
				ports.mu.Lock()
				w.timer.Stop()
				w.timer = nil
				ports.mu.Unlock()
			}
			conn, err := dialFrom(t.Context(), localhost, w.listener.Addr().String())
			must.OK(t, err)
			defer conn.Close()
			if n, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("the client received %d bytes", n)
			}
			// the client may see the end before the panic is counted
			for end := time.Now().Add(time.Minute); guard.Count() == before && time.Now().Before(end); {
				runtime.Gosched()
			}
			if n := guard.Count() - before; n != 1 {
				t.Errorf("got %d counted panics, want 1", n)
			}
			if receive == nil { // the session has left the port
				if w, err = ports.wait(t.Context(), client, time.Hour); err != nil {
					t.Fatal(err)
				}
				<-w.ready
			}
			next, err := dialFrom(t.Context(), localhost, w.listener.Addr().String())
			must.OK(t, err)
			defer next.Close()
			opened(t, w, next)
		})
	}
}
