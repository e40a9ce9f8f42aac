package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// goodbyeTimeout bounds how long Shutdown waits for sessions to send their last reply.
	goodbyeTimeout = 2 * time.Second
	// cutTimeout bounds how long Shutdown then waits for their commands to end.
	cutTimeout = 3 * time.Second
)

// A runner serves one connection. In production it is always a [session].
type runner interface {
	// Run serves the connection until the session has ended.
	Run()
	// Drain ends the session once its current command has finished, or before its first command. It is called
	// once.
	Drain()
	// End cancels the current command, sends the client a last reply and ends the session. Any goroutine may call
	// it.
	End()
	// Cut ends the session at once, without a reply. Any goroutine may call it.
	Cut()
}

// An acceptor holds the listeners and the sessions of a server, and runs a session on each connection. To shut
// down, it drains the sessions and waits until they have ended (RFC 959, section 4.2: reply 421). The listeners
// close last, because a load balancer may still send clients; sessions that begin while the server drains end
// before their first command.
type acceptor struct {
	log   *slog.Logger
	guard *panics.Guard

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	sessions  map[runner]bool // true if Shutdown waits for the session
	waited    int             // number of sessions that Shutdown waits for
	draining  bool
	closed    chan struct{}  // closed with the listeners
	idle      chan struct{}  // closed when draining and waited is 0
	running   sync.WaitGroup // the sessions
}

// newAcceptor returns an acceptor. The guard counts the panics that a session does not recover itself.
func newAcceptor(log *slog.Logger, guard *panics.Guard) *acceptor {
	return &acceptor{
		log:       log,
		guard:     guard,
		listeners: make(map[net.Listener]struct{}),
		sessions:  make(map[runner]bool),
		closed:    make(chan struct{}),
		idle:      make(chan struct{}),
	}
}

// Serve runs a session on each connection that the listener accepts, and returns nil after Shutdown. If the
// listener is closed earlier, Serve waits for Shutdown.
func (a *acceptor) Serve(ctx context.Context, listener net.Listener, newSession func(net.Conn) runner) error {
	defer listener.Close()
	if !a.track(listener) {
		return nil
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			switch {
			case isClosed(a.closed):
				return nil
			case isTemporary(err):
			case errors.Is(err, net.ErrClosed):
				<-a.closed
				return nil
			default:
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
		panics.Go(func() { a.run(conn, newSession) })
	}
}

// run serves one connection. Deferred calls run in reverse, so a panic is counted before the client sees the
// connection close.
func (a *acceptor) run(conn net.Conn, newSession func(net.Conn) runner) {
	defer conn.Close()
	defer a.guard.Recover("session")
	s := newSession(conn)
	if !a.add(s) {
		return
	}
	defer a.remove(s)
	s.Run()
}

// acceptRetry is the pause after an error such as "too many open files", which goes away when sessions end.
const acceptRetry = 100 * time.Millisecond

func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// track records a listener. It returns false if the server has shut down.
func (a *acceptor) track(listener net.Listener) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isClosed(a.closed) {
		return false
	}
	a.listeners[listener] = struct{}{}
	return true
}

// add adds a session. If the server is draining, the session ends before its first command.
func (a *acceptor) add(s runner) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isClosed(a.closed) {
		return false
	}
	a.sessions[s] = !a.draining
	if a.draining {
		s.Drain()
	} else {
		a.waited++
	}
	a.running.Add(1)
	return true
}

func (a *acceptor) remove(s runner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s] {
		a.waited--
		if a.draining && a.waited == 0 {
			close(a.idle)
		}
	}
	delete(a.sessions, s)
	a.running.Done()
}

// Shutdown drains the sessions and waits until they have ended. It does not wait for sessions that begin during
// the drain, because they end at once. Then it closes the listeners. If ctx ends first, Shutdown ends the
// remaining sessions and returns an error that wraps ctx.Err().
func (a *acceptor) Shutdown(ctx context.Context) (err error) {
	a.drain()
	select {
	case <-a.idle:
	case <-ctx.Done():
		a.mu.Lock()
		if a.waited > 0 {
			err = fmt.Errorf("%d sessions were cut: %w", a.waited, ctx.Err())
		}
		a.mu.Unlock()
	}
	a.close()
	ended := make(chan struct{})
	panics.Go(func() {
		a.running.Wait()
		close(ended)
	})
	for _, last := range []struct {
		end     func(runner)
		timeout time.Duration
	}{{runner.End, goodbyeTimeout}, {runner.Cut, cutTimeout}} {
		a.each(last.end)
		select {
		case <-ended:
			return err
		case <-time.After(last.timeout):
		}
	}
	return err
}

func (a *acceptor) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return
	}
	a.draining = true
	for s := range a.sessions {
		s.Drain()
	}
	if a.waited == 0 {
		close(a.idle)
	}
}

// close closes the listeners.
func (a *acceptor) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isClosed(a.closed) {
		close(a.closed)
	}
	for listener := range a.listeners {
		_ = listener.Close()
	}
}

// Sessions returns the running sessions in no particular order.
func (a *acceptor) Sessions() []runner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.sessions))
}

func (a *acceptor) each(do func(runner)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.sessions {
		do(s)
	}
}
