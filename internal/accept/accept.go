// Package accept runs a session on each connection that a listener accepts, and
// ends the sessions when the server shuts down.
//
// [Acceptor.Serve] accepts connections of one listener and runs a [Session] on
// each. [Acceptor.Shutdown] closes the listeners, tells the sessions to end and
// waits for them (RFC 959, section 4.2: reply 421).
package accept

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Session is what runs on one connection.
type Session interface {
	// Run returns when the session has ended.
	Run()
	// Drain lets the session end when its command has ended. It is called once.
	Drain()
	// Cut ends the session at once. Any goroutine may call it.
	Cut()
}

// An Acceptor knows the listeners and the sessions of a server.
type Acceptor struct {
	log *slog.Logger

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	sessions  map[Session]struct{}
	draining  bool
	idle      chan struct{} // closed when draining and the last session has ended
}

// New makes an Acceptor.
func New(log *slog.Logger) *Acceptor {
	return &Acceptor{
		log:       log,
		listeners: make(map[net.Listener]struct{}),
		sessions:  make(map[Session]struct{}),
		idle:      make(chan struct{}),
	}
}

// Serve runs a session on each connection that the listener accepts. It returns
// nil after Shutdown.
func (a *Acceptor) Serve(ctx context.Context, listener net.Listener, newSession func(net.Conn) Session) error {
	defer listener.Close()
	if !a.track(listener) {
		return nil
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			if a.isDraining() {
				return nil
			}
			if !isTemporary(err) {
				return fmt.Errorf("accept a control connection: %w", err)
			}
			a.log.Error("control connection not accepted; the listener tries again", "err", err)
			select {
			case <-time.After(acceptRetry):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s := newSession(conn)
		if !a.enter(s) {
			_ = conn.Close()
			continue
		}
		go func() {
			defer a.leave(s)
			s.Run()
		}()
	}
}

// acceptRetry is the pause after an error such as too many open files, which
// passes when sessions end.
const acceptRetry = 100 * time.Millisecond

func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// track remembers a listener; it returns false when the server is shut down.
func (a *Acceptor) track(listener net.Listener) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return false
	}
	a.listeners[listener] = struct{}{}
	return true
}

func (a *Acceptor) isDraining() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.draining
}

func (a *Acceptor) enter(s Session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return false
	}
	a.sessions[s] = struct{}{}
	return true
}

func (a *Acceptor) leave(s Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s)
	if a.draining && len(a.sessions) == 0 {
		close(a.idle)
	}
}

// Shutdown stops accepting connections, drains the sessions and waits for their
// end. When ctx ends first it cuts what is left and returns ctx's error.
func (a *Acceptor) Shutdown(ctx context.Context) error {
	a.startDraining()
	select {
	case <-a.idle:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	left := len(a.sessions)
	for s := range a.sessions {
		s.Cut()
	}
	a.mu.Unlock()
	if left > 0 {
		<-a.idle
	}
	return fmt.Errorf("%d sessions were cut: %w", left, ctx.Err())
}

func (a *Acceptor) startDraining() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return
	}
	a.draining = true
	for listener := range a.listeners {
		_ = listener.Close()
	}
	for s := range a.sessions {
		s.Drain()
	}
	if len(a.sessions) == 0 {
		close(a.idle)
	}
}
