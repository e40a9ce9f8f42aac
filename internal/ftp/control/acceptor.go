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
	// goodbyeTimeout is how long sessions may take to tell their clients that they end.
	goodbyeTimeout = 2 * time.Second
	// cutTimeout is how long their commands may take to end after that.
	cutTimeout = 3 * time.Second
)

// A runner is what runs on one connection: a session.
type runner interface {
	// Run returns when the session has ended.
	Run()
	// Drain lets the session end when its command has ended, or before its first
	// one. It is called once.
	Drain()
	// End ends the session with its command, and tells the client. Any goroutine
	// may call it.
	End()
	// Cut ends the session at once. Any goroutine may call it.
	Cut()
}

// An acceptor knows the listeners and the sessions of a server. It runs a session on each connection. To shut down, it
// tells the sessions to end and waits for them (RFC 959, section 4.2: reply 421). Until then new sessions end so too.
// The listeners close last: a load balancer may still send clients.
type acceptor struct {
	log   *slog.Logger
	guard *panics.Guard

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	sessions  map[runner]bool // true for those that Shutdown waits for
	waited    int             // how many these are
	draining  bool
	closed    chan struct{}  // closed with the listeners
	idle      chan struct{}  // closed when draining and waited is 0
	running   sync.WaitGroup // the sessions
}

// newAcceptor makes an acceptor. A panic of a session that the session does not recover itself is the guard's.
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

// Serve runs a session on each connection that the listener accepts. It returns
// nil after Shutdown. A listener may be closed before: Serve then waits for Shutdown.
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

// run runs a session. A panic of it is counted before the client sees the end of the connection.
func (a *acceptor) run(conn net.Conn, newSession func(net.Conn) runner) {
	defer conn.Close()
	defer a.guard.Recover("session")
	s := newSession(conn)
	if !a.enter(s) {
		return
	}
	defer a.leave(s)
	s.Run()
}

// acceptRetry is the pause after an error such as too many open files, which
// passes when sessions end.
const acceptRetry = 100 * time.Millisecond

func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// track remembers a listener; it returns false when the server is shut down.
func (a *acceptor) track(listener net.Listener) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isClosed(a.closed) {
		return false
	}
	a.listeners[listener] = struct{}{}
	return true
}

// enter counts a session. One that comes while the server drains ends before its
// first command.
func (a *acceptor) enter(s runner) bool {
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

func (a *acceptor) leave(s runner) {
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

// Shutdown drains the sessions and waits for their end. Sessions that begin
// meanwhile end at once, and it does not wait for them. Then it closes the
// listeners. When ctx ends first it ends what is left and returns ctx's error.
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

// Sessions are those that run, in no order.
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
