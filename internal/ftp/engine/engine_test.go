package engine

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// start starts an engine and returns its connection.
func start(t *testing.T, s *Server) *conn {
	t.Helper()
	e := s.NewEngine()
	t.Cleanup(e.Stop)
	c, err := e.connect(t.Context())
	must.OK(t, err)
	return c
}

func newServer(t *testing.T, avoid netaddr.PortRange) *Server {
	s := NewServer(avoid)
	t.Cleanup(s.Close)
	return s
}

// find returns an operation that searches the storage for a name.
func find(t *testing.T, stat func(name string) (fs.FileInfo, error)) *Operation {
	return &Operation{Context: t.Context(), Verb: "CWD", Name: "/a\r\nb/", Names: &pathname.Resolver{}, Stat: stat}
}

// TestPortInUse: if the port that the library should listen on is in use, it gets another port.
func TestPortInUse(t *testing.T) {
	busy, err := net.Listen("tcp4", "0.0.0.0:0")
	must.OK(t, err)
	defer busy.Close()
	port := int64(busy.Addr().(*net.TCPAddr).Port)
	s := newServer(t, netaddr.PortRange{})
	c := start(t, s)
	s.port.Store(port)
	s.listens.Store(true)
	if _, err := c.passive(); err == nil {
		t.Fatal("the library listens on a port that is in use")
	}
	if err := c.listen(&Operation{}); err != nil {
		t.Error(err)
	}
	if s.port.Load() == port {
		t.Error("the port did not change")
	}
}

// TestFirstTransfersAtOnce: engines that make the first transfer concurrently open one port, and each gets its own
// listener.
func TestFirstTransfersAtOnce(t *testing.T) {
	for range 30 {
		s := newServer(t, netaddr.PortRange{})
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			c := start(t, s)
			all.Go(func() {
				<-begin
				if err := c.listen(&Operation{}); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// TestPortOfTheLibrary: the listener of the library uses a port outside the range for sessions and closes every
// connection, and there is only one, however many transfers there are.
func TestPortOfTheLibrary(t *testing.T) {
	avoid := netaddr.PortRange{First: 20000, Last: 45000}
	s := newServer(t, avoid)
	for range 3 {
		c := start(t, s)
		for range 20 {
			must.OK(t, c.listen(&Operation{}))
		}
	}
	port := s.port.Load()
	if avoid.Contains(uint16(port)) {
		t.Errorf("got port %d of the sessions", port)
	}
	client, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	must.OK(t, err)
	defer client.Close()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes from the library's port", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.offered); n != 0 {
		t.Errorf("got %d remaining listeners", n)
	}
}

// TestOneServerForAllSessions: each engine gets its own listener, even with concurrent engines. An engine that
// waits, panics or stops does not affect the others.
func TestOneServerForAllSessions(t *testing.T) {
	s := newServer(t, netaddr.PortRange{})
	const engines = 30
	var all sync.WaitGroup
	for range engines {
		c := start(t, s)
		all.Go(func() {
			for range 50 {
				if err := c.listen(&Operation{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	// stuck receives once for each spelling.
	stuck, release, done := make(chan struct{}, 9), make(chan struct{}), make(chan error, 1)
	waits := s.NewEngine()
	t.Cleanup(waits.Stop)
	waiting := find(t, func(string) (fs.FileInfo, error) {
		stuck <- struct{}{}
		<-release
		return nil, fs.ErrNotExist
	})
	go func() { done <- waits.Run(waiting) }()
	<-stuck
	broken := s.NewEngine()
	t.Cleanup(broken.Stop)
	err := broken.Run(find(t, func(string) (fs.FileInfo, error) { panic("a bug") }))
	if _, ok := errors.AsType[*panics.Error](err); !ok {
		t.Errorf("unexpected error after a panic: %v", err)
	}
	start(t, s)
	close(release)
	if err := <-done; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unexpected error of the waiting engine: %v", err)
	}
}

// TestNameOfOperation: the storage gets exactly the name of the operation, whatever it contains, and a stopped
// engine runs the next command as if it had never stopped.
func TestNameOfOperation(t *testing.T) {
	e := newServer(t, netaddr.PortRange{}).NewEngine()
	t.Cleanup(e.Stop)
	for range 3 {
		var asked []string
		op := find(t, func(name string) (fs.FileInfo, error) {
			asked = append(asked, name)
			return nil, fs.ErrNotExist
		})
		if err := e.Run(op); !errors.Is(err, fs.ErrNotExist) || asked[0] != op.Name {
			t.Errorf("got error %v, requests for %q", err, asked)
		}
		e.Stop()
	}
}

// TestStopDuringCommand: the running command fails, and a command whose context has ended does not start.
func TestStopDuringCommand(t *testing.T) {
	e := newServer(t, netaddr.PortRange{}).NewEngine()
	ctx, cancel := context.WithCancel(t.Context())
	op := find(t, func(string) (fs.FileInfo, error) {
		cancel()
		e.Stop()
		return nil, fs.ErrNotExist
	})
	op.Context = ctx
	if err := e.Run(op); !errors.Is(err, ErrFailed) {
		t.Errorf("unexpected error of the command: %v", err)
	}
	if err := e.Run(op); !errors.Is(err, context.Canceled) || e.conn != nil {
		t.Errorf("error of a canceled command: got %v", err)
	}
}

// TestUnexpectedReply: a command that the library itself refuses is a bug of this program.
func TestUnexpectedReply(t *testing.T) {
	e := newServer(t, netaddr.PortRange{}).NewEngine()
	t.Cleanup(e.Stop)
	if err := e.Run(&Operation{Context: t.Context(), Verb: "NONE"}); !errors.Is(err, ErrUnexpected) {
		t.Error(err)
	}
}

// TestAddresses: all connections have different addresses, and no client can have one of them.
func TestAddresses(t *testing.T) {
	a, b := address{&conn{number: 1}}.String(), address{&conn{number: 1 << 40}}.String()
	if a == b || !strings.HasPrefix(a, "[100::") || !strings.HasPrefix(b, "[100::") {
		t.Errorf("%s and %s", a, b)
	}
}

// TestStartAfterClose: an engine that starts after Close does not block.
func TestStartAfterClose(t *testing.T) {
	s := newServer(t, netaddr.PortRange{})
	start(t, s)
	s.Close()
	s.Close()
	if err := s.NewEngine().Start(t.Context()); !errors.Is(err, ErrFailed) || !errors.Is(err, errServerClosed) {
		t.Error(err)
	}
}
