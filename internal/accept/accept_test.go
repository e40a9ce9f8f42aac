package accept

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
)

// A session notes what the acceptor tells it.
type session struct {
	conn         net.Conn
	stubborn     bool          // whether only Cut ends it
	drained      chan struct{} // closed by Drain
	ended, cut   chan struct{}
	onceEnd, one sync.Once
	running      chan *session
}

func (s *session) Run() {
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

func (s *session) Drain() { close(s.drained) }
func (s *session) End()   { s.onceEnd.Do(func() { close(s.ended) }) }
func (s *session) Cut()   { s.one.Do(func() { close(s.cut) }) }

// serve accepts connections, whose sessions come out of the channel when they run.
func serve(t *testing.T, stubborn bool) (a *Acceptor, address string, running chan *session, served chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a = New(slog.New(slog.DiscardHandler))
	running, served = make(chan *session, 10), make(chan error, 1)
	go func() {
		served <- a.Serve(t.Context(), listener, func(conn net.Conn) Session {
			return &session{
				conn: conn, stubborn: stubborn, running: running,
				drained: make(chan struct{}), ended: make(chan struct{}), cut: make(chan struct{}),
			}
		})
	}()
	return a, listener.Addr().String(), running, served
}

func dial(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
}

// TestSessionsDuringShutdown: a connection that comes while another session lives is accepted and drained, and Shutdown ends what is left.
func TestSessionsDuringShutdown(t *testing.T) {
	a, address, running, served := serve(t, true)
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
	for _, s := range []*session{first, late} {
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Serve(t.Context(), listener, nil); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestShutdownOfIdleSessions: Shutdown returns when the sessions have ended by themselves.
func TestShutdownOfIdleSessions(t *testing.T) {
	a, address, running, served := serve(t, false)
	for range 3 {
		dial(t, address)
		<-running
	}
	for range 2 { // the second one finds nothing to do
		if err := a.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
