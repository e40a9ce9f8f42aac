package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A fakeSession records the calls of the acceptor.
type fakeSession struct {
	conn         net.Conn
	stubborn     bool          // only Cut ends it
	drained      chan struct{} // closed by Drain
	ended, cut   chan struct{}
	onceEnd, one sync.Once
	running      chan *fakeSession
}

func (s *fakeSession) Run() {
	defer s.conn.Close()
	s.running <- s
	if s.stubborn {
		<-s.cut
		return
	}
	select {
	case <-s.drained:
	case <-s.ended:
	}
}

func (s *fakeSession) Drain() { close(s.drained) }
func (s *fakeSession) End()   { s.onceEnd.Do(func() { close(s.ended) }) }
func (s *fakeSession) Cut()   { s.one.Do(func() { close(s.cut) }) }

// serve accepts connections and sends each running session to the channel.
func serve(t *testing.T, stubborn bool) (a *acceptor, l net.Listener, running chan *fakeSession, served chan error) {
	t.Helper()
	listener := must.Listen(t)
	a = newAcceptor(slog.New(slog.DiscardHandler), nil)
	running, served = make(chan *fakeSession, 10), make(chan error, 1)
	go func() {
		served <- a.Serve(t.Context(), listener, func(conn net.Conn) runner {
			return &fakeSession{
				conn: conn, stubborn: stubborn, running: running,
				drained: make(chan struct{}), ended: make(chan struct{}), cut: make(chan struct{}),
			}
		})
	}()
	return a, listener, running, served
}

func dial(t *testing.T, address string) {
	t.Helper()
	must.Dial(t, address)
}

// TestSessionsDuringShutdown: a connection that arrives during the drain is accepted and drained, and Shutdown
// ends the sessions that remain.
func TestSessionsDuringShutdown(t *testing.T) {
	a, l, running, served := serve(t, true)
	address := l.Addr().String()
	dial(t, address)
	first := <-running
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan error, 1)
	go func() { down <- a.Shutdown(ctx) }()
	<-first.drained
	dial(t, address)
	late := <-running
	<-late.drained
	cancel()
	for _, s := range []*fakeSession{first, late} {
		<-s.ended
		<-s.cut
	}
	if err := <-down; !errors.Is(err, context.Canceled) || err.Error() != "1 sessions were cut: context canceled" {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the listener is open")
	}
	listener := must.Listen(t)
	if err := a.Serve(t.Context(), listener, nil); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestListenerClosedBefore: if the listener was closed before, Serve waits for Shutdown and sessions keep running.
func TestListenerClosedBefore(t *testing.T) {
	a, listener, running, served := serve(t, false)
	dial(t, listener.Addr().String())
	s := <-running
	_ = listener.Close()
	select {
	case <-s.drained:
		t.Error("the session is drained before Shutdown")
	case err := <-served:
		t.Errorf("Serve before Shutdown: %v", err)
	default:
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestShutdownOfIdleSessions: Shutdown returns once the sessions have ended by themselves.
func TestShutdownOfIdleSessions(t *testing.T) {
	a, l, running, served := serve(t, false)
	for range 3 {
		dial(t, l.Addr().String())
		<-running
	}
	for range 2 { // the second call has nothing to do
		if err := a.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A panic ends only its own session, and the client sees the connection close. It may occur in Run or in
// newSession.
func TestPanicOfAcceptedSession(t *testing.T) {
	guard := panics.NewGuard(slog.New(slog.DiscardHandler))
	a := newAcceptor(slog.New(slog.DiscardHandler), guard)
	listener := must.Listen(t)
	served := make(chan error, 1)
	go func() {
		var first atomic.Bool
		served <- a.Serve(t.Context(), listener, func(conn net.Conn) runner {
			if first.CompareAndSwap(false, true) {
				panic("a bug before the session")
			}
			return buggy{conn}
		})
	}()
	for n := range 2 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		must.OK(t, err)
		if got, err := io.ReadAll(conn); err != nil || len(got) != n {
			t.Errorf("client %d: got %q, %v", n, got, err)
		}
		_ = conn.Close()
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if n := guard.Count(); n != 2 {
		t.Errorf("got %d counted panics, want 2", n)
	}
}

// A buggy session panics when it receives a byte.
type buggy struct{ conn net.Conn }

func (b buggy) Run() {
	_, _ = b.conn.Write([]byte{'2'})
	panic("a bug of the session")
}

func (buggy) Drain() {}
func (buggy) End()   {}
func (buggy) Cut()   {}
