//go:build unix

package dataconn

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A connection to a shared port must not use the last descriptors. Its transfer gets an error, and the other
// sessions go on waiting.
func TestSharedPortOnFewDescriptors(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	one, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	two, _ := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	restore := fewDescriptors(t)
	refused, err := dialFrom(t.Context(), two.client.Addr, address)
	must.OK(t, err)
	defer refused.Close()
	if conn, err := two.Open(t.Context()); conn != nil || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("transfer: got %v, %v", conn, err)
	}
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("client: got error %v, want EOF", err)
	}
	restore()
	conn, err := dialFrom(t.Context(), one.client.Addr, address)
	must.OK(t, err)
	defer conn.Close()
	opened(t, one, conn)
	nothingLeft(t, ports)
}

// A client that keeps connecting to a shared port does not delay a session that joins it. The session is ready
// when the connections that waited when it joined, and one more, were accepted.
func TestFloodedPort(t *testing.T) {
	const before = 3 // connections that wait when the session joins
	ports := NewPorts(PortOptions{Range: somePorts(t, 1)})
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(localhost, ports.Range.First)))
	must.OK(t, err)
	l := &listener{TCPListener: tcp, mu: &ports.mu, address: tcp.Addr().(*net.TCPAddr).AddrPort(),
		waiting: make(map[netip.Addr]*waiter)}
	ports.listeners[l.address] = l // no goroutine accepts connections
	one, err := ports.wait(t.Context(), aClient("127.0.0.1"), time.Hour)
	must.OK(t, err)
	flood := func() {
		conn, err := dialFrom(t.Context(), netip.MustParseAddr("127.0.0.2"), l.address.String())
		must.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range before {
		flood()
	}
	two, err := ports.wait(t.Context(), aClient("127.0.0.2"), time.Hour)
	must.OK(t, err)
	for accepted := -1; ; accepted++ { // the first Accept returns because of the deadline that the session has set
		select {
		case <-two.settled:
			t.Fatalf("a connection that came before the session was given to it, after %d others", accepted)
		default:
		}
		select {
		case <-two.ready:
			if accepted < before {
				t.Errorf("the session is ready after %d connections, and %d waited before it", accepted, before)
			}
			one.Close()
			two.Close()
			nothingLeft(t, ports)
			return
		default:
		}
		if accepted > before+1 {
			t.Fatalf("the session is not ready after %d connections", accepted)
		}
		flood()
		ports.receive(l, l.Accept)
	}
}

// fewDescriptors leaves the process only its last descriptors until restore is called.
func fewDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var before unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	const limit, reserve = 256, 32
	few := before
	few.Cur = limit
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	var files []*os.File
	restore = func() {
		for _, f := range files {
			_ = f.Close()
		}
		files = nil
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	for taken := uintptr(0); taken < limit-reserve; {
		f, err := os.Open(os.DevNull)
		must.OK(t, err)
		files = append(files, f)
		taken = f.Fd()
	}
	return restore
}
