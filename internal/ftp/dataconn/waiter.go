package dataconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// A waiter is a session that waits on a port until its client connects or the timeout expires. After that the port
// is free, even if no transfer begins.
type waiter struct {
	ports    *Ports
	listener *listener
	client   Client
	began    time.Time
	timer    *time.Timer
	ready    chan struct{} // closed when connections may be for this session; nil if the port was unused
	settled  chan struct{} // closed when conn or err is set

	// The mutex of ports guards the following fields.
	since   time.Time  // connections that arrived earlier are for other sessions
	other   netip.Addr // last unexpected client address on the port
	readyAt uint64     // value of listener.accepted at which the waiter is ready
	conn    net.Conn   // connection of the client, until Open takes it
	err     error      // why no connection arrived
}

// takes reports whether a connection that arrived at this time can be for the session. The mutex of ports must be
// locked.
func (w *waiter) takes(arrived time.Time) bool {
	if arrived.Before(w.since) {
		return false
	}
	select {
	case <-w.settled:
		return false
	case <-w.ready:
		return true
	default:
		return w.ready == nil
	}
}

// settle ends the wait with a connection or an error, unless it has already ended. The mutex of ports must be
// locked.
func (w *waiter) settle(conn net.Conn, err error) {
	select {
	case <-w.settled:
	default:
		w.conn, w.err = conn, err
		close(w.settled)
	}
}

// remove removes the session from its port. It returns false if it was removed before. The last session closes the
// port. The mutex of ports must be locked.
func (w *waiter) remove() bool {
	p, l := w.ports, w.listener
	if l.waiting[w.client.Addr] != w {
		return false
	}
	delete(l.waiting, w.client.Addr)
	p.count(w.client, -1)
	w.timer.Stop()
	if len(l.waiting) == 0 && !l.stays {
		_ = l.Close()
		delete(p.listeners, l.address)
	}
	return true
}

// end stops waiting with an error if the client has not connected.
func (w *waiter) end(err error) {
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if w.remove() {
		w.ports.expectLate(w.client.Addr, w.listener.address.Port())
		late := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
		if late && w.ports.Missed != nil {
			w.ports.Missed()
		}
	}
	w.settle(nil, w.newMissingError(err))
}

func (w *waiter) expire() {
	defer w.ports.Guard.Recover("wait for a data connection")
	w.end(os.ErrDeadlineExceeded)
}

// A missingError reports that a client did not connect to its passive port.
type missingError struct {
	port    uint16
	waited  time.Duration
	other   netip.Addr // address of another client that connected
	because error
}

// Error returns a text for the log. Another address points to a load balancer or a router that hides the client.
func (e *missingError) Error() string {
	text := fmt.Sprintf("the client did not connect to port %d within %v", e.port, e.waited.Round(time.Millisecond))
	if e.other.IsValid() {
		text += fmt.Sprintf("; %v did, which is not the address of the control connection", e.other)
	}
	return text
}

// Unwrap returns the reason why the wait has ended.
func (e *missingError) Unwrap() error { return e.because }

// Missing returns an error if the client has not connected.
func (w *waiter) Missing() error {
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if _, missing := errors.AsType[*missingError](w.err); missing {
		return w.err
	}
	select {
	case <-w.settled:
		return nil
	default:
		return w.newMissingError(net.ErrClosed)
	}
}

// newMissingError returns the error for a client that has not connected so far. The mutex of ports must be locked.
func (w *waiter) newMissingError(because error) error {
	return &missingError{w.listener.address.Port(), time.Since(w.began), w.other, because}
}

// Waits reports whether the session still waits for the client.
func (w *waiter) Waits() bool {
	select {
	case <-w.settled:
		return false
	default:
		return true
	}
}

// Open returns the connection of the client. The deadline of ctx replaces the timeout of Listen, unless that has
// expired.
func (w *waiter) Open(ctx context.Context) (net.Conn, error) {
	defer w.Close()
	w.timer.Stop()
	select {
	case <-w.settled:
	case <-ctx.Done():
		w.end(context.Cause(ctx))
	}
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	conn := w.conn
	w.conn = nil
	return conn, w.err
}

// Close leaves the port and closes a connection that no transfer has taken.
func (w *waiter) Close() {
	w.end(net.ErrClosed)
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn, w.err = nil, net.ErrClosed
	}
}
