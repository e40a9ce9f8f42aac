package engine

import (
	"errors"
	"net"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// start starts an engine that has logged in.
func start(t *testing.T, s *Server) *Engine {
	t.Helper()
	e, err := s.Start(t.Context(), func() (string, error) { return "/", nil })
	must.OK(t, err)
	t.Cleanup(e.Stop)
	e.op = &Operation{Context: t.Context()}
	if _, err := e.internalCommand("PASS", 230); err != nil {
		t.Fatal(err)
	}
	return e
}

func newServer(t *testing.T, avoid netaddr.PortRange) *Server {
	s := NewServer(avoid)
	t.Cleanup(s.Close)
	return s
}

// TestPortInUse: where the port is in use that the library would listen on, it gets another.
func TestPortInUse(t *testing.T) {
	busy, err := net.Listen("tcp4", "0.0.0.0:0")
	must.OK(t, err)
	defer busy.Close()
	port := int64(busy.Addr().(*net.TCPAddr).Port)
	s := newServer(t, netaddr.PortRange{})
	e := start(t, s)
	s.port.Store(port)
	s.listens.Store(true)
	if _, err := e.passive(); err == nil {
		t.Fatal("the library listens on a port that is in use")
	}
	if err := e.listen(e.op); err != nil {
		t.Error(err)
	}
	if s.port.Load() == port {
		t.Error("the port is the same")
	}
}

// TestFirstTransfersAtOnce: engines that transfer for the first time at the same moment open one port, and each gets
// its listener.
func TestFirstTransfersAtOnce(t *testing.T) {
	for range 30 {
		s := newServer(t, netaddr.PortRange{})
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			e := start(t, s)
			all.Go(func() {
				<-begin
				if err := e.listen(e.op); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// TestPortOfTheLibrary: the library's listener has a port that sessions do not get, closes what connects, and takes no
// transfer from an engine. It is the only one, however many transfers there are.
func TestPortOfTheLibrary(t *testing.T) {
	avoid := netaddr.PortRange{First: 20000, Last: 45000}
	s := newServer(t, avoid)
	for range 3 {
		e := start(t, s)
		for range 20 {
			must.OK(t, e.listen(e.op))
		}
	}
	port := s.port.Load()
	if avoid.Contains(uint16(port)) {
		t.Errorf("port %d is one of the sessions", port)
	}
	conn, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	must.OK(t, err)
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes came from the library's port", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.offered); n != 0 {
		t.Errorf("%d listeners are left", n)
	}
}

// TestOneServerForAllSessions: each engine gets the listener that it has asked for, whatever the others do at the same
// time, and an engine that waits, panics or ends does so alone.
func TestOneServerForAllSessions(t *testing.T) {
	s := newServer(t, netaddr.PortRange{})
	const engines = 30
	var all sync.WaitGroup
	for range engines {
		e := start(t, s)
		all.Go(func() {
			for range 50 {
				op := &Operation{Context: t.Context()}
				if err := e.PrepareTransfer(op, 0, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	stuck, release := make(chan struct{}), make(chan struct{})
	waits, err := s.Start(t.Context(), func() (string, error) {
		close(stuck)
		<-release
		return "/", nil
	})
	must.OK(t, err)
	must.OK(t, waits.Send(&Operation{Context: t.Context()}, "PASS", ""))
	<-stuck
	broken, err := s.Start(t.Context(), func() (string, error) { panic("a bug") })
	must.OK(t, err)
	op := &Operation{Context: t.Context()}
	must.OK(t, broken.Send(op, "PASS", ""))
	if r := <-broken.Replies(); r.Code != 530 {
		t.Errorf("after a panic the engine says %v", r)
	}
	if _, ok := errors.AsType[*panics.Error](op.Err); !ok {
		t.Errorf("the panic became %v", op.Err)
	}
	stopped := start(t, s)
	stopped.Stop()
	<-stopped.Done()

	other := start(t, s)
	other.SetWorkingDirectory("/mine")
	if err := other.listen(other.op); err != nil {
		t.Error(err)
	}
	close(release)
	if r := <-waits.Replies(); r.Code != 230 {
		t.Errorf("the engine that was stuck says %v", r)
	}
	if waits.WorkingDirectory() != "/" || other.WorkingDirectory() != "/mine" {
		t.Errorf("working directories %q and %q", waits.WorkingDirectory(), other.WorkingDirectory())
	}
}

// TestAddressesOfEngines: no two engines share an address, and no client can have one.
func TestAddressesOfEngines(t *testing.T) {
	a, b := address{&Engine{number: 1}}.String(), address{&Engine{number: 1 << 40}}.String()
	if a == b || !strings.HasPrefix(a, "[100::") || !strings.HasPrefix(b, "[100::") {
		t.Errorf("%s and %s", a, b)
	}
}

// TestStartAfterClose: an engine that starts too late does not wait.
func TestStartAfterClose(t *testing.T) {
	s := newServer(t, netaddr.PortRange{})
	start(t, s)
	s.Close()
	s.Close()
	if _, err := s.Start(t.Context(), nil); !errors.Is(err, errServerEnded) {
		t.Error(err)
	}
}

// A pathname comes back from a line of the engine as it was, also if the engine has cleaned it.
func TestEscapeLine(t *testing.T) {
	for _, name := range []string{"/", "/a", "/a/", "/a/b/", "/a\nb/", "/a\r", "/a\x10", "/a\x10/", "/a\x10s", "/a\x10s/", "/s/", "/a b/"} {
		escaped := escapeLine(name)
		if got := unescapeLine(path.Clean(escaped)); got != name || strings.ContainsAny(escaped, "\r\n") {
			t.Errorf("%q is escaped as %q, which is %q", name, escaped, got)
		}
	}
}
